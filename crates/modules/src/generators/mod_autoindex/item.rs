//! Matches files to icons, alternate texts, files around a listing, and ignored files.
//!
//! Source: `push_item`, `find_item`, `ignore_entry`.

use conf::fnmatch::{is_match_expression, simple_match};
use server::merge::Merge;

/// The name that matches all directories.
pub const DIRECTORY: &[u8] = b"^^DIRECTORY^^";
/// The name for the icon column's heading.
pub const BLANK_ICON: &[u8] = b"^^BLANKICON^^";

/// The property that a pattern is matched with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The path (`AddIcon`).
    Path,
    /// The media type (`AddIconByType`).
    Type,
    /// The content encoding (`AddIconByEncoding`).
    Encoding,
    /// Only the section's path.
    Section,
}

/// A value for matching files.
#[derive(Clone, Debug)]
pub struct Item {
    by: By,
    /// The pattern; empty matches all.
    applies_to: Vec<u8>,
    /// The section's path with a star appended.
    path: Vec<u8>,
    /// The icon, text or name.
    pub value: Vec<u8>,
}

impl Item {
    /// Returns a value for `pattern` in the section of `path`.
    pub fn new(by: By, pattern: &[u8], path: Option<&[u8]>, value: &[u8]) -> Item {
        let is_alias = by == By::Path && pattern == b"**DIRECTORY**";
        let pattern = if is_alias { DIRECTORY } else { pattern };
        let applies_to = match by {
            By::Path if !is_match_expression(pattern) => [b"*", pattern].concat(),
            By::Encoding => pattern.to_ascii_lowercase(),
            _ => pattern.to_vec(),
        };
        let path = [path.unwrap_or_default(), b"*"].concat();
        Item { by, applies_to, path, value: value.to_vec() }
    }
}

/// The properties of a file.
#[derive(Clone, Copy, Debug, Default)]
pub struct Facts<'f> {
    /// Its path, or a name such as `^^DIRECTORY^^`.
    pub path: &'f [u8],
    /// Its media type.
    pub media_type: Option<&'f [u8]>,
    /// Its content encoding.
    pub encoding: Option<&'f [u8]>,
    /// Whether only the path counts, as for a directory.
    pub path_only: bool,
}

impl<'f> Facts<'f> {
    /// The properties of a path without a file.
    pub fn path(path: &'f [u8]) -> Facts<'f> {
        Facts { path, path_only: true, ..Facts::default() }
    }
}

/// The first value whose pattern matches.
pub fn find<'i>(items: &'i [Item], facts: &Facts<'_>) -> Option<&'i [u8]> {
    let found = items.iter().find(|item| matches(item, facts))?;
    Some(&found.value)
}

fn matches(item: &Item, facts: &Facts<'_>) -> bool {
    let special = facts.path.first() == Some(&b'^');
    if !special && !simple_match(&item.path, facts.path, false) {
        return false;
    }
    if item.applies_to.is_empty() {
        return true;
    }
    if item.by == By::Path || special {
        return simple_match(&item.applies_to, facts.path, false);
    }
    if facts.path_only {
        return false;
    }
    match (item.by, facts.encoding, facts.media_type) {
        (By::Type, None, Some(media_type)) => simple_match(&item.applies_to, media_type, true),
        (By::Encoding, Some(encoding), _) => simple_match(&item.applies_to, encoding, true),
        _ => false,
    }
}

/// `IndexIgnore` and `IndexIgnoreReset`
#[derive(Clone, Debug, Default)]
pub struct Ignored {
    /// Whether `IndexIgnoreReset On` discards outer patterns.
    pub reset: bool,
    /// Patterns, those of inner sections first.
    pub items: Vec<Item>,
}

impl Merge for Ignored {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.reset {
            return inner.clone();
        }
        let items = inner.items.iter().chain(&outer.items).cloned().collect();
        Ignored { reset: false, items }
    }
}

impl Ignored {
    /// Whether a path is ignored.
    pub fn has(&self, path: &[u8]) -> bool {
        let name = last_part(path);
        self.items.iter().any(|item| {
            simple_match(&item.path, path, false)
                && simple_match(last_part(&item.applies_to), name, false)
        })
    }
}

/// The text after the last slash.
pub fn last_part(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_name_matches_at_the_end() {
        let items = [Item::new(By::Path, b".txt", Some(b"/htdocs/"), b"text")];
        assert_eq!(find(&items, &Facts::path(b"/htdocs/a.txt")), Some(&b"text"[..]));
        assert_eq!(find(&items, &Facts::path(b"/other/a.txt")), None);
        assert_eq!(find(&items, &Facts::path(b"/htdocs/a.txt2")), None);
    }

    #[test]
    fn an_encoding_comes_before_a_type() {
        let items = [
            Item::new(By::Type, b"text/*", None, b"type"),
            Item::new(By::Encoding, b"X-gzip", None, b"packed"),
        ];
        let plain = Facts { path: b"/a", media_type: Some(b"text/plain"), ..Facts::default() };
        assert_eq!(find(&items, &plain), Some(&b"type"[..]));
        let packed = Facts { encoding: Some(b"x-gzip"), ..plain };
        assert_eq!(find(&items, &packed), Some(&b"packed"[..]));
        assert_eq!(find(&items, &Facts { path_only: true, ..plain }), None);
    }

    #[test]
    fn carets_stand_for_what_has_no_name() {
        let items = [Item::new(By::Path, b"**DIRECTORY**", Some(b"/x/"), b"folder")];
        assert_eq!(find(&items, &Facts::path(DIRECTORY)), Some(&b"folder"[..]));
        assert_eq!(find(&items, &Facts::path(BLANK_ICON)), None);
    }

    #[test]
    fn only_the_last_part_of_a_pattern_is_ignored_by() {
        let items = vec![Item::new(By::Section, b"foo/*.bak", Some(b"/x/"), b"")];
        let ignored = Ignored { reset: false, items };
        assert!(ignored.has(b"/x/y/a.bak") && !ignored.has(b"/z/a.bak"));
        assert!(!ignored.has(b"/x/a.bak2"));
    }
}
