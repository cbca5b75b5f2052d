//! `AddDescription`, and truncation of descriptions to their column.

use conf::fnmatch::{Flags, fnmatch, has_wildcard};

use super::item::last_part;

/// A description of matching files.
#[derive(Clone, Debug)]
pub struct Description {
    pattern: Vec<u8>,
    /// Whether the pattern contains a slash and is matched with the whole path.
    of_path: bool,
    is_pattern: bool,
    text: Vec<u8>,
}

impl Description {
    /// `AddDescription text pattern`
    pub fn new(text: &[u8], pattern: &[u8]) -> Description {
        let of_path = pattern.contains(&b'/');
        let is_pattern = of_path || has_wildcard(pattern);
        let before: &[u8] = if of_path { b"*/" } else { b"*" };
        let pattern = match is_pattern {
            true => [before, pattern, b"*"].concat(),
            false => pattern.to_vec(),
        };
        Description { pattern, of_path, is_pattern, text: text.to_vec() }
    }

    fn fits(&self, path: &[u8]) -> bool {
        let name = if self.of_path { path } else { last_part(path) };
        match self.is_pattern {
            true => fnmatch(&self.pattern, name, Flags::default()),
            false => bstr::ByteSlice::find(name, &self.pattern).is_some(),
        }
    }
}

/// The first description whose pattern matches a path (`find_desc`).
pub fn find<'d>(descriptions: &'d [Description], path: &[u8]) -> Option<&'d [u8]> {
    let found = descriptions.iter().find(|description| description.fits(path))?;
    Some(&found.text)
}

/// Truncates a description to `width` characters; tags have no width, an entity has one
/// (`terminate_description`).
pub fn cut(text: &[u8], width: usize) -> Vec<u8> {
    let mut left = width;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        if left == 0 && *byte != b'<' {
            break;
        }
        let rest = text.get(at..).unwrap_or_default();
        let end = match byte {
            b'<' => rest.iter().position(|byte| *byte == b'>'),
            b'&' => {
                left = left.saturating_sub(1);
                rest.iter().position(|byte| *byte == b';')
            }
            _ => {
                left = left.saturating_sub(1);
                Some(0)
            }
        };
        match end {
            Some(end) => at += end + 1,
            // An unclosed tag or entity extends to the end of the text.
            None => return text.to_vec(),
        }
    }
    if left > 0 || at >= text.len() {
        return text.to_vec();
    }
    let mut short = text.get(..at.saturating_sub(1)).unwrap_or_default().to_vec();
    short.push(b'>');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_is_enough_and_a_path_is_whole_names() {
        let all = [
            Description::new(b"slash", b"sub/a.txt"),
            Description::new(b"part", b"le.html"),
            Description::new(b"stars", b"*.gz"),
        ];
        assert_eq!(find(&all, b"/x/example.html"), Some(&b"part"[..]));
        assert_eq!(find(&all, b"/x/sub/a.txt"), Some(&b"slash"[..]));
        assert_eq!(find(&all, b"/x/thesub/a.txt"), None);
        assert_eq!(find(&all, b"/x/a.gz.asc"), Some(&b"stars"[..]));
    }

    #[test]
    fn tags_take_no_room_and_entities_take_one() {
        assert_eq!(cut(b"short", 23), b"short");
        assert_eq!(cut(b"0123456789", 4), b"012>");
        assert_eq!(
            cut(b"<b>0123</b>56", 4),
            b"<b>0123</b>".split_last().unwrap().1.iter().copied().chain(*b">").collect::<Vec<_>>()
        );
        assert_eq!(cut(b"&auml;1234", 2), b"&auml;>");
        assert_eq!(cut(b"a & b without end", 3), b"a & b without end");
    }
}
