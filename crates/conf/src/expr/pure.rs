//! Functions and file tests that do not depend on the request.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use md5::{Digest, Md5};
use sha1::Sha1;

use super::ast::{Pure, Unary};
use super::eval::EvalError;

/// Most bytes that `file()` reads; Apache's `MAX_FILE_SIZE` of util_expr_eval.c.
pub(super) const MAX_FILE_BYTES: u64 = 10 * 1024 * 1024;

/// Appends the function's value.
pub(super) fn apply(function: Pure, argument: &[u8], out: &mut Vec<u8>) -> Result<(), EvalError> {
    match function {
        Pure::ToLower => out.extend(argument.iter().map(u8::to_ascii_lowercase)),
        Pure::ToUpper => out.extend(argument.iter().map(u8::to_ascii_uppercase)),
        Pure::Escape => escape(argument, out),
        Pure::Unescape => unescape(argument, out),
        Pure::Base64 => out.extend_from_slice(STANDARD.encode(argument).as_bytes()),
        Pure::Unbase64 => unbase64(argument, out),
        Pure::Md5 => hex(&Md5::digest(argument), out),
        Pure::Sha1 => hex(&Sha1::digest(argument), out),
        Pure::File => read_file(argument, out)?,
        Pure::FileSize => out.extend_from_slice(file_size(argument).to_string().as_bytes()),
        Pure::Ldap => escape_ldap(argument, out),
    }
    Ok(())
}

/// `-T`: neither empty, `0`, `off`, `no` nor `false`.
pub(super) fn is_truthy(text: &[u8]) -> bool {
    let falsy: [&[u8]; 5] = [b"", b"0", b"off", b"no", b"false"];
    !falsy.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Evaluates the operators that test a file.
pub(super) fn file_test(operator: Unary, name: &[u8]) -> bool {
    let path = Path::new(OsStr::from_bytes(name));
    match operator {
        Unary::SymbolicLink => {
            fs::symlink_metadata(path).is_ok_and(|data| data.file_type().is_symlink())
        }
        Unary::Executable => {
            fs::symlink_metadata(path).is_ok_and(|data| data.permissions().mode() & 0o111 != 0)
        }
        _ => fs::metadata(path).is_ok_and(|data| match operator {
            Unary::Directory => data.is_dir(),
            Unary::RegularFile => data.is_file(),
            Unary::FileNotEmpty => data.is_file() && data.len() > 0,
            _ => true,
        }),
    }
}

/// Escapes bytes that are not allowed in a path as `%xx`.
///
/// Source: `ap_os_escape_path` with `partial`, which is `ap_escape_uri`.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(*byte),
            b'$' | b'-' | b'_' | b'.' | b'+' | b'!' | b'*' | b'\'' | b'(' | b')' | b',' | b':'
            | b';' | b'@' | b'&' | b'=' | b'/' | b'~' => out.push(*byte),
            _ => {
                out.push(b'%');
                hex(&[*byte], out);
            }
        }
    }
}

/// Decodes `%xx`, except `%2F`. A malformed escape or `%00` makes the result empty.
///
/// Source: `ap_unescape_url_keep2f(text, 0)`.
fn unescape(text: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        if byte != b'%' {
            out.push(byte);
            rest = after;
            continue;
        }
        let pair = after.first().zip(after.get(1));
        match pair.and_then(|(high, low)| Some(hex_value(*high)? * 16 + hex_value(*low)?)) {
            None | Some(0) => {
                out.truncate(start);
                return;
            }
            Some(b'/') => out.extend_from_slice(rest.get(..3).unwrap_or(&[])),
            Some(decoded) => out.push(decoded),
        }
        rest = after.get(2..).unwrap_or(&[]);
    }
}

/// Decodes up to the first byte that is not base64, and up to the first NUL, as APR does.
fn unbase64(text: &[u8], out: &mut Vec<u8>) {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut window: u32 = 0;
    let mut bits = 0;
    for byte in text {
        let Some(value) = ALPHABET.iter().position(|known| known == byte) else { break };
        window = (window << 6) | u32::try_from(value).unwrap_or(0);
        bits += 6;
        if bits >= 8 {
            bits -= 8;
            let decoded = u8::try_from((window >> bits) & 0xff).unwrap_or(0);
            if decoded == 0 {
                return;
            }
            out.push(decoded);
        }
    }
}

fn read_file(name: &[u8], out: &mut Vec<u8>) -> Result<(), EvalError> {
    let shown = || String::from_utf8_lossy(name).into_owned();
    let path = Path::new(OsStr::from_bytes(name));
    let file = match regular::open(path) {
        Ok(file) => file,
        // Apache reads as many bytes as the file's length: none of a device. A directory has a
        // length but can't be read.
        Err(error) if error.raw_os_error() == Some(regular::NOT_REGULAR.raw_os_error()) => {
            return if path.is_dir() { Err(EvalError::CannotRead(shown())) } else { Ok(()) };
        }
        Err(_) => return Err(EvalError::CannotOpen(shown())),
    };
    let length = file.metadata().map_or(0, |data| data.len());
    if length > MAX_FILE_BYTES {
        return Err(EvalError::FileTooLarge(shown()));
    }
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes).map_err(|_| EvalError::CannotRead(shown()))?;
    // In Apache, strings end at NUL.
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    out.extend_from_slice(bytes.get(..end).unwrap_or(&bytes));
    Ok(())
}

fn file_size(name: &[u8]) -> u64 {
    let path = Path::new(OsStr::from_bytes(name));
    fs::metadata(path).ok().filter(|data| data.is_file()).map_or(0, |data| data.len())
}

/// Escapes special characters of a distinguished name or a filter as `\xx` (RFC 4514, RFC 4515).
fn escape_ldap(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        let special =
            matches!(byte, b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | b'*' | b'(' | b')');
        if special || !(0x20..0x7f).contains(byte) {
            out.push(b'\\');
            hex(&[*byte], out);
        } else {
            out.push(*byte);
        }
    }
}

fn hex(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            out.push(if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 });
        }
    }
}

fn hex_value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' => Some(digit - b'A' + 10),
        _ => None,
    }
}
