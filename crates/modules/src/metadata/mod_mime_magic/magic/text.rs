//! What is recognised without a magic file: texts by their words, and archives of tar.
//!
//! Source: `ascmagic`, `is_tar` (modules/metadata/mod_mime_magic.c).

use super::{Sample, is_space};

/// Bytes that are searched for words (`SMALL_HOWMANY`).
const WORDS_BYTES: usize = 1024;

/// Bytes of a header of tar, and the place of its checksum.
const RECORD_BYTES: usize = 512;
const CHECKSUM: std::ops::Range<usize> = 148..156;

const HTML: &[u8] = b"text/html";
const PLAIN: &[u8] = b"text/plain";
const MAIL: &[u8] = b"message/rfc822";
const NEWS: &[u8] = b"message/news";

/// Words, each of which decides. `<!DOCTYPE HTML` of Apache's list has a blank, so it never is one.
const WORDS: [(&[u8], &[u8]); 39] = [
    (b"<html>", HTML),
    (b"<HTML>", HTML),
    (b"<head>", HTML),
    (b"<HEAD>", HTML),
    (b"<title>", HTML),
    (b"<TITLE>", HTML),
    (b"<h1>", HTML),
    (b"<H1>", HTML),
    (b"<!--", HTML),
    (b"/*", PLAIN),
    (b"#include", PLAIN),
    (b"char", PLAIN),
    (b"The", PLAIN),
    (b"the", PLAIN),
    (b"double", PLAIN),
    (b"extern", PLAIN),
    (b"float", PLAIN),
    (b"real", PLAIN),
    (b"struct", PLAIN),
    (b"union", PLAIN),
    (b"CFLAGS", PLAIN),
    (b"LDFLAGS", PLAIN),
    (b"all:", PLAIN),
    (b".PRECIOUS", PLAIN),
    (b".ascii", PLAIN),
    (b".asciiz", PLAIN),
    (b".byte", PLAIN),
    (b".even", PLAIN),
    (b".globl", PLAIN),
    (b"clr", PLAIN),
    (b"(input,", PLAIN),
    (b"dcl", PLAIN),
    (b"Received:", MAIL),
    (b">From", MAIL),
    (b"Return-Path:", MAIL),
    (b"Cc:", MAIL),
    (b"Newsgroups:", NEWS),
    (b"Path:", NEWS),
    (b"Organization:", NEWS),
];

/// Identifies a sample; what it prints. `None` if nothing is known of it.
pub(super) fn identify(sample: &Sample) -> Option<Vec<u8>> {
    let bytes = sample.bytes();
    if is_troff(bytes) {
        return Some(b"application/x-troff".to_vec());
    }
    // A comment of Fortran.
    if matches!(bytes, [b'c' | b'C', blank, ..] if is_space(*blank)) {
        return Some(PLAIN.to_vec());
    }
    let searched = bytes.get(..WORDS_BYTES).unwrap_or(bytes);
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0c);
    let mut words = super::c_string(searched).split(is_blank);
    let known = words.find_map(|word| WORDS.iter().find(|(known, _)| *known == word));
    if let Some((_, media_type)) = known {
        let has_escapes = searched.contains(&0x1b);
        // Apache takes a part of this remark for a content coding.
        let remark: &[u8] = if has_escapes { b" (with escape sequences)" } else { b"" };
        return Some([media_type, remark].concat());
    }
    is_tar(bytes).then(|| b"application/x-tar".to_vec())
}

/// A dot and two letters. Apache means to recognise comments (`.\"`) too, but does not.
fn is_troff(bytes: &[u8]) -> bool {
    let Some(rest) = bytes.strip_prefix(b".") else { return false };
    let mut rest = rest.iter().copied().skip_while(|byte| is_space(*byte));
    let is_first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'\\';
    rest.next().is_some_and(is_first)
        && rest.next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn is_tar(bytes: &[u8]) -> bool {
    let Some(record) = bytes.get(..RECORD_BYTES) else { return false };
    let Some(field) = record.get(CHECKSUM) else { return false };
    let sum = |bytes: &[u8]| bytes.iter().map(|byte| i64::from(*byte)).sum::<i64>();
    // The checksum itself counts as blanks.
    let blanks = i64::from(b' ') * 8;
    octal(field) == Some(sum(record) - sum(field) + blanks)
}

/// Source: `from_oct`
fn octal(field: &[u8]) -> Option<i64> {
    let start = field.iter().position(|byte| !is_space(*byte))?;
    let digits = field.get(start..)?;
    let count = digits.iter().take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    if digits.get(count).is_some_and(|byte| *byte != 0 && !is_space(*byte)) {
        return None;
    }
    let digits = digits.iter().take(count);
    Some(digits.fold(0, |value, digit| value * 8 + i64::from(digit - b'0')))
}
