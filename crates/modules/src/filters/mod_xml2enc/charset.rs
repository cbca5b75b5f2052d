//! Character sets: which names libxml2 and iconv know, and decoding and encoding.

use encoding_rs::{DecoderResult, EncoderResult, Encoding};

/// A character set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// UTF-8.
    Utf8,
    /// ASCII: other bytes are no characters.
    Ascii,
    /// ISO-8859-1: each byte is a character.
    Latin1,
    /// A set of ISO that has controls where this one of Windows has other characters; the Encoding
    /// Standard knows only the latter.
    Iso(&'static Encoding),
    /// One of the Encoding Standard's.
    Other(&'static Encoding),
}

/// What libxml2 itself makes of a name. Source: `xmlParseCharEncoding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The name is empty.
    Nothing,
    /// A character set that its parsers decode.
    Charset(Charset),
    /// Not a name that it knows.
    Unknown,
}

impl Charset {
    /// The character set that iconv knows by a name.
    pub fn of(name: &[u8]) -> Option<Charset> {
        // iconv leaves out other characters, such as quotes, and an empty name is that of the C
        // locale.
        let counts = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_./,:".contains(byte);
        let upper: Vec<u8> =
            name.to_ascii_uppercase().into_iter().filter(|byte| counts(byte)).collect();
        match upper.as_slice() {
            b"" => Some(Charset::Ascii),
            b"UTF-8" | b"UTF8" => Some(Charset::Utf8),
            b"ISO-8859-1" | b"ISO8859-1" | b"ISO_8859-1" | b"LATIN1" | b"L1" => {
                Some(Charset::Latin1)
            }
            b"US-ASCII" | b"ASCII" | b"ANSI_X3.4-1968" => Some(Charset::Ascii),
            b"ISO-8859-9" | b"ISO8859-9" | b"ISO_8859-9" | b"LATIN5" | b"L5" => {
                Some(Charset::Iso(encoding_rs::WINDOWS_1254))
            }
            b"ISO-8859-11" | b"ISO8859-11" | b"TIS-620" => {
                Some(Charset::Iso(encoding_rs::WINDOWS_874))
            }
            b"CP932" | b"SJIS" => Some(Charset::Other(encoding_rs::SHIFT_JIS)),
            other => match Encoding::for_label_no_replacement(other)? {
                encoding if encoding == encoding_rs::UTF_8 => Some(Charset::Utf8),
                encoding => Some(Charset::Other(encoding)),
            },
        }
    }
}

/// Source: `xmlParseCharEncoding`.
pub fn known(name: &[u8]) -> Known {
    let upper = name.to_ascii_uppercase();
    let charset = match upper.as_slice() {
        b"" => return Known::Nothing,
        b"UTF-8" | b"UTF8" => Charset::Utf8,
        b"UTF-16" | b"UTF16" => Charset::Other(encoding_rs::UTF_16LE),
        b"ISO-8859-1" | b"ISO-LATIN-1" | b"ISO LATIN 1" => Charset::Latin1,
        b"ISO-8859-2" | b"ISO-LATIN-2" | b"ISO LATIN 2" => Charset::Other(encoding_rs::ISO_8859_2),
        b"ISO-8859-3" | b"ISO-8859-4" | b"ISO-8859-5" | b"ISO-8859-6" | b"ISO-8859-7"
        | b"ISO-8859-8" | b"ISO-8859-9" | b"ISO-2022-JP" | b"SHIFT_JIS" | b"EUC-JP" => {
            match Charset::of(&upper) {
                Some(charset) => charset,
                None => return Known::Unknown,
            }
        }
        _ => return Known::Unknown,
    };
    Known::Charset(charset)
}

/// What the first bytes say. Source: `xmlDetectCharEncoding`, with the name that it logs.
pub fn detect(head: &[u8]) -> Option<(Charset, &'static str)> {
    let little = (Charset::Other(encoding_rs::UTF_16LE), "UTF-16");
    let big = (Charset::Other(encoding_rs::UTF_16BE), "UTF-16");
    match head {
        [b'<', b'?', b'x', b'm', ..] | [0xef, 0xbb, 0xbf, ..] => Some((Charset::Utf8, "UTF-8")),
        [b'<', 0, b'?', 0, ..] | [0xff, 0xfe, ..] => Some(little),
        [0, b'<', 0, b'?', ..] | [0xfe, 0xff, ..] => Some(big),
        _ => None,
    }
}

/// Decodes to UTF-8. Bytes that are no character are left out.
pub struct Decoder(Decodes);

enum Decodes {
    Latin1,
    Ascii,
    Iso(encoding_rs::Decoder),
    Other(encoding_rs::Decoder),
}

