//! Encodings and decodings of `echo` and `set`.
//!
//! Source: `handle_echo`, `handle_set`

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use bstr::ByteSlice;
use wire::uri::{Slashes, unescape_url};

use super::entity;

/// Base64 whose padding and last bits may be anything.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// The names in a list such as `url,base64`.
pub fn names(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| matches!(byte, b',' | b' ' | b'\t')).filter(|name| !name.is_empty())
}

/// Removes an encoding; `None` if its name is unknown.
pub fn decode(name: &[u8], text: Vec<u8>) -> Option<Vec<u8>> {
    Some(match name.to_ascii_lowercase().as_slice() {
        b"none" => text,
        b"url" => unescaped(text),
        b"urlencoded" => {
            let spaced = text.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte });
            unescaped(spaced.collect())
        }
        b"entity" => entity::decoded(&text),
        b"base64" => from_base64(&text),
        _ => return None,
    })
}

/// Adds an encoding; `None` if its name is unknown.
pub fn encode(name: &[u8], text: Vec<u8>) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    match name.to_ascii_lowercase().as_slice() {
        b"none" => return Some(text),
        b"url" => wire::escape::path(&mut out, &text),
        b"urlencoded" => wire::escape::urlencoded(&mut out, &text),
        b"entity" => wire::escape::html(&mut out, &text),
        b"base64" => out = STANDARD.encode(&text).into_bytes(),
        _ => return None,
    }
    Some(out)
}

/// The text without `%` escapes. One that is invalid stays as it is; a NUL ends the text.
///
/// Source: `ap_unescape_url`
pub fn unescaped(mut text: Vec<u8>) -> Vec<u8> {
    // Whatever it contains.
    let _ = unescape_url(&mut text, Slashes::Decode);
    up_to_nul(text)
}

/// Decodes up to the first byte that is no digit of base64.
fn from_base64(text: &[u8]) -> Vec<u8> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let length = text.iter().position(|byte| !is_digit(byte)).unwrap_or(text.len());
    // A single digit of the last four is no byte.
    let length = if length % 4 == 1 { length - 1 } else { length };
    let digits = text.get(..length).unwrap_or_default();
    up_to_nul(LENIENT.decode(digits).unwrap_or_default())
}

fn up_to_nul(mut text: Vec<u8>) -> Vec<u8> {
    text.truncate(text.find_byte(0).unwrap_or(text.len()));
    text
}
