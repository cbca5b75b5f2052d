//! Parses type maps: header-like records, one for each variant, separated by empty lines.
//!
//! Source: `read_type_map`, `get_header_line`, `get_body` (modules/mappers/mod_negotiation.c).

use server::errorlog::Verbatim;
use wire::accept;
use wire::chars::is_space;

use super::variant::Variant;

/// Most bytes of a map. Apache limits only lines and bodies.
pub(super) const MAP_LIMIT_BYTES: u64 = 1 << 20;

/// The most variants of a map.
const VARIANT_LIMIT: usize = 1000;

/// Most bytes of a body in a map, including its end tag (`MAX_STRING_LEN`).
const BODY_LIMIT_BYTES: usize = 8192;

/// Why a map is invalid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BadMap {
    /// Apache's message number.
    pub number: u32,
    /// The message before and after the name of the map.
    pub message: [String; 2],
    /// Whether the preceding variants are usable.
    pub usable: bool,
}

/// Parses the variants of a map, up to the first error. `name` is the map's own file name, which
/// bodies inside it use.
pub(super) fn parse(map: &[u8], name: &[u8]) -> (Vec<Variant>, Option<BadMap>) {
    let mut reader = Reader { map, at: 0 };
    let mut variants = Vec::new();
    let mut record = Record::default();
    while variants.len() < VARIANT_LIMIT {
        match reader.next_line() {
            Line::Header(line) => {
                if let Err(bad) = record.header(&line, &mut reader, name) {
                    return (variants, Some(bad));
                }
            }
            Line::Empty => record.finish(&mut variants),
            Line::End => {
                record.finish(&mut variants);
                break;
            }
        }
    }
    (variants, None)
}

/// A line of a map.
enum Line {
    /// A header with its continuation lines.
    Header(Vec<u8>),
    /// Only blanks.
    Empty,
    /// The end of the map.
    End,
}

struct Reader<'m> {
    map: &'m [u8],
    at: usize,
}

impl<'m> Reader<'m> {
    fn rest(&self) -> &'m [u8] {
        self.map.get(self.at..).unwrap_or_default()
    }

    /// The next line with its end, up to the first NUL: Apache reads lines as C strings.
    fn take_line(&mut self) -> &'m [u8] {
        let rest = self.rest();
        let end = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        self.at += end;
        until_nul(rest.get(..end).unwrap_or_default())
    }

    fn next_line(&mut self) -> Line {
        if self.rest().is_empty() {
            return Line::End;
        }
        let mut line = self.take_line();
        while line.first() == Some(&b'#') {
            if self.rest().is_empty() {
                return Line::End;
            }
            line = self.take_line();
        }
        if line.iter().all(|byte| is_space(*byte)) {
            return Line::Empty;
        }
        let mut whole = line.to_vec();
        // The body follows the Body line.
        if whole.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"Body:")) {
            return Line::Header(whole);
        }
        loop {
            match self.rest().first() {
                Some(b'#') => {
                    self.take_line();
                }
                Some(byte) if is_space(*byte) => {
                    let before = self.at;
                    let more = self.take_line().trim_ascii_start();
                    if more.is_empty() {
                        self.at = before;
                        return Line::Header(whole);
                    }
                    whole.extend_from_slice(more);
                }
                _ => return Line::Header(whole),
            }
        }
    }

    /// Reads a body up to its end tag, and the rest of that line. Returns the body's offset and
    /// length.
    fn take_body(&mut self, tag: &[u8]) -> Option<(usize, usize)> {
        let start = self.at;
        let rest = self.rest();
        let near = until_nul(rest.get(..rest.len().min(BODY_LIMIT_BYTES)).unwrap_or_default());
        let length = bstr::ByteSlice::find(near, tag)?;
        self.at += length + tag.len();
        self.take_line();
        Some((start, length))
    }
}