impl Decoder {
    /// Returns a decoder; `None` for UTF-8, which needs none.
    pub fn new(charset: Charset) -> Option<Decoder> {
        Some(Decoder(match charset {
            Charset::Utf8 => return None,
            Charset::Latin1 => Decodes::Latin1,
            Charset::Ascii => Decodes::Ascii,
            Charset::Iso(encoding) => Decodes::Iso(encoding.new_decoder_without_bom_handling()),
            Charset::Other(encoding) => Decodes::Other(encoding.new_decoder_without_bom_handling()),
        }))
    }

    /// Returns a decoder of UTF-8, which leaves out what is none.
    pub fn checking() -> Decoder {
        Decoder(Decodes::Other(encoding_rs::UTF_8.new_decoder_without_bom_handling()))
    }

    /// Appends what `input` decodes to, and returns how many sequences were left out.
    pub fn decode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        match &mut self.0 {
            Decodes::Latin1 => {
                decode_latin1(input, out);
                0
            }
            Decodes::Ascii => {
                let before = out.len();
                out.extend(input.iter().filter(|byte| byte.is_ascii()));
                input.len() - (out.len() - before)
            }
            Decodes::Iso(decoder) => {
                let parts = input.chunk_by(|one, other| is_control(*one) == is_control(*other));
                let mut left_out = 0;
                for part in parts {
                    match part.first().is_some_and(|byte| is_control(*byte)) {
                        true => decode_latin1(part, out),
                        false => left_out += decode_with(decoder, part, false, out),
                    }
                }
                left_out
            }
            Decodes::Other(decoder) => {
                let begin = out.len();
                let mut left_out = decode_with(decoder, input, last, out);
                if decoder.encoding().name().starts_with("windows-") {
                    left_out += drop_controls(out, begin);
                }
                left_out
            }
        }
    }
}

/// Whether a byte is a control where ISO has them.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0x80..=0x9f)
}

fn decode_latin1(input: &[u8], out: &mut Vec<u8>) {
    for byte in input {
        out.extend_from_slice(char::from(*byte).encode_utf8(&mut [0; 4]).as_bytes());
    }
}

