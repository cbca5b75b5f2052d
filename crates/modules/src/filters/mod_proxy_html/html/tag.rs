//! Tags: names and attributes.

use std::collections::HashSet;

use super::cursor::{Cursor, Starved, is_blank, put};
use super::reference::{self, Reference};

/// Most bytes of a name; the rest is the next name.
const NAME_BYTES: usize = 100;

/// More attributes are compared by their hashes.
const FEW: usize = 16;

/// An attribute: its name in lower case, and its value if it has one.
pub type Attribute = (Vec<u8>, Option<Vec<u8>>);

/// A start tag.
#[derive(Debug, Default)]
pub struct StartTag {
    /// The name in lower case.
    pub name: Vec<u8>,
    /// The attributes; the first of a name counts.
    pub attributes: Vec<Attribute>,
    /// How the tag ends.
    pub end: TagEnd,
    /// Where the attributes end: before `>` or `/>`.
    pub attributes_end: usize,
}

/// How a start tag ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagEnd {
    /// With `>`.
    #[default]
    Open,
    /// With `/>`.
    Closed,
    /// With the document, or with a NUL.
    Broken,
}

/// Reads the start tag at the cursor. `wrong` is the place of the first byte that is not UTF-8.
/// Source: `htmlParseStartTag`.
pub fn start(cursor: &mut Cursor<'_>, wrong: Option<usize>) -> Result<StartTag, Starved> {
    cursor.skip(1);
    let mut tag = StartTag { name: name(cursor)?, ..StartTag::default() };
    let mut seen = HashSet::new();
    cursor.skip_blanks()?;
    loop {
        match cursor.here()? {
            0 => {
                (tag.end, tag.attributes_end) = (TagEnd::Broken, cursor.at);
                return Ok(tag);
            }
            b'>' => {
                (tag.end, tag.attributes_end) = (TagEnd::Open, cursor.at);
                cursor.skip(1);
                return Ok(tag);
            }
            b'/' if cursor.ahead(1)? == b'>' => {
                (tag.end, tag.attributes_end) = (TagEnd::Closed, cursor.at);
                cursor.skip(2);
                return Ok(tag);
            }
            _ => {}
        }
        match attribute(cursor, wrong)? {
            Some(found) => add(&mut tag.attributes, &mut seen, found),
            None => skip_bogus(cursor)?,
        }
        cursor.skip_blanks()?;
    }
}

/// Adds an attribute unless there is one of its name.
fn add(attributes: &mut Vec<Attribute>, seen: &mut HashSet<Vec<u8>>, found: Attribute) {
    let is_new = if attributes.len() < FEW {
        attributes.iter().all(|(name, _)| *name != found.0)
    } else {
        if seen.is_empty() {
            seen.extend(attributes.iter().map(|(name, _)| name.clone()));
        }
        seen.insert(found.0.clone())
    };
    if is_new {
        attributes.push(found);
    }
}

/// Skips what is no attribute, up to the next blank or the end of the tag.
fn skip_bogus(cursor: &mut Cursor<'_>) -> Result<(), Starved> {
    loop {
        match cursor.here()? {
            0 | b'>' => return Ok(()),
            byte if is_blank(byte) => return Ok(()),
            b'/' if cursor.ahead(1)? == b'>' => return Ok(()),
            _ => cursor.skip(1),
        }
    }
}

/// A name, which is lowered; empty if there is none. Source: `htmlParseHTMLName`.
pub fn name(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, Starved> {
    let mut name = Vec::new();
    while name.len() < NAME_BYTES {
        let byte = cursor.here()?;
        let belongs = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b':' | b'.' => true,
            b'0'..=b'9' | b'-' => !name.is_empty(),
            _ => false,
        };
        if !belongs {
            break;
        }
        name.push(byte.to_ascii_lowercase());
        cursor.skip(1);
    }
    Ok(name)
}

fn attribute(cursor: &mut Cursor<'_>, wrong: Option<usize>) -> Result<Option<Attribute>, Starved> {
    let name = name(cursor)?;
    if name.is_empty() {
        return Ok(None);
    }
    cursor.skip_blanks()?;
    if cursor.here()? != b'=' {
        return Ok(Some((name, None)));
    }
    cursor.skip(1);
    cursor.skip_blanks()?;
    let quote = match cursor.here()? {
        quote @ (b'"' | b'\'') => {
            cursor.skip(1);
            quote
        }
        _ => 0,
    };
    let mut value = value(cursor, quote, wrong)?;
    if quote != 0 && cursor.here()? == quote {
        cursor.skip(1);
    }
    // libxml2 hands values over as C strings.
    if let Some(end) = value.iter().position(|byte| *byte == 0) {
        value.truncate(end);
    }
    Ok(Some((name, Some(value))))
}

/// A value up to its quote, or to a blank or `>` without one. Source: `htmlParseHTMLAttribute`.
fn value(cursor: &mut Cursor<'_>, quote: u8, wrong: Option<usize>) -> Result<Vec<u8>, Starved> {
    let mut value = Vec::new();
    loop {
        let byte = cursor.here()?;
        if byte == 0 || (quote != 0 && byte == quote) {
            return Ok(value);
        }
        if quote == 0 && (byte == b'>' || is_blank(byte)) {
            return Ok(value);
        }
        if byte != b'&' {
            let length = cursor.char().map_or(1, |(_, length)| length);
            let start = cursor.at;
            cursor.skip(length);
            match cursor.since(start) {
                [first, ..] if wrong == Some(start) => put(u32::from(*first), &mut value),
                char => value.extend_from_slice(char),
            }
            continue;
        }
        match reference::read(cursor)? {
            Reference::Char(char) => put(char, &mut value),
            Reference::Ampersand => value.push(b'&'),
            Reference::Name(name) => {
                value.push(b'&');
                value.extend_from_slice(name);
            }
        }
    }
}

/// Reads the end tag at the cursor; `None` if it has no name. Source: `htmlParseEndTag`.
pub fn end(cursor: &mut Cursor<'_>) -> Result<Option<Vec<u8>>, Starved> {
    cursor.skip(2);
    let name = name(cursor)?;
    if name.is_empty() {
        return Ok(None);
    }
    cursor.skip_until(|byte| byte == b'>')?;
    if cursor.here()? == b'>' {
        cursor.skip(1);
    }
    Ok(Some(name))
}
