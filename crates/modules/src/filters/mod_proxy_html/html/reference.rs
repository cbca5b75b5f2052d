//! References to characters and entities: `&#65;`, `&#x41;`, `&eacute;`.

use super::cursor::{Cursor, Starved, is_char};
use super::entities;

/// What stands at an ampersand.
pub enum Reference<'t> {
    /// A character; 0 if the number is none's.
    Char(u32),
    /// An ampersand and a name that is no entity's, or lacks its semicolon.
    Name(&'t [u8]),
    /// An ampersand alone.
    Ampersand,
}

/// Reads the reference at the cursor. Source: `htmlParseCharRef`, `htmlParseEntityRef`.
pub fn read<'t>(cursor: &mut Cursor<'t>) -> Result<Reference<'t>, Starved> {
    if cursor.ahead(1)? == b'#' {
        return Ok(Reference::Char(number(cursor)?));
    }
    cursor.skip(1);
    let Some(name) = name(cursor)? else { return Ok(Reference::Ampersand) };
    if cursor.here()? == b';'
        && let Some(value) = entities::lookup(name)
    {
        cursor.skip(1);
        return Ok(Reference::Char(value));
    }
    Ok(Reference::Name(name))
}

fn number(cursor: &mut Cursor<'_>) -> Result<u32, Starved> {
    const BEYOND: u32 = 0x11_0000;
    let radix = if matches!(cursor.ahead(2)?, b'x' | b'X') { 16 } else { 10 };
    cursor.skip(if radix == 16 { 3 } else { 2 });
    let mut value = 0;
    while let Some(digit) = char::from(cursor.here()?).to_digit(radix) {
        if value < BEYOND {
            value = value * radix + digit;
        }
        cursor.skip(1);
    }
    if cursor.here()? == b';' {
        cursor.skip(1);
    }
    Ok(if is_char(value) { value } else { 0 })
}

/// A name in which case counts. At the very end of a document it is none. Source: `htmlParseName`.
pub fn name<'t>(cursor: &mut Cursor<'t>) -> Result<Option<&'t [u8]>, Starved> {
    let start = cursor.at;
    let mut end = *cursor;
    loop {
        let byte = end.here()?;
        let is_first = end.at == start;
        let belongs = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b':' => true,
            b'0'..=b'9' | b'-' | b'.' => !is_first,
            0x80.. => is_letter(&end, is_first),
            _ => false,
        };
        if !belongs {
            break;
        }
        end.skip(end.char().map_or(1, |(_, length)| length));
    }
    let name = end.since(start);
    if name.is_empty() || (end.is_at_end() && name.is_ascii()) {
        return Ok(None);
    }
    *cursor = end;
    Ok(Some(name))
}

/// Whether the character may be in a name of XML.
fn is_letter(cursor: &Cursor<'_>, is_first: bool) -> bool {
    let Some((value, _)) = cursor.char() else { return false };
    let Some(char) = char::from_u32(value) else { return false };
    char.is_alphabetic() || (!is_first && (char.is_numeric() || char == '\u{b7}'))
}