fn decode_with(
    decoder: &mut encoding_rs::Decoder,
    mut input: &[u8],
    last: bool,
    out: &mut Vec<u8>,
) -> usize {
    let mut left_out = 0;
    loop {
        let most = decoder.max_utf8_buffer_length_without_replacement(input.len());
        let start = out.len();
        out.resize(start + most.unwrap_or(4096).max(16), 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let (result, read, written) = decoder.decode_to_utf8_without_replacement(input, room, last);
        out.truncate(start + written);
        input = input.get(read..).unwrap_or_default();
        match result {
            DecoderResult::InputEmpty => return left_out,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => left_out += 1,
        }
    }
}

/// Removes U+0080 to U+009F from `begin` on: the Encoding Standard has them for the bytes that a
/// character set of Windows does not define. Returns how many there were.
fn drop_controls(out: &mut Vec<u8>, begin: usize) -> usize {
    let is_control = |pair: &[u8]| matches!(pair, [0xc2, 0x80..=0x9f]);
    let tail = out.split_off(begin);
    let mut rest = tail.as_slice();
    let mut dropped = 0;
    while let Some(at) = rest.windows(2).position(is_control) {
        out.extend_from_slice(rest.get(..at).unwrap_or_default());
        rest = rest.get(at + 2..).unwrap_or_default();
        dropped += 1;
    }
    out.extend_from_slice(rest);
    dropped
}

/// Encodes UTF-8. Characters that the character set lacks are left out.
pub struct Encoder(Encodes, Vec<u8>);

enum Encodes {
    /// Characters up to this one, each as a byte.
    UpTo(u8),
    Iso(encoding_rs::Encoder),
    Other(encoding_rs::Encoder),
}

impl Encoder {
    /// Returns an encoder; `None` if UTF-8 stays as it is.
    pub fn new(charset: Charset) -> Option<Encoder> {
        let how = match charset {
            Charset::Utf8 => return None,
            Charset::Latin1 => Encodes::UpTo(u8::MAX),
            Charset::Ascii => Encodes::UpTo(0x7f),
            Charset::Iso(encoding) => Encodes::Iso(encoding.new_encoder()),
            Charset::Other(encoding) => Encodes::Other(encoding.new_encoder()),
        };
        Some(Encoder(how, Vec::new()))
    }

    /// Whether it can encode at all: UTF-16 can only be decoded.
    pub fn can(charset: Charset) -> bool {
        !matches!(charset, Charset::Other(encoding) if encoding.output_encoding() != encoding)
    }

    /// Appends what `input` encodes to, and returns how many characters were left out. An
    /// incomplete character at its end waits for the rest.
    pub fn encode(&mut self, input: &[u8], last: bool, out: &mut Vec<u8>) -> usize {
        self.1.extend_from_slice(input);
        let (valid, mut left_out) = match std::str::from_utf8(&self.1) {
            Ok(_) => (self.1.len(), 0),
            Err(error) => (error.valid_up_to(), usize::from(last)),
        };
        let rest = self.1.split_off(valid);
        let whole = std::mem::replace(&mut self.1, rest);
        let text = std::str::from_utf8(&whole).unwrap_or_default();
        left_out += match &mut self.0 {
            Encodes::UpTo(most) => encode_bytes(text, *most, out),
            Encodes::Iso(encoder) => encode_iso(encoder, text, out),
            Encodes::Other(encoder) => encode_with(encoder, text, last, out),
        };
        left_out
    }
}

fn encode_bytes(text: &str, most: u8, out: &mut Vec<u8>) -> usize {
    let mut left_out = 0;
    for char in text.chars() {
        match u8::try_from(u32::from(char)) {
            Ok(byte) if byte <= most => out.push(byte),
            _ => left_out += 1,
        }
    }
    left_out
}

fn encode_iso(encoder: &mut encoding_rs::Encoder, text: &str, out: &mut Vec<u8>) -> usize {
    let mut left_out = 0;
    for char in text.chars() {
        match u8::try_from(u32::from(char)) {
            Ok(byte) if byte.is_ascii() || is_control(byte) => out.push(byte),
            _ => {
                let before = out.len();
                left_out += encode_with(encoder, char.encode_utf8(&mut [0; 4]), false, out);
                if out.get(before).is_some_and(|byte| is_control(*byte)) {
                    // The other set has this character there.
                    out.truncate(before);
                    left_out += 1;
                }
            }
        }
    }
    left_out
}

fn encode_with(
    encoder: &mut encoding_rs::Encoder,
    mut text: &str,
    last: bool,
    out: &mut Vec<u8>,
) -> usize {
    let mut left_out = 0;
    loop {
        let most = encoder.max_buffer_length_from_utf8_without_replacement(text.len());
        let start = out.len();
        out.resize(start + most.unwrap_or(4096).max(16), 0);
        let room = out.get_mut(start..).unwrap_or_default();
        let (result, read, written) =
            encoder.encode_from_utf8_without_replacement(text, room, last);
        out.truncate(start + written);
        text = text.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return left_out,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(_) => left_out += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(charset: Charset, input: &[u8]) -> (String, usize) {
        let mut out = Vec::new();
        let mut left_out = 0;
        let Some(mut decoder) = Decoder::new(charset) else { panic!("UTF-8 has no decoder") };
        for (at, byte) in input.iter().enumerate() {
            left_out += decoder.decode(&[*byte], at + 1 == input.len(), &mut out);
        }
        (String::from_utf8(out).unwrap(), left_out)
    }

    #[test]
    fn bytes_become_characters() {
        assert_eq!(decoded(Charset::Latin1, b"a\xe9\x80"), ("a\u{e9}\u{80}".into(), 0));
        let cyrillic = Charset::of(b"windows-1251").unwrap();
        assert_eq!(decoded(cyrillic, b"\xcf\xf0"), ("\u{41f}\u{440}".into(), 0));
        let western = Charset::of(b"windows-1252").unwrap();
        assert_eq!(decoded(western, b"\x80\x81x"), ("\u{20ac}x".into(), 1));
        let japanese = Charset::of(b"Shift_JIS").unwrap();
        assert_eq!(decoded(japanese, b"\x82\xa0\xfdx"), ("\u{3042}x".into(), 1));
        let wide = Charset::of(b"utf-16le").unwrap();
        assert_eq!(decoded(wide, b"a\0b"), ("a".into(), 1));
    }

    #[test]
    fn characters_become_bytes() {
        let turkish = Charset::of(b"iso-8859-9").unwrap();
        assert_eq!(decoded(turkish, b"\xd0\x80"), ("\u{11e}\u{80}".into(), 0));
        let mut out = Vec::new();
        let mut encoder = Encoder::new(turkish).unwrap();
        assert_eq!(encoder.encode("Ğ€\u{80}a".as_bytes(), true, &mut out), 1);
        assert_eq!(out, b"\xd0\x80a");
        assert_eq!(decoded(Charset::Ascii, b"a\xe9"), ("a".into(), 1));
        out.clear();
        let mut encoder = Encoder::new(Charset::Latin1).unwrap();
        assert_eq!(encoder.encode("é€".as_bytes(), false, &mut out), 1);
        assert_eq!(encoder.encode(b"\xc3", false, &mut out), 0);
        assert_eq!(encoder.encode(b"\xa8", true, &mut out), 0);
        assert_eq!(out, b"\xe9\xe8");
        assert!(!Encoder::can(Charset::Other(encoding_rs::UTF_16LE)));
    }

    #[test]
    fn names_are_those_of_libxml2() {
        assert_eq!(known(b"iso latin 1"), Known::Charset(Charset::Latin1));
        assert_eq!(known(b"windows-1252"), Known::Unknown);
        assert_eq!(known(b""), Known::Nothing);
        assert_eq!(detect(b"\xff\xfea\0").map(|found| found.1), Some("UTF-16"));
        assert_eq!(detect(b"<html>"), None);
    }
}
