//! The contents of a map file, indexed.
//!
//! Source: `lookup_map_txtfile`, APR's `sdbm_pair.c`.

use std::cmp::Ordering;
use std::ops::Range;

use conf::word::is_blank;

use crate::sdbm::{PAGE_BYTES, pairs};

/// A longer line of a text file continues as the next one (`REWRITE_MAX_TXT_MAP_LINE`).
const LINE_BYTES: usize = 1024;

/// A map's sorted keys with their values.
#[derive(Debug, Default)]
pub(super) struct Index {
    text: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    key: Range<u32>,
    value: Range<u32>,
}

impl Index {
    /// Indexes a text file: the first word of a line is the key, the second its value, and the
    /// first line of a key applies.
    pub fn of_text(text: Vec<u8>) -> Index {
        let mut entries = Vec::new();
        let mut start = 0;
        while let Some(rest) = text.get(start..).filter(|rest| !rest.is_empty()) {
            let window = rest.get(..LINE_BYTES).unwrap_or(rest);
            let length =
                window.iter().position(|byte| *byte == b'\n').map_or(window.len(), |at| at + 1);
            let line = rest.get(..length).unwrap_or_default();
            let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
            if let Some((key, value)) = words(line) {
                entries.extend(Entry::new(start, key, value));
            }
            start += length;
        }
        Index::of(text, entries)
    }

    /// Indexes the page file of SDBM. An invalid page has no keys.
    pub fn of_pages(text: Vec<u8>) -> Index {
        let mut entries = Vec::new();
        for (number, page) in text.chunks_exact(PAGE_BYTES).enumerate() {
            for (key, value) in pairs(page).unwrap_or_default() {
                entries.extend(Entry::new(number * PAGE_BYTES, key, value));
            }
        }
        Index::of(text, entries)
    }

    fn of(text: Vec<u8>, entries: Vec<Entry>) -> Index {
        let mut index = Index { text, entries };
        let Index { text, entries } = &mut index;
        entries.sort_by(|a, b| part(text, &a.key).cmp(part(text, &b.key)));
        entries.dedup_by(|later, first| part(text, &later.key) == part(text, &first.key));
        entries.shrink_to_fit();
        index
    }

    /// The value of a key.
    pub fn find(&self, key: &[u8]) -> Option<&[u8]> {
        let order = |entry: &Entry| -> Ordering { part(&self.text, &entry.key).cmp(key) };
        let at = self.entries.binary_search_by(order).ok()?;
        Some(part(&self.text, &self.entries.get(at)?.value))
    }
}

impl Entry {
    /// `None` beyond 4 GB.
    fn new(start: usize, key: Range<usize>, value: Range<usize>) -> Option<Entry> {
        let range = |of: Range<usize>| -> Option<Range<u32>> {
            Some(u32::try_from(start + of.start).ok()?..u32::try_from(start + of.end).ok()?)
        };
        Some(Entry { key: range(key)?, value: range(value)? })
    }
}

fn part<'t>(text: &'t [u8], range: &Range<u32>) -> &'t [u8] {
    let at = |offset: u32| usize::try_from(offset).unwrap_or(usize::MAX);
    text.get(at(range.start)..at(range.end)).unwrap_or_default()
}

/// The positions of the first two words of a line. A line that begins with a blank or `#` has none,
/// and a key at the very end has no value.
fn words(line: &[u8]) -> Option<(Range<usize>, Range<usize>)> {
    if line.first().is_none_or(|first| *first == b'#' || is_blank(*first)) {
        return None;
    }
    let find = |from: usize, blank: bool| {
        let rest = line.get(from..)?;
        rest.iter().position(|byte| is_blank(*byte) == blank).map(|at| from + at)
    };
    let key = find(0, true)?;
    let value = find(key, false)?;
    Some((0..key, value..find(value, true).unwrap_or(line.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, key: &str) -> Option<String> {
        let index = Index::of_text(text.as_bytes().to_vec());
        index.find(key.as_bytes()).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    #[test]
    fn the_first_two_words_of_a_line_count() {
        let text = "key value more\n#c x\n lead x\nk2\ttabbed\nk3\ndup one\ndup two\nk4 end";
        assert_eq!(found(text, "key").as_deref(), Some("value"));
        assert_eq!(found(text, "k2").as_deref(), Some("tabbed"));
        assert_eq!(found(text, "dup").as_deref(), Some("one"));
        assert_eq!(found(text, "k4").as_deref(), Some("end"));
        for none in ["#c", "lead", "k3", "", "key ", "value"] {
            assert_eq!(found(text, none), None, "{none}");
        }
    }

    #[test]
    fn a_long_line_goes_on_as_the_next_one() {
        let text = format!("a {}\n{}b c\n", "x".repeat(2000), "y".repeat(LINE_BYTES));
        assert_eq!(found(&text, "a").unwrap().len(), LINE_BYTES - 2);
        assert_eq!(found(&text, "b").as_deref(), Some("c"));
        assert_eq!(found("a b\0c\nd\0 e\n", "a").as_deref(), Some("b"));
        assert_eq!(found("a b\0c\nd\0 e\n", "d"), None);
    }

    /// A page with pairs, as created by `putpair`.
    fn page(pairs: &[(&str, &str)]) -> Vec<u8> {
        let mut page = vec![0u8; PAGE_BYTES];
        let mut end = PAGE_BYTES;
        let mut put = |at: usize, number: usize| {
            let number = u16::try_from(number).unwrap().to_ne_bytes();
            page.splice(2 * at..2 * at + 2, number);
        };
        put(0, 2 * pairs.len());
        let mut data = Vec::new();
        for (at, (key, value)) in pairs.iter().enumerate() {
            for (slot, text) in [(1, key), (2, value)] {
                end -= text.len();
                put(2 * at + slot, end);
                data.push((end, text.as_bytes()));
            }
        }
        for (at, text) in data {
            page.splice(at..at + text.len(), text.iter().copied());
        }
        page
    }

    #[test]
    fn pages_of_sdbm_are_read() {
        let file = [page(&[("a", "one"), ("bb", "")]), page(&[]), page(&[("c", "three")])].concat();
        let index = Index::of_pages(file);
        assert_eq!(index.find(b"a"), Some(&b"one"[..]));
        assert_eq!(index.find(b"bb"), Some(&b""[..]));
        assert_eq!(index.find(b"c"), Some(&b"three"[..]));
        assert_eq!(index.find(b"d"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_file_can_be_asked(text: Vec<u8>, key: Vec<u8>) {
            let padded = text.iter().cycle().take(if text.is_empty() { 0 } else { 4096 });
            let _ = Index::of_pages(padded.copied().collect()).find(&key);
            let _ = Index::of_text(text).find(&key);
        }
    }
}
