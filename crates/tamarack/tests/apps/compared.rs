//! The comparison of what a browser has seen at two servers.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;

use flate2::read::GzDecoder;
use regex::Regex;

use crate::browser::Seen;

/// A pattern and what replaces it.
pub type Mask = (&'static str, &'static str);

/// The framing of a program's response: decided by whether its end arrives in time.
pub const FRAMING: Mask = ("\\b(Content-Length: [0-9]+|Transfer-Encoding: chunked)\n", "");

/// Bodies above this are compared by a hash.
const TEXT_BYTES: usize = 1 << 20;

/// Describes each response that differs.
pub fn differences(
    expected: &([String; 3], Vec<Seen>),
    found: &([String; 3], Vec<Seen>),
    masks: &[Mask],
) -> Vec<String> {
    let masks: Vec<_> = masks.iter().map(|(mask, by)| (Regex::new(mask).unwrap(), *by)).collect();
    let (names, seen) = expected;
    let (own_names, own_seen) = found;
    assert_eq!(seen.len(), own_seen.len(), "the script asks the same");
    let pairs = seen.iter().zip(own_seen).map(|(seen, own)| {
        let texts =
            [(names, seen), (own_names, own)].map(|(names, seen)| text(names, seen, &masks));
        (&own.request, texts)
    });
    let differing = pairs.filter(|(_, [expected, found])| expected != found);
    differing.map(|(request, [expected, found])| described(request, &expected, &found)).collect()
}

fn text(names: &[String; 3], seen: &Seen, masks: &[(Regex, &str)]) -> String {
    let (status, fields) = seen.head.split_once("\r\n").unwrap();
    let mut fields: Vec<&str> = fields.lines().collect();
    fields.retain(|line| !line.starts_with("Date:") && !line.starts_with("Server:"));
    let mut content = Cow::from(&seen.body);
    // Compressed bytes differ, and so do their number and how they are framed.
    if fields.contains(&"Content-Encoding: gzip") {
        content = Cow::from(decompressed(&seen.body));
        fields.retain(|line| !line.starts_with("Content-Length:"));
        fields.retain(|line| !line.starts_with("Transfer-Encoding:"));
    }
    let mut body = match content.len() {
        length if length > TEXT_BYTES => {
            let mut hasher = DefaultHasher::new();
            content.hash(&mut hasher);
            format!("{length} bytes, {:x}", hasher.finish())
        }
        _ => String::from_utf8_lossy(&content).into_owned(),
    };
    // The wording of the server's own pages differs.
    if body.starts_with("<!DOCTYPE") && body.contains("</title>\n</head><body>\n<h1>") {
        body = "a page of the server's own".to_owned();
        fields.retain(|line| !line.starts_with("Content-Length:"));
    }
    fields.sort_unstable();
    let mut text = format!("{}\n{status}\n{}\n\n{body}", seen.request, fields.join("\n"));
    for (name, by) in names.iter().zip(["ROOT", "PORT", "PORT"]) {
        text = text.replace(name, by);
    }
    for (mask, by) in masks {
        text = mask.replace_all(&text, *by).into_owned();
    }
    text
}

/// The content of a whole gzip file.
fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut content).unwrap();
    content
}

/// The lines that differ; long ones from where they do.
fn described(request: &str, expected: &str, found: &str) -> String {
    let missing = |text: &str, other: &str| -> Vec<String> {
        let other: Vec<&str> = other.lines().collect();
        let lines = text.lines().filter(|line| !other.contains(line));
        lines.take(20).map(str::to_owned).collect()
    };
    let first = || expected.lines().zip(found.lines()).find(|(line, other)| line != other);
    let (expected, found) = match (missing(expected, found), missing(found, expected)) {
        // Only their order or number differs.
        (none, also) if none.is_empty() && also.is_empty() => {
            let (line, other) = first().unwrap_or_default();
            (vec![line.to_owned()], vec![other.to_owned()])
        }
        both => both,
    };
    let shown = |lines: &[String], others: &[String], sign: &str| -> String {
        let others = others.iter().map(String::as_str).chain(std::iter::repeat(""));
        let lines = lines.iter().zip(others);
        lines.map(|(line, other)| format!("{sign} {}\n", from_difference(line, other))).collect()
    };
    let request = request.trim();
    format!("{request}\n{}{}", shown(&expected, &found, "---"), shown(&found, &expected, "+++"))
}

/// A line without most of what precedes the difference, and without most of what follows.
fn from_difference(line: &str, other: &str) -> String {
    let same = line.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    line.chars().skip(same.saturating_sub(40)).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compressed_bodies_are_compared_by_content() {
        let page = |content: &str, level| {
            let mut body = Vec::new();
            let level = flate2::Compression::new(level);
            let mut encoder = flate2::read::GzEncoder::new(content.as_bytes(), level);
            encoder.read_to_end(&mut body).unwrap();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n",
                body.len()
            );
            (
                ["ROOT", "PORT", "PORT"].map(str::to_owned),
                vec![Seen { request: "GET /".to_owned(), head, body }],
            )
        };
        let content = "a page ".repeat(99);
        assert!(differences(&page(&content, 1), &page(&content, 9), &[]).is_empty());
        let found = differences(&page("a page", 9), &page("a pale", 9), &[]);
        assert_eq!(found, ["GET /\n--- a page\n+++ a pale\n"]);
    }
}
