//! The part of DER (X.690) that OCSP and signature checks need: elements with single-byte tags and
//! definite lengths, read without copying, written by nesting.

/// BOOLEAN. Tags are given as encoded in the first byte.
pub const BOOLEAN: u8 = 0x01;
/// INTEGER.
pub const INTEGER: u8 = 0x02;
/// BIT STRING.
pub const BIT_STRING: u8 = 0x03;
/// OCTET STRING.
pub const OCTET_STRING: u8 = 0x04;
/// NULL.
pub const NULL: u8 = 0x05;
/// OBJECT IDENTIFIER.
pub const OID: u8 = 0x06;
/// ENUMERATED.
pub const ENUMERATED: u8 = 0x0a;
/// GeneralizedTime.
pub const GENERALIZED_TIME: u8 = 0x18;
/// SEQUENCE.
pub const SEQUENCE: u8 = 0x30;

/// A constructed context-specific tag, as `[0]`.
pub const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// One element: its tag, its content, and both with the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Element<'a> {
    /// The identifier byte.
    pub tag: u8,
    /// The content.
    pub content: &'a [u8],
    /// Tag, length and content.
    pub raw: &'a [u8],
}

/// Reads consecutive elements.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A reader over the content of an element, or over a whole message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next element, with any tag.
    pub fn next_element(&mut self) -> Option<Element<'a>> {
        let [tag, first, after @ ..] = self.rest else { return None };
        if tag & 0x1f == 0x1f {
            return None;
        }
        let (length, after) = match first {
            0..=0x7f => (usize::from(*first), after),
            0x81..=0x84 => {
                let (bytes, after) = after.split_at_checked(usize::from(first & 0x7f))?;
                (bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)), after)
            }
            _ => return None,
        };
        let (content, after) = after.split_at_checked(length)?;
        let raw = self.rest.get(..self.rest.len() - after.len())?;
        self.rest = after;
        Some(Element { tag: *tag, content, raw })
    }

    /// The next element, if it has this tag.
    pub fn expect(&mut self, tag: u8) -> Option<Element<'a>> {
        let mut ahead = *self;
        let element = ahead.next_element().filter(|element| element.tag == tag)?;
        *self = ahead;
        Some(element)
    }

    /// The content of the next element, if it has this tag.
    pub fn content(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.expect(tag).map(|element| element.content)
    }

    /// A reader over the content of the next element, if it has this tag.
    pub fn enter(&mut self, tag: u8) -> Option<Reader<'a>> {
        self.content(tag).map(Reader::new)
    }

    /// The bits of a BIT STRING without unused bits.
    pub fn bits(&mut self) -> Option<&'a [u8]> {
        match self.content(BIT_STRING)? {
            [0, bits @ ..] => Some(bits),
            _ => None,
        }
    }
}

/// Encodes an element with this content.
pub fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len();
    if length < 0x80 {
        bytes.push(length as u8);
    } else {
        let big_endian = length.to_be_bytes();
        let skip = big_endian.iter().take_while(|byte| **byte == 0).count();
        bytes.push(0x80 | (big_endian.len() - skip) as u8);
        bytes.extend(big_endian.iter().skip(skip));
    }
    bytes.extend_from_slice(content);
    bytes
}

/// Encodes a SEQUENCE of elements.
pub fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    element(SEQUENCE, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(content in proptest::collection::vec(any::<u8>(), 0..70_000)) {
            let bytes = element(OCTET_STRING, &content);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.content(OCTET_STRING), Some(&content[..]));
            prop_assert!(reader.next_element().is_none());
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let mut reader = Reader::new(&bytes);
            while let Some(element) = reader.next_element() {
                prop_assert!(!element.raw.is_empty());
            }
        }
    }

    #[test]
    fn another_tag_is_not_consumed() {
        let bytes = element(INTEGER, &[5]);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.content(OID), None);
        assert_eq!(reader.content(INTEGER), Some(&[5][..]));
    }
}
