//! Patterns of directories with parts of a name: `/www/%-2/%1.1`.
//!
//! Source: `vhost_alias_set`, `vhost_alias_interpolate` (modules/mappers/mod_vhost_alias.c).

use std::ops::Range;

/// The maximum number of dots that separate the parts of a name (`MAXDOTS`, less the beginning).
const DOTS_MAX: usize = 18;

/// A parsed pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Item>);

#[derive(Debug, PartialEq, Eq)]
enum Item {
    Text(Vec<u8>),
    /// `%p`
    Port,
    /// `%N`, `%N.M`: parts of the name, and letters of them.
    Name {
        part: Index,
        letter: Option<Index>,
    },
}

/// `N`, `-N`, `N+`, `-N+`; 0 is the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Index {
    number: usize,
    from_end: bool,
    and_others: bool,
}

impl Pattern {
    /// Parses a pattern; `None` if its syntax is wrong.
    pub fn parse(text: &[u8]) -> Option<Pattern> {
        let (mut items, mut literal, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'%' {
                literal.push(*first);
                continue;
            }
            if let Some(after) = rest.strip_prefix(b"%") {
                // Never a slash, so that it does not count as one at the end.
                literal.push(b'%');
                rest = after;
                continue;
            }
            if !literal.is_empty() {
                items.push(Item::Text(std::mem::take(&mut literal)));
            }
            if let Some(after) = rest.strip_prefix(b"p") {
                items.push(Item::Port);
                rest = after;
                continue;
            }
            let part = Index::take(&mut rest)?;
            let letter = match rest.strip_prefix(b".") {
                Some(after) => {
                    rest = after;
                    Some(Index::take(&mut rest)?)
                }
                None => None,
            };
            items.push(Item::Name { part, letter });
        }
        if !literal.is_empty() {
            items.push(Item::Text(literal));
        }
        Some(Pattern(items))
    }

    /// The directory for a name.
    pub fn fill(&self, name: &[u8], port: impl Fn() -> u16) -> Vec<u8> {
        let mut out = Vec::new();
        for item in &self.0 {
            match item {
                Item::Text(text) => out.extend_from_slice(text),
                Item::Port => out.extend_from_slice(port().to_string().as_bytes()),
                Item::Name { part, letter } => {
                    let found = part.of_parts(name);
                    let found = match letter {
                        Some(letter) => found.and_then(|part| letter.of_letters(part)),
                        None => found,
                    };
                    out.extend(found.unwrap_or(MISSING).iter().map(u8::to_ascii_lowercase));
                }
            }
        }
        out
    }
}

/// The substitute for a part that the name does not have.
const MISSING: &[u8] = b"_";

impl Index {
    fn take(rest: &mut &[u8]) -> Option<Index> {
        let from_end = take_byte(rest, b'-');
        let (digit, after) = rest.split_first().filter(|(digit, _)| digit.is_ascii_digit())?;
        *rest = after;
        let and_others = take_byte(rest, b'+');
        Some(Index { number: usize::from(digit - b'0'), from_end, and_others })
    }

    /// The parts of a name between its dots; `None` if there are too few.
    fn of_parts(self, name: &[u8]) -> Option<&[u8]> {
        let dots = name.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
        let starts: Vec<usize> =
            std::iter::once(0).chain(dots.take(DOTS_MAX).map(|at| at + 1)).collect();
        let ends = starts.iter().skip(1).map(|start| start - 1).chain([name.len()]);
        let ends: Vec<usize> = ends.collect();
        let range = self.range(starts.len())?;
        let start = starts.get(range.start).copied().unwrap_or(0);
        let end = ends.get(range.end.wrapping_sub(1)).copied().unwrap_or(name.len());
        name.get(start..end)
    }

    /// The letters of a part; `None` if there are too few. An empty part has none.
    fn of_letters(self, part: &[u8]) -> Option<&[u8]> {
        part.get(self.range(part.len())?)
    }

    /// The indices of the selected ones among `count`.
    fn range(self, count: usize) -> Option<Range<usize>> {
        let Index { number, from_end, and_others } = self;
        let Some(index) = number.checked_sub(1) else { return Some(0..count) };
        if number > count {
            return None;
        }
        Some(match (from_end, and_others) {
            (false, false) => index..number,
            (false, true) => index..count,
            (true, false) => count - number..count - index,
            (true, true) => 0..count - index,
        })
    }
}

fn take_byte(rest: &mut &[u8], byte: u8) -> bool {
    let after = rest.strip_prefix(&[byte]);
    *rest = after.unwrap_or(rest);
    after.is_some()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Pattern;

    fn filled(pattern: &str, name: &str) -> String {
        let pattern = Pattern::parse(pattern.as_bytes()).unwrap();
        String::from_utf8(pattern.fill(name.as_bytes(), || 80)).unwrap()
    }

    #[test]
    fn parts_and_letters() {
        for (pattern, expected) in [
            ("/%0", "/a.bc.def"),
            ("/%1/%2", "/a/bc"),
            ("/%2+", "/bc.def"),
            ("/%-2", "/bc"),
            ("/%-2+", "/a.bc"),
            ("/%4", "/_"),
            ("/%3.1/%3.-1/%3.2+/%3.-2+", "/d/f/ef/de"),
            ("/%1.2", "/_"),
            ("/%p/%%", "/80/%"),
            ("/%10", "/a0"),
        ] {
            assert_eq!(filled(pattern, "A.bc.def"), expected, "{pattern}");
        }
        assert_eq!(filled("/%1/%2", ".x"), "//x");
    }

    proptest! {
        #[test]
        fn no_pattern_and_no_name_panics(pattern: Vec<u8>, name: Vec<u8>) {
            if let Some(pattern) = Pattern::parse(&pattern) {
                pattern.fill(&name, || 80);
            }
        }

        #[test]
        fn no_index_panics(index in "%-?[0-9]\\+?(\\.-?[0-9]\\+?)?", name in "[a.]{0,30}") {
            filled(&index, &name);
        }
    }
}
