//! A line of a listing, and the order of lines.
//!
//! Source: `dsortf`.

use std::cmp::Ordering;

use super::natural;
use super::options::Flags;
use super::query::{Column, Wanted};

/// A line.
#[derive(Clone, Debug, Default)]
pub struct Entry {
    /// The name, with a trailing slash for a directory, and a leading one for the parent.
    pub name: Vec<u8>,
    /// The icon's URL.
    pub icon: Option<Vec<u8>>,
    /// The icon's alternate text.
    pub alt: Option<Vec<u8>>,
    /// The description.
    pub description: Option<Vec<u8>>,
    /// The length of a file in bytes.
    pub size: Option<u64>,
    /// The modification time in microseconds since the epoch, if it is shown.
    pub mtime_us: Option<u64>,
    /// Whether it precedes files (`FoldersFirst`).
    pub is_folder: bool,
}

impl Entry {
    fn is_parent(&self) -> bool {
        self.name.first() == Some(&b'/')
    }
}

/// Sorts lines.
pub fn sort(entries: &mut [Entry], wanted: &Wanted) {
    entries.sort_by(|a, b| {
        let fixed = (b.is_parent().cmp(&a.is_parent())).then(b.is_folder.cmp(&a.is_folder));
        let free = match wanted.order.ascending {
            true => compare(a, b, wanted),
            false => compare(b, a, wanted),
        };
        fixed.then(free)
    });
}

fn compare(a: &Entry, b: &Entry, wanted: &Wanted) -> Ordering {
    let by_version = wanted.flags.has(Flags::VERSION_SORT);
    let by_key = match wanted.order.column {
        Column::Name => Ordering::Equal,
        Column::Modified => a.mtime_us.cmp(&b.mtime_us),
        Column::Size => a.size.cmp(&b.size),
        Column::Description => {
            let text = |entry: &Entry| entry.description.clone().unwrap_or_default();
            match by_version {
                true => natural::compare(&text(a), &text(b), false),
                false => text(a).cmp(&text(b)),
            }
        }
    };
    let folded = || match (wanted.flags.has(Flags::IGNORE_CASE), by_version) {
        (false, _) => Ordering::Equal,
        (true, true) => natural::compare(&a.name, &b.name, true),
        (true, false) => a.name.to_ascii_lowercase().cmp(&b.name.to_ascii_lowercase()),
    };
    let exact = || match by_version {
        true => natural::compare(&a.name, &b.name, false),
        false => a.name.cmp(&b.name),
    };
    by_key.then_with(folded).then_with(exact)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::mod_autoindex::query::Order;

    fn names(flags: Flags, ascending: bool) -> Vec<String> {
        let order = Order { column: Column::Name, ascending };
        let wanted = Wanted { flags, order, pattern: None, carried: Vec::new() };
        let entry = |name: &str| Entry {
            name: name.as_bytes().to_vec(),
            is_folder: name.ends_with('/') && name.len() > 1,
            ..Entry::default()
        };
        let mut entries: Vec<Entry> =
            ["b10", "sub/", "B2", "/", "a9"].into_iter().map(entry).collect();
        sort(&mut entries, &wanted);
        entries.iter().map(|entry| String::from_utf8_lossy(&entry.name).into_owned()).collect()
    }

    #[test]
    fn the_parent_is_first_and_folders_follow() {
        assert_eq!(names(Flags::default(), true), ["/", "sub/", "B2", "a9", "b10"]);
        assert_eq!(names(Flags::default(), false), ["/", "sub/", "b10", "a9", "B2"]);
        let both = Flags::IGNORE_CASE.with(Flags::VERSION_SORT);
        assert_eq!(names(both, true), ["/", "sub/", "a9", "B2", "b10"]);
    }
}
