//! Character sets that a page names in a `<meta>`.

use super::Parser;
use super::cursor::is_blank;
use super::tag::StartTag;
use crate::filters::mod_xml2enc::charset::{self, Charset, Known};

impl Parser {
    /// Follows the character set that a `<meta>` names. Source: `htmlCheckMeta`.
    pub(super) fn note_charset(&mut self, tag: &StartTag) {
        let mut names_type = false;
        let mut content = None;
        for (name, value) in &tag.attributes {
            let Some(value) = value else { continue };
            match name.as_slice() {
                b"http-equiv" if value.eq_ignore_ascii_case(b"Content-Type") => names_type = true,
                b"charset" => self.name_charset(value, tag.attributes_end),
                b"content" => content = Some(value),
                _ => {}
            }
        }
        if names_type && let Some(named) = content.and_then(|content| charset_of(content)) {
            self.name_charset(named, tag.attributes_end);
        }
    }

    /// Source: `htmlCheckEncodingDirect`.
    fn name_charset(&mut self, name: &[u8], from: usize) {
        if std::mem::replace(&mut self.has_charset, true) {
            return;
        }
        let skipped = name.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let name = name.get(skipped..).unwrap_or_default();
        let charset = match charset::known(name) {
            Known::Nothing => return,
            // Its own bytes were ASCII.
            Known::Charset(Charset::Other(wide)) if !wide.is_ascii_compatible() => return,
            Known::Charset(charset) => charset,
            Known::Unknown => match Charset::of(name) {
                Some(charset) => charset,
                None => return,
            },
        };
        self.input.switch(from, charset);
    }
}

/// The character set in the value of a `Content-Type`. Source: `htmlCheckEncoding`.
fn charset_of(content: &[u8]) -> Option<&[u8]> {
    let lower = content.to_ascii_lowercase();
    let at = lower.windows(7).position(|word| word == b"charset")? + 7;
    let from = match content.get(at) {
        Some(byte) if is_blank(*byte) => content.iter().position(|byte| *byte == b'=')?,
        _ => at,
    };
    content.get(from..)?.strip_prefix(b"=")
}
