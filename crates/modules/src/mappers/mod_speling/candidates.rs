//! Names in a directory that are similar to a missing one.
//!
//! Source: `check_speling`, `spdist` (modules/mappers/mod_speling.c).

use std::mem::MaybeUninit;

use rustix::fs::RawDir;
use server::path;

/// The maximum number of names of a directory that are compared.
const NAMES_MAX: usize = 1_000_000;

/// The maximum number of similar names that are kept; a longer page is of no use.
const CANDIDATES_MAX: usize = 1000;

/// Bytes of entries that are read at a time.
const PART_BYTES: usize = 32 * 1024;

/// Which names count as similar.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Only those that differ in case.
    pub case_only: bool,
    /// Also those that are equal up to the first dot.
    pub base_names: bool,
}

/// How a name is similar, the closest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Similarity {
    /// It differs in case.
    Case,
    /// Two letters are exchanged.
    Transposition,
    /// The request lacks a letter.
    MissingLetter,
    /// The request has an extra letter.
    ExtraLetter,
    /// A letter differs.
    WrongLetter,
    /// It is equal up to the first dot.
    BaseName,
}

impl Similarity {
    /// Apache's words for it.
    pub fn reason(self) -> &'static str {
        match self {
            Similarity::Case => "miscapitalized",
            Similarity::Transposition => "transposed characters",
            Similarity::MissingLetter => "character missing",
            Similarity::ExtraLetter => "extra character",
            Similarity::WrongLetter => "mistyped character",
            Similarity::BaseName => "common basename",
        }
    }

    /// How a name is similar to the requested one.
    fn of(requested: &[u8], name: &[u8], rules: Rules) -> Option<Similarity> {
        if requested.eq_ignore_ascii_case(name) {
            return Some(Similarity::Case);
        }
        let typing = if rules.case_only { None } else { mistyped(requested, name) };
        typing.or_else(|| {
            let is_same = rules.base_names && base(requested).eq_ignore_ascii_case(base(name));
            is_same.then_some(Similarity::BaseName)
        })
    }
}

/// A similar name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The name.
    pub name: Vec<u8>,
    /// How it is similar.
    pub similarity: Similarity,
}

/// The result of a search in a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// It can't be read.
    Unreadable,
    /// The name itself: a link to nowhere, or something that just appeared.
    IsThere,
    /// Names like it, the closest first, and otherwise in the directory's order.
    Similar(Vec<Candidate>),
}

/// Reads a directory. Blocks.
pub(super) fn scan(directory: &[u8], requested: &[u8], rules: Rules) -> Scan {
    let directory = if directory.is_empty() { b"/" } else { directory };
    let Ok(file) = regular::open_directory(path::as_path(directory)) else {
        return Scan::Unreadable;
    };
    let mut buffer = Vec::new();
    buffer.resize_with(PART_BYTES, MaybeUninit::uninit);
    let mut entries = RawDir::new(&file, &mut buffer);
    let (mut found, mut count) = (Vec::new(), 0);
    // Apache considers the directory itself and the one above as well.
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        if name == requested {
            return Scan::IsThere;
        }
        if let Some(similarity) = Similarity::of(requested, name, rules)
            && found.len() < CANDIDATES_MAX
        {
            found.push(Candidate { name: name.to_vec(), similarity });
        }
        count += 1;
        if count == NAMES_MAX {
            break;
        }
    }
    found.sort_by_key(|candidate| candidate.similarity);
    Scan::Similar(found)
}

/// The single typing error, regardless of case, that turns the name into the requested one.
fn mistyped(requested: &[u8], name: &[u8]) -> Option<Similarity> {
    let same = |(a, b): &(&u8, &u8)| a.eq_ignore_ascii_case(b);
    let start = requested.iter().zip(name).take_while(same).count();
    let (requested, name) = (requested.get(start..)?, name.get(start..)?);
    if let ([a, requested @ ..], [b, name @ ..]) = (requested, name) {
        if let ([c, requested @ ..], [d, name @ ..]) = (requested, name)
            && a.eq_ignore_ascii_case(d)
            && b.eq_ignore_ascii_case(c)
            && requested.eq_ignore_ascii_case(name)
        {
            return Some(Similarity::Transposition);
        }
        if requested.eq_ignore_ascii_case(name) {
            return Some(Similarity::WrongLetter);
        }
    }
    if let [_, requested @ ..] = requested
        && requested.eq_ignore_ascii_case(name)
    {
        return Some(Similarity::ExtraLetter);
    }
    match name {
        [_, name @ ..] if requested.eq_ignore_ascii_case(name) => Some(Similarity::MissingLetter),
        _ => None,
    }
}

/// A name up to its first dot.
fn base(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == b'.').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Rules, Similarity};

    const ALL: Rules = Rules { case_only: false, base_names: true };

    fn similarity(requested: &str, name: &str) -> Option<Similarity> {
        Similarity::of(requested.as_bytes(), name.as_bytes(), ALL)
    }

    #[test]
    fn one_mistake_counts() {
        assert_eq!(similarity("Index.html", "index.HTML"), Some(Similarity::Case));
        assert_eq!(similarity("idnex.html", "index.html"), Some(Similarity::Transposition));
        assert_eq!(similarity("inex.html", "index.html"), Some(Similarity::MissingLetter));
        assert_eq!(similarity("indexx.html", "index.html"), Some(Similarity::ExtraLetter));
        assert_eq!(similarity("imdex.html", "index.html"), Some(Similarity::WrongLetter));
        assert_eq!(similarity("index", "index.html"), Some(Similarity::BaseName));
        assert_eq!(similarity("indexxx.html", "index.html"), None);
        assert_eq!(similarity("x", "."), Some(Similarity::WrongLetter));
        assert_eq!(similarity("", "x"), Some(Similarity::MissingLetter));
        assert_eq!(similarity(".x", ".."), Some(Similarity::WrongLetter));
    }

    #[test]
    fn the_rules_narrow_it() {
        let of = |rules, name: &str| Similarity::of(b"index.txt", name.as_bytes(), rules);
        let case_only = Rules { case_only: true, base_names: false };
        assert_eq!(of(case_only, "inde.txt"), None);
        assert_eq!(of(case_only, "index.html"), None);
        assert_eq!(of(case_only, "INDEX.txt"), Some(Similarity::Case));
        let with_bases = Rules { case_only: true, base_names: true };
        assert_eq!(of(with_bases, "Index.html"), Some(Similarity::BaseName));
    }
}
