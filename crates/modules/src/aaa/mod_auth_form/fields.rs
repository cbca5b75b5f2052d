//! The fields of a form (`application/x-www-form-urlencoded`), read as they arrive.
//!
//! Source: `ap_parse_form_data`.

/// Bytes that a name may have (`HUGE_STRING_LEN`).
const NAME_BYTES_MAX: usize = 8192;

/// What the next byte belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Name,
    Value,
    /// An `&` was read, also within an escape: the byte that is decoded next is left out.
    End,
}

/// Which part of an escape comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    None,
    High,
    Low,
}

/// The reader of a form.
pub(super) struct Fields {
    /// How many more bytes names and values may have.
    left: usize,
    place: Place,
    escape: Escape,
    /// The digits of an escape. What is no digit leaves the one of an escape before.
    high: u8,
    low: u8,
    name: Vec<u8>,
    value: Option<Vec<u8>>,
}

/// Names and values have more bytes than they may, or one name has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Fields {
    /// A reader of a form whose names and values have at most these bytes.
    pub fn new(left: usize) -> Fields {
        let (place, escape) = (Place::Name, Escape::None);
        Fields { left, place, escape, high: 0, low: 0, name: Vec::new(), value: None }
    }

    /// Reads the next bytes; `each` gets the fields that end in them.
    pub fn read(
        &mut self,
        text: &[u8],
        each: &mut impl FnMut(&[u8], &[u8]),
    ) -> Result<(), TooLong> {
        for byte in text {
            if *byte == b'&' {
                self.place = Place::End;
            }
            let Some(byte) = self.decoded(*byte) else { continue };
            match self.place {
                Place::End => {
                    self.end(each);
                    self.place = Place::Name;
                    continue;
                }
                Place::Name if self.name.len() >= NAME_BYTES_MAX => return Err(TooLong),
                Place::Name if byte == b'=' => {
                    self.value = Some(Vec::new());
                    self.place = Place::Value;
                    continue;
                }
                Place::Name => self.name.push(byte),
                Place::Value => self.value.get_or_insert_default().push(byte),
            }
            self.left = self.left.checked_sub(1).ok_or(TooLong)?;
        }
        Ok(())
    }

    /// Gives `each` the last field, when all has been read.
    pub fn end(&mut self, each: &mut impl FnMut(&[u8], &[u8])) {
        let name = std::mem::take(&mut self.name);
        if let Some(value) = self.value.take() {
            each(text(&name), &value);
        }
    }

    fn decoded(&mut self, byte: u8) -> Option<u8> {
        match (self.escape, byte) {
            (_, b'%') => self.escape = Escape::High,
            (Escape::None, b'+') => return Some(b' '),
            (Escape::None, _) => return Some(byte),
            (Escape::High, _) => {
                self.high = digit(byte).map_or(self.high, |digit| digit.wrapping_mul(16));
                self.escape = Escape::Low;
            }
            (Escape::Low, _) => {
                self.low = digit(byte).unwrap_or(self.low);
                self.escape = Escape::None;
                return Some(self.high.wrapping_add(self.low));
            }
        }
        None
    }
}

/// Names and values that are texts end at a NUL.
pub(super) fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The value of a digit, and of what Apache takes for one.
fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'a'.. => Some(byte - b'a' + 10),
        b'A'.. => Some(byte - b'A' + 10),
        b'0'.. => Some(byte - b'0'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Fields, TooLong};

    fn fields(text: &[u8], most: usize) -> Result<Vec<(Vec<u8>, Vec<u8>)>, TooLong> {
        let mut found = Vec::new();
        let mut each = |name: &[u8], value: &[u8]| found.push((name.to_vec(), value.to_vec()));
        let mut fields = Fields::new(most);
        // However it arrives.
        for piece in text.chunks(3) {
            fields.read(piece, &mut each)?;
        }
        fields.end(&mut each);
        Ok(found)
    }

    fn one(text: &str) -> (String, String) {
        let found = fields(text.as_bytes(), 100).unwrap_or_default();
        let string = |bytes: &[u8]| String::from_utf8_lossy(super::text(bytes)).into_owned();
        found.first().map(|(name, value)| (string(name), string(value))).unwrap_or_default()
    }

    #[test]
    fn escapes_are_read_as_apache_does() {
        let value = |text: &str| one(&format!("k={text}")).1;
        assert_eq!(value("a+b%41%6a%6A"), "a bAjj");
        assert_eq!((value("%zz").as_str(), value("a%4gb").as_str()), ("S", "aPb"));
        assert_eq!((value("%4").as_str(), value("x%").as_str()), ("", "x"));
        assert_eq!((value("a%%41b").as_str(), value("%2%41").as_str()), ("aAb", "A"));
        assert_eq!((value("a%00b").as_str(), value("a=b==").as_str()), ("a", "a=b=="));
        assert_eq!(one("%6b%3Dv&x=y"), ("k".to_owned(), "v".to_owned()));
        // An end within an escape takes two more bytes.
        assert_eq!(fields(b"a=b%&cd=e", 9).map(|found| found.len()), Ok(2));
        assert_eq!(fields(b"a&b&c=&=d", 9).map(|found| found.len()), Ok(2));
    }

    #[test]
    fn names_and_values_have_a_limit_but_not_what_is_between() {
        for text in ["abcde=fghij&", "ab&c&d&e&f&gg&&", "abcde%41%41%41%41%41", "=aaaaaaaaaa"] {
            assert!(fields(text.as_bytes(), 10).is_ok(), "{text}");
        }
        for text in ["abcde=fghijk", "abcde=fghij&k=&", "abcdefghijk", "a++++++++++"] {
            assert_eq!(fields(text.as_bytes(), 10), Err(TooLong), "{text}");
        }
        assert_eq!(fields(&[b'n'; 9000], 9000), Err(TooLong));
    }

    proptest::proptest! {
        #[test]
        fn no_form_panics(text: Vec<u8>) {
            let _ = fields(&text, 100);
        }
    }
}
