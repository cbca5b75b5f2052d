//! The names of an address's hosts, indexed.
//!
//! The first host with a name wins, however it has it, so each name and each pattern carries its
//! host's position. A name is looked up by its hash. A pattern is stored under its literal
//! beginning or end, whichever fewer patterns share; a request is looked up under the beginnings
//! and ends of its name.

use hashbrown::HashMap;

use super::{is_wild, matches_wildcard};

/// Longest name in bytes that is lowercased on the stack. DNS has no longer ones.
const SHORT: usize = 256;

/// The names of hosts in their order.
#[derive(Default)]
pub(super) struct Names {
    exact: HashMap<Box<[u8]>, u32>,
    beginnings: Buckets,
    ends: Buckets,
    /// Patterns that begin and end with a wildcard.
    floating: Vec<Pattern>,
}

/// An alias with wildcards, in lower case.
struct Pattern {
    text: Box<[u8]>,
    place: u32,
}

/// Patterns by their literal beginning, or by their literal end.
#[derive(Default)]
struct Buckets {
    by_literal: HashMap<Box<[u8]>, Vec<Pattern>>,
    lengths: Vec<Length>,
}

/// A length of literals in a [`Buckets`].
struct Length {
    bytes: usize,
    /// The first byte of all literals of this length: almost always the dot of `*.name`.
    first: Option<u8>,
}

impl Names {
    /// The names of hosts in order: each has a `ServerName`, and aliases.
    pub fn of<'h>(hosts: impl Iterator<Item = (&'h [u8], &'h [Vec<u8>])>) -> Names {
        let mut names = Names::default();
        let mut patterns = Vec::new();
        for ((name, aliases), place) in hosts.zip(0..) {
            names.add(name, place);
            for alias in aliases {
                if is_wild(alias) {
                    let text = alias.to_ascii_lowercase().into();
                    patterns.push(Pattern { text, place });
                } else {
                    names.add(alias, place);
                }
            }
        }
        names.sort(patterns);
        names
    }

    /// Adds a name. The first host with it keeps it.
    pub fn add(&mut self, name: &[u8], place: u32) {
        self.exact.entry(name.to_ascii_lowercase().into()).or_insert(place);
    }

    /// The position of the first host with `name`.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let mut short = [0; SHORT];
        let long;
        let name: &[u8] = match short.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                lower
            }
            None => {
                long = name.to_ascii_lowercase();
                &long
            }
        };
        self.find_lower(name).and_then(|place| usize::try_from(place).ok())
    }

    fn find_lower(&self, name: &[u8]) -> Option<u32> {
        let mut first = self.exact.get(name).copied();
        for length in self.ends.lengths.iter().take_while(|length| length.bytes <= name.len()) {
            let (_, end) = name.split_at(name.len() - length.bytes);
            self.ends.find(length, end, name, &mut first);
        }
        for length in self.beginnings.lengths.iter().take_while(|length| length.bytes <= name.len())
        {
            let (beginning, _) = name.split_at(length.bytes);
            self.beginnings.find(length, beginning, name, &mut first);
        }
        find_in(&self.floating, name, &mut first);
        first
    }

    /// Stores each pattern where it shares its literal with the fewest others.
    fn sort(&mut self, patterns: Vec<Pattern>) {
        let mut beginnings: HashMap<Box<[u8]>, usize> = HashMap::new();
        let mut ends: HashMap<Box<[u8]>, usize> = HashMap::new();
        for pattern in &patterns {
            *beginnings.entry(beginning(&pattern.text).into()).or_default() += 1;
            *ends.entry(end(&pattern.text).into()).or_default() += 1;
        }
        for pattern in patterns {
            let shared_by = |literal: &[u8], all: &HashMap<Box<[u8]>, usize>| match literal {
                [] => usize::MAX,
                _ => all.get(literal).copied().unwrap_or(usize::MAX),
            };
            let (first, last) = (beginning(&pattern.text), end(&pattern.text));
            let (of_first, of_last) = (shared_by(first, &beginnings), shared_by(last, &ends));
            if first.is_empty() && last.is_empty() {
                self.floating.push(pattern);
            } else if of_first < of_last {
                let literal = first.into();
                self.beginnings.add(literal, pattern);
            } else {
                let literal = last.into();
                self.ends.add(literal, pattern);
            }
        }
        self.beginnings.lengths.sort_unstable_by_key(|length| length.bytes);
        self.ends.lengths.sort_unstable_by_key(|length| length.bytes);
    }
}

impl Buckets {
    fn add(&mut self, literal: Box<[u8]>, pattern: Pattern) {
        let (bytes, first) = (literal.len(), literal.first().copied());
        match self.lengths.iter_mut().find(|length| length.bytes == bytes) {
            Some(length) if length.first != first => length.first = None,
            Some(_) => {}
            None => self.lengths.push(Length { bytes, first }),
        }
        self.by_literal.entry(literal).or_default().push(pattern);
    }

    /// Searches `name` among the patterns of a literal of this length.
    fn find(&self, length: &Length, literal: &[u8], name: &[u8], first: &mut Option<u32>) {
        if length.first.is_some() && literal.first().copied() != length.first {
            return;
        }
        if let Some(patterns) = self.by_literal.get(literal) {
            find_in(patterns, name, first);
        }
    }
}

/// Sets `first` to the first matching pattern of `patterns`, if that is earlier. Patterns are in
/// the order of their hosts.
fn find_in(patterns: &[Pattern], name: &[u8], first: &mut Option<u32>) {
    let is_earlier = |pattern: &&Pattern| first.is_none_or(|first| pattern.place < first);
    let mut earlier = patterns.iter().take_while(is_earlier);
    if let Some(found) = earlier.find(|pattern| matches_wildcard(&pattern.text, name)) {
        *first = Some(found.place);
    }
}

/// The literal before a pattern's first wildcard.
fn beginning(pattern: &[u8]) -> &[u8] {
    let wildcard = pattern.iter().position(|byte| matches!(byte, b'*' | b'?'));
    wildcard.and_then(|at| pattern.get(..at)).unwrap_or_default()
}

/// The literal behind a pattern's last wildcard.
fn end(pattern: &[u8]) -> &[u8] {
    let wildcard = pattern.iter().rposition(|byte| matches!(byte, b'*' | b'?'));
    wildcard.and_then(|at| pattern.get(at + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
