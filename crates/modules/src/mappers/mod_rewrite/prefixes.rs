//! The prefixes of a list's patterns, in an order in which one search finds all that a text begins
//! with: a request passes over thousands of redirects without looking at each.

use std::collections::BTreeMap;

/// The prefixes of a list.
#[derive(Debug, Default)]
pub(super) struct Prefixes {
    /// The places without a prefix, in order.
    always: Vec<u32>,
    /// The different prefixes, sorted.
    sorted: Vec<Entry>,
    /// The length of the list.
    length: usize,
}

#[derive(Debug)]
struct Entry {
    prefix: Box<[u8]>,
    /// The longest other prefix that this one begins with.
    shorter: Option<u32>,
    /// The places in the list, in order.
    places: Vec<u32>,
}

/// The longest prefix that a text begins with; it begins with all shorter ones of that as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deepest(Option<u32>);

impl Prefixes {
    /// Those of a list; an empty prefix stands for none.
    pub fn new(list: impl Iterator<Item = Vec<u8>>) -> Prefixes {
        let mut places: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        let mut length = 0;
        for (place, prefix) in (0..).zip(list) {
            places.entry(prefix).or_default().push(place);
            length += 1;
        }
        let always = places.remove(&b""[..]).unwrap_or_default();
        let mut sorted: Vec<Entry> = Vec::with_capacity(places.len());
        for (prefix, places) in places {
            let shorter = longest(&sorted, sorted.len(), &prefix);
            sorted.push(Entry { prefix: prefix.into(), shorter, places });
        }
        Prefixes { always, sorted, length }
    }

    /// Looks a text up.
    pub fn deepest(&self, text: &[u8]) -> Deepest {
        let end = self.sorted.partition_point(|entry| *entry.prefix <= *text);
        Deepest(longest(&self.sorted, end, text))
    }

    /// The first place from `at` on that has no prefix, or one that the text begins with. The end
    /// where there is none.
    pub fn next(&self, deepest: Deepest, at: usize) -> usize {
        let mut found = next_of(&self.always, at).unwrap_or(self.length);
        let mut entry = deepest.0.and_then(|index| self.sorted.get(index as usize));
        while let Some(Entry { shorter, places, .. }) = entry {
            found = next_of(places, at).map_or(found, |next| next.min(found));
            entry = shorter.and_then(|index| self.sorted.get(index as usize));
        }
        found
    }
}

/// The longest of the first `end` entries that the text begins with, if those are all that are not
/// greater than the text. What lies between a prefix and the text begins with the prefix too, so it
/// is the last entry or one of its shorter ones.
fn longest(sorted: &[Entry], end: usize, text: &[u8]) -> Option<u32> {
    let mut index = u32::try_from(end.checked_sub(1)?).ok()?;
    loop {
        let entry = sorted.get(index as usize)?;
        if text.starts_with(&entry.prefix) {
            return Some(index);
        }
        index = entry.shorter?;
    }
}

/// The first of some places that is not before `at`.
fn next_of(places: &[u32], at: usize) -> Option<usize> {
    let next = places.partition_point(|place| (*place as usize) < at);
    places.get(next).map(|place| *place as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(list: &[&str]) -> Prefixes {
        Prefixes::new(list.iter().map(|prefix| prefix.as_bytes().to_vec()))
    }

    fn places(prefixes: &Prefixes, text: &[u8]) -> Vec<usize> {
        let deepest = prefixes.deepest(text);
        let next = |at: usize| Some(prefixes.next(deepest, at)).filter(|at| *at < prefixes.length);
        std::iter::successors(next(0), |place| next(place + 1)).collect()
    }

    #[test]
    fn a_text_has_all_its_prefixes_in_the_lists_order() {
        let all = prefixes(&["/ab", "", "/a", "/b", "/abc", "", "/a", "x"]);
        assert_eq!(places(&all, b"/abd"), [0, 1, 2, 5, 6]);
        assert_eq!(places(&all, b"/abc"), [0, 1, 2, 4, 5, 6]);
        assert_eq!(places(&all, b"/"), [1, 5]);
        assert_eq!(places(&all, b"/b"), [1, 3, 5]);
        assert_eq!(places(&all, b"\xff"), [1, 5]);
        assert_eq!(places(&all, b""), [1, 5]);
        assert_eq!(places(&prefixes(&[]), b"/"), [0; 0]);
    }

    proptest::proptest! {
        #[test]
        fn a_search_finds_what_a_look_at_each_finds(
            list in proptest::collection::vec("[ab\u{e9}/]{0,5}", 0..40),
            text in "[ab\u{e9}/]{0,8}",
            end: Vec<u8>,
        ) {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let text = [text.as_bytes(), &end].concat();
            let each: Vec<usize> =
                (0..list.len()).filter(|at| text.starts_with(list[*at].as_bytes())).collect();
            proptest::prop_assert_eq!(places(&prefixes(&list), &text), each);
        }
    }
}
