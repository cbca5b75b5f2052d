//! What the parser reads: UTF-8, decoded from the document's bytes.
//!
//! As in libxml2, a document in UTF-8 is that until its first byte that is not; from there on it is
//! ISO-8859-1. Without a name it is ISO-8859-1 from its first byte beyond ASCII. A `<meta>` before
//! these may name another character set for what follows it.

use crate::filters::mod_xml2enc::charset::{Charset, Decoder};

/// The input of a parser.
#[derive(Default)]
pub struct Input {
    /// Whole characters that are decoded.
    text: Vec<u8>,
    /// How many bytes of `text` are consumed.
    at: usize,
    /// Bytes behind `text`, beginning with one that is not UTF-8 or not yet a whole character.
    raw: Vec<u8>,
    decoder: Option<Decoder>,
    /// Whether the document may be UTF-8.
    is_utf8: bool,
    /// Where in `text` the first wrong byte is.
    wrong: Option<usize>,
    has_ended: bool,
}

impl Input {
    /// Returns an empty input.
    pub fn new(charset: Option<Charset>) -> Input {
        Input {
            is_utf8: charset == Some(Charset::Utf8),
            decoder: charset.and_then(Decoder::new),
            ..Input::default()
        }
    }

    /// Adds a piece of the document.
    pub fn push(&mut self, bytes: &[u8]) {
        self.compact();
        match &mut self.decoder {
            Some(decoder) => {
                decoder.decode(bytes, false, &mut self.text);
            }
            None => {
                self.raw.extend_from_slice(bytes);
                self.take_valid();
            }
        }
    }

    /// Moves what needs no decoder.
    fn take_valid(&mut self) {
        let is_ascii = |byte: &&u8| byte.is_ascii();
        let valid = match self.is_utf8 {
            true => valid_bytes(&self.raw),
            false => self.raw.iter().take_while(is_ascii).count(),
        };
        self.text.extend(self.raw.drain(..valid));
    }

    /// The document is complete.
    pub fn end(&mut self) {
        self.has_ended = true;
        if let Some(decoder) = &mut self.decoder {
            decoder.decode(b"", true, &mut self.text);
        }
    }

    /// What is decoded and not consumed.
    pub fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Consumes bytes.
    pub fn consume(&mut self, count: usize) {
        self.at = (self.at + count).min(self.text.len());
    }

    /// Whether nothing follows [`Input::rest`].
    pub fn is_last(&self) -> bool {
        self.has_ended && self.raw.is_empty()
    }

    /// Bytes that are held.
    pub fn held_bytes(&self) -> usize {
        self.text.len() - self.at + self.raw.len()
    }

    /// Continues behind the last character of UTF-8, if what follows is none; returns whether
    /// there is more text now.
    pub fn more(&mut self) -> bool {
        if self.raw.is_empty() || (self.is_utf8 && !self.has_ended && is_incomplete(&self.raw)) {
            return false;
        }
        if self.is_utf8 {
            self.wrong = Some(self.text.len());
        }
        let raw = std::mem::take(&mut self.raw);
        let mut decoder = Decoder::new(Charset::Latin1);
        if let Some(decoder) = &mut decoder {
            decoder.decode(&raw, self.has_ended, &mut self.text);
        }
        self.decoder = decoder;
        true
    }

    /// The position in [`Input::rest`] of the first wrong byte. In the value of an attribute,
    /// libxml2 takes the first byte of its UTF-8 for the character.
    pub fn wrong(&self) -> Option<usize> {
        self.wrong?.checked_sub(self.at)
    }

    /// Decodes what follows position `from` of [`Input::rest`] from another character set, unless
    /// the document has one already.
    pub fn switch(&mut self, from: usize, charset: Charset) {
        if self.decoder.is_some() {
            return;
        }
        let Some(mut decoder) = Decoder::new(charset) else {
            self.is_utf8 = true;
            return self.take_valid();
        };
        let mut rest = self.text.split_off((self.at + from).min(self.text.len()));
        rest.append(&mut self.raw);
        decoder.decode(&rest, self.has_ended, &mut self.text);
        self.decoder = Some(decoder);
    }

    /// Forgets what is consumed.
    fn compact(&mut self) {
        self.text.drain(..self.at);
        self.wrong = self.wrong();
        self.at = 0;
    }
}

/// The length of the characters at the beginning of `bytes`.
fn valid_bytes(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(length) = bytes.get(at..).and_then(char_bytes) {
        at += length;
    }
    at
}

/// The length of the first character. Surrogates and numbers beyond Unicode count as characters,
/// which are left out later. Source: `htmlCurrentChar`.
fn char_bytes(bytes: &[u8]) -> Option<usize> {
    let follows = |byte: &u8| byte & 0xc0 == 0x80;
    match bytes {
        [0..0x80, ..] => Some(1),
        [0xc2..0xe0, b, ..] if follows(b) => Some(2),
        [0xe0, b, c, ..] if follows(b) && *b >= 0xa0 && follows(c) => Some(3),
        [0xe1..0xf0, b, c, ..] if follows(b) && follows(c) => Some(3),
        [0xf0, b, c, d, ..] if follows(b) && *b >= 0x90 && follows(c) && follows(d) => Some(4),
        [0xf1..0xf8, b, c, d, ..] if follows(b) && follows(c) && follows(d) => Some(4),
        _ => None,
    }
}

/// Whether `bytes` may be the beginning of a character.
fn is_incomplete(bytes: &[u8]) -> bool {
    let needed = match bytes.first() {
        Some(0xc2..0xe0) => 2,
        Some(0xe0..0xf0) => 3,
        Some(0xf0..0xf8) => 4,
        _ => return false,
    };
    let mut padded = bytes.to_vec();
    if padded.len() >= needed {
        return false;
    }
    // The largest following byte is within the bounds of every leading byte.
    padded.resize(needed, 0xbf);
    char_bytes(&padded).is_some()
}
