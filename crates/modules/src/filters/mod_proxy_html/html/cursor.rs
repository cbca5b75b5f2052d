//! A place in the text, which knows whether the text is complete.

/// The text has ended, and more of it will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starved;

/// A place in the text.
#[derive(Clone, Copy)]
pub struct Cursor<'t> {
    text: &'t [u8],
    /// The offset of the place.
    pub at: usize,
    is_last: bool,
}

impl<'t> Cursor<'t> {
    /// The beginning of `text`; nothing follows it if `is_last`.
    pub fn new(text: &'t [u8], is_last: bool) -> Cursor<'t> {
        Cursor { text, at: 0, is_last }
    }

    /// The byte at the place; 0 at the end, as it is in libxml2's buffers.
    pub fn here(&self) -> Result<u8, Starved> {
        self.ahead(0)
    }

    /// The byte `count` behind the place.
    pub fn ahead(&self, count: usize) -> Result<u8, Starved> {
        match self.text.get(self.at + count) {
            Some(byte) => Ok(*byte),
            None if self.is_last => Ok(0),
            None => Err(Starved),
        }
    }

    /// Whether the text begins with `word` here, in any case of letters.
    pub fn begins(&self, word: &[u8]) -> Result<bool, Starved> {
        for (count, byte) in word.iter().enumerate() {
            if !self.ahead(count)?.eq_ignore_ascii_case(byte) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves by `count`, but not beyond the end.
    pub fn skip(&mut self, count: usize) {
        self.at = (self.at + count).min(self.text.len());
    }

    /// Skips blanks.
    pub fn skip_blanks(&mut self) -> Result<(), Starved> {
        while is_blank(self.here()?) {
            self.skip(1);
        }
        Ok(())
    }

    /// Skips all bytes before a NUL, the end, or one for which `ends` holds.
    pub fn skip_until(&mut self, ends: impl Fn(u8) -> bool) -> Result<(), Starved> {
        loop {
            let byte = self.here()?;
            if byte == 0 || ends(byte) {
                return Ok(());
            }
            self.skip(1);
        }
    }

    /// Whether the text ends here.
    pub fn is_at_end(&self) -> bool {
        self.is_last && self.at >= self.text.len()
    }

    /// The bytes since an earlier place.
    pub fn since(&self, start: usize) -> &'t [u8] {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// The character at the place, with its length; `None` at the end.
    pub fn char(&self) -> Option<(u32, usize)> {
        char_at(self.text.get(self.at..)?)
    }
}

/// The first character of a text whose characters are whole, with its length. It may be one that
/// Unicode does not have.
pub fn char_at(text: &[u8]) -> Option<(u32, usize)> {
    let first = *text.first()?;
    let length = match first {
        0..0xc0 => return Some((u32::from(first), 1)),
        0xc0..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    let lead = u32::from(first) & (0x7f >> length);
    let rest = text.get(1..length)?;
    let value = rest.iter().fold(lead, |value, byte| value << 6 | u32::from(byte & 0x3f));
    Some((value, length))
}

/// XML's blanks, which do not include the form feed.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a document may contain the character (XML 1.0 section 2.2).
pub fn is_char(value: u32) -> bool {
    matches!(value, 9 | 10 | 13 | 0x20..=0xd7ff | 0xe000..=0xfffd | 0x1_0000..=0x10_ffff)
}

/// Appends a character as UTF-8, whatever its number.
pub fn put(value: u32, out: &mut Vec<u8>) {
    let byte = |bits: u32| u8::try_from(bits & 0xff).unwrap_or_default();
    let tail = |shift: u32| byte(0x80 | (value >> shift & 0x3f));
    match value {
        0..0x80 => out.push(byte(value)),
        0x80..0x800 => out.extend([byte(0xc0 | value >> 6), tail(0)]),
        0x800..0x1_0000 => out.extend([byte(0xe0 | value >> 12), tail(6), tail(0)]),
        _ => out.extend([byte(0xf0 | (value >> 18 & 7)), tail(12), tail(6), tail(0)]),
    }
}