fn until_nul(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// The record that is being read.
#[derive(Default)]
struct Record {
    variant: Variant,
    has_content: bool,
}

impl Record {
    /// Completes the record.
    fn finish(&mut self, variants: &mut Vec<Variant>) {
        let record = std::mem::take(self);
        if !record.variant.file_name.is_empty() && record.has_content {
            variants.push(record.variant);
        }
    }

    fn header(&mut self, line: &[u8], reader: &mut Reader<'_>, name: &[u8]) -> Result<(), BadMap> {
        let (field, value) = split(line)?;
        let value = without_comments(value);
        match field.as_slice() {
            b"uri" => self.variant.file_name = token(&value).to_vec(),
            b"content-type" => {
                self.variant.set_type(accept::parse_one(&value).0);
                self.has_content = true;
            }
            b"content-length" => {
                self.variant.bytes = Some(length(token(&value))?);
                self.has_content = true;
            }
            b"content-language" => {
                self.variant.languages = languages(&value);
                self.has_content = true;
            }
            b"content-encoding" => {
                self.variant.encoding = Some(token(&value).to_vec());
                self.has_content = true;
            }
            b"description" => {
                let text = value.trim_ascii_end();
                let spaced = text.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte });
                self.variant.description = spaced.collect();
            }
            b"body" => self.body(&value, reader, name)?,
            _ => {}
        }
        Ok(())
    }

    fn body(&mut self, value: &[u8], reader: &mut Reader<'_>, name: &[u8]) -> Result<(), BadMap> {
        let tag = value.trim_ascii_end();
        let Some((start, length)) = reader.take_body(tag) else {
            let before =
                format!("Syntax error in type map, no end tag '{}' found in ", Verbatim::new(tag));
            return Err(BadMap {
                number: 685,
                message: [before, " for Body: content.".to_owned()],
                usable: true,
            });
        };
        self.variant.body_at = Some(start as u64);
        self.variant.bytes = Some(length as u64);
        self.variant.file_name = name.to_vec();
        Ok(())
    }
}

/// The field's name in lower case, and its value.
fn split(line: &[u8]) -> Result<(Vec<u8>, &[u8]), BadMap> {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else {
        let before = "Syntax error in type map, no ':' in ".to_owned();
        let after = format!(" for header {}", Verbatim::new(line));
        return Err(BadMap { number: 681, message: [before, after], usable: false });
    };
    let name = line.get(..colon).unwrap_or_default().to_ascii_lowercase();
    let value = line.get(colon + 1..).unwrap_or_default();
    let start = value.iter().position(|byte| !is_space(*byte));
    let Some(value) = start.and_then(|start| value.get(start..)) else {
        let before = "Syntax error in type map --- no header body: ".to_owned();
        let after = format!(
            " for {}{}",
            Verbatim::new(&name),
            Verbatim::new(line.get(colon..).unwrap_or_default())
        );
        return Err(BadMap { number: 682, message: [before, after], usable: false });
    };
    Ok((name, value))
}

/// Replaces text in parentheses by blanks.
fn without_comments(value: &[u8]) -> Vec<u8> {
    let mut inside = false;
    let blanked = value.iter().map(|byte| {
        let starts = *byte == b'(';
        let ends = *byte == b')';
        let was_inside = inside;
        inside = (inside || starts) && !ends;
        if was_inside || inside { b' ' } else { *byte }
    });
    blanked.collect()
}

/// The first word, up to a blank, comma or semicolon; a quoted part belongs to it (`ap_get_token`).
fn token(value: &[u8]) -> &[u8] {
    let mut quoted = false;
    let value = value.trim_ascii_start();
    let end = value.iter().position(|byte| {
        quoted ^= *byte == b'"';
        !quoted && (is_space(*byte) || matches!(byte, b',' | b';'))
    });
    value.get(..end.unwrap_or(value.len())).unwrap_or_default()
}

