//! Bytes in a message of the error log, which need not be UTF-8.

use std::fmt::{self, Write};

/// Bytes in a message: what is no UTF-8 reaches the log as it is.
///
/// A message is formatted as text, so each byte of a broken sequence becomes one of the last 128
/// characters of Unicode's last plane for private use, which [`bytes`] turns back. These characters
/// themselves count as broken sequences.
#[derive(Clone, Copy)]
pub struct Verbatim<'a>(&'a [u8]);

/// The character of a byte is this and the byte.
const PRIVATE: u32 = 0x10_ff00;

/// What all these characters begin with in UTF-8.
const LEAD: [u8; 2] = [0xf4, 0x8f];

impl<'a> Verbatim<'a> {
    /// Shows these bytes.
    pub fn new<B: AsRef<[u8]> + ?Sized>(bytes: &'a B) -> Verbatim<'a> {
        Verbatim(bytes.as_ref())
    }
}

impl fmt::Display for Verbatim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            let mut rest = chunk.valid();
            while let Some(at) = rest.find(is_private) {
                let (before, from) = rest.split_at(at);
                let (private, after) = from.split_at(4);
                f.write_str(before)?;
                broken(private.as_bytes(), f)?;
                rest = after;
            }
            f.write_str(rest)?;
            broken(chunk.invalid(), f)?;
        }
        Ok(())
    }
}

fn broken(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for byte in bytes {
        f.write_char(
            char::from_u32(PRIVATE | u32::from(*byte)).unwrap_or(char::REPLACEMENT_CHARACTER),
        )?;
    }
    Ok(())
}

fn is_private(letter: char) -> bool {
    u32::from(letter) >= PRIVATE | 0x80
}

/// Turns the characters that stand for bytes in a formatted message back into these.
pub(super) fn bytes(mut message: Vec<u8>) -> Vec<u8> {
    // In almost every message there are none.
    if !message.windows(2).any(|two| two == LEAD) {
        return message;
    }
    let mut kept = 0;
    let mut at = 0;
    while let Some(byte) = message.get(at) {
        let (byte, length) = match message.get(at..at + 4) {
            Some([0xf4, 0x8f, high @ (0xbe | 0xbf), low]) => (high << 6 | low & 0x3f, 4),
            _ => (*byte, 1),
        };
        if let Some(place) = message.get_mut(kept) {
            *place = byte;
        }
        kept += 1;
        at += length;
    }
    message.truncate(kept);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_as_they_were() {
        let all: Vec<u8> = (0..=255).collect();
        let texts: [&[u8]; 6] = [
            b"",
            b"plain",
            "käse \u{10ff7f}\u{10ff80}\u{10ffff} €".as_bytes(),
            b"/caf\xe9/\xff",
            b"\xf4\x8f\xbf\xff\xf4\x8f",
            &all,
        ];
        for text in texts {
            let message = format!("<{}>", Verbatim::new(text)).into_bytes();
            assert_eq!(bytes(message), [b"<", text, b">"].concat());
        }
    }
}