fn length(text: &[u8]) -> Result<u64, BadMap> {
    let parsed = std::str::from_utf8(text).ok().filter(|text| !text.starts_with('+'));
    parsed.and_then(|text| text.parse().ok()).ok_or_else(|| BadMap {
        number: 684,
        message: [
            format!("Parse error in type map, Content-Length: '{}' in ", Verbatim::new(text)),
            " is invalid.".to_owned(),
        ],
        usable: true,
    })
}

fn languages(value: &[u8]) -> Vec<Vec<u8>> {
    let words = value.split(|byte| is_space(*byte) || matches!(byte, b',' | b';'));
    words.filter(|word| !word.is_empty()).map(<[u8]>::to_ascii_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn records_with_comments_and_continuations() {
        let map = b"# a map\nURI: doc (ument)\n\nURI: a.html\nContent-Type: text/html;\n  qs=0.5\n\
                    # between\nContent-language: EN, de\nDescription: \"one\"\n\n\
                    uri: b\ncontent-length: 7\n";
        let (variants, problem) = parse(map, b"x.var");
        assert_eq!(problem, None);
        assert_eq!(variants.len(), 2);
        let first = &variants[0];
        assert_eq!(first.file_name, b"a.html");
        assert_eq!((first.media_type.as_slice(), first.source_quality), (&b"text/html"[..], 0.5));
        assert_eq!(first.languages, [b"en".to_vec(), b"de".to_vec()]);
        assert_eq!(first.description, b"\"one\"");
        assert_eq!(variants[1].bytes, Some(7));
    }

    #[test]
    fn bodies_lie_in_the_map() {
        let map = b"Content-type: text/plain\nBody:--x--\none\ntwo\n--x-- and more\n\nURI: u\n\
                    Content-type: a/b\n";
        let (variants, problem) = parse(map, b"x.var");
        assert_eq!((variants.len(), problem), (2, None));
        let (start, length) = (variants[0].body_at.unwrap_or(0), variants[0].bytes.unwrap_or(0));
        let range = start as usize..(start + length) as usize;
        assert_eq!(map.get(range), Some(&b"one\ntwo\n"[..]));
        assert_eq!(variants[0].file_name, b"x.var");
    }

    #[test]
    fn what_is_no_map_is_refused() {
        let (variants, problem) = parse(b"This is none\n", b"x.var");
        assert!(variants.is_empty());
        assert_eq!(problem.map(|bad| (bad.number, bad.usable)), Some((681, false)));
        let (_, problem) = parse(b"URI:  \n", b"x.var");
        assert_eq!(problem.map(|bad| bad.number), Some(682));
        let (_, problem) = parse(b"Body: --x\nno end", b"x.var");
        assert_eq!(problem.map(|bad| bad.number), Some(685));
    }

    #[test]
    fn a_line_ends_where_a_nul_stands() {
        let (_, problem) = parse(b"packed\0name: value\n", b"x.var");
        assert_eq!(problem.map(|bad| bad.number), Some(681));
        let map = b"URI: a\0b\nContent-type: text/html\n\0: is empty\nURI: c\n";
        let (variants, problem) = parse(map, b"x.var");
        assert_eq!((variants.len(), problem), (1, None));
        assert_eq!(variants[0].file_name, b"a");
        let (_, problem) = parse(b"Body:--x\nno \0 --x\n", b"x.var");
        assert_eq!(problem.map(|bad| bad.number), Some(685));
    }

    proptest! {
        #[test]
        fn reading_ends_on_any_bytes(map: Vec<u8>) {
            let (variants, _) = parse(&map, b"x.var");
            for variant in variants {
                if let (Some(start), Some(length)) = (variant.body_at, variant.bytes) {
                    prop_assert!(start + length <= map.len() as u64);
                }
            }
        }

        #[test]
        fn reading_ends_on_lines(
            map in "((URI|Body|Content-type): ?[a-z;=()]{0,4}\n|\n| x\n|#\n){0,9}"
        ) {
            let _ = parse(map.as_bytes(), b"x.var");
        }
    }
}
