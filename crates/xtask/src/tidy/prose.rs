//! Rules on every text file: white space, length, names, and discouraged words; and on unidiomatic
//! phrases in comments, messages and documents.

use super::{Finding, Source};
use std::path::Path;

/// Most lines of a file for human readers.
const ANY_FILE_LINES_MAX: usize = 800;
/// Files that contain data or third-party text.
const DATA: [&str; 8] = ["lock", "csv", "types", "json", "svg", "baseline", "pem", "test"];
/// Meaningless file names.
const EMPTY_NAMES: [&str; 6] = ["util", "utils", "common", "helper", "helpers", "misc"];
/// Words that promise, postpone or apologise, and their remedies.
const WORDS: [(&str, &str); 7] = [
    ("TODO", "do it, or write what is missing into docs/ under its name"),
    ("FIXME", "fix it, or write what is missing into docs/ under its name"),
    ("XXX", "say what is wrong in plain words"),
    ("HACK", "say why it has to be this way in plain words"),
    ("blazing", "give the measured figure"),
    ("lightning-fast", "give the measured figure"),
    ("world-class", "leave it out"),
];
/// Phrases that hide the subject of a sentence, and what to write instead. Any case.
const PHRASES: [(&str, &str); 21] = [
    ("nobody", "name the thing: no client, no loop, no other process"),
    ("somebody", "name the thing: another program, a client, a caller"),
    ("anybody", "name the thing: any process, any caller"),
    ("everybody", "name the things: all loops, every client"),
    ("whoever", "name the subject: a caller that, the process that"),
    ("whomever", "name the subject: a caller that, the process that"),
    ("anew", "write `again`, or what is new"),
    ("is told", "write what happens: is notified, is ordered, receives"),
    ("are told", "write what happens: are notified, are ordered, receive"),
    ("is said", "write what happens: is logged, is reported, is documented"),
    ("are said", "write what happens: are logged, are reported, are documented"),
    ("time and again", "write `repeatedly`"),
    ("again and again", "write `repeatedly`"),
    ("came to nothing", "write `failed`"),
    ("for ever", "write `forever`"),
    ("is looked at", "write what happens: is read, is checked, is looked up"),
    ("are looked at", "write what happens: are read, are checked, are looked up"),
    ("what comes of", "write `the outcome of`, `the result of`"),
    ("stands still", "write `is stalled`, `is idle`, `does not change`"),
    ("gives back", "write `returns`"),
    ("word for word", "write `verbatim`"),
];

/// Runs every rule of this file on a source.
pub fn check(source: &Source, root: &Path, findings: &mut Vec<Finding>) {
    names(source, findings);
    if is_data(source) {
        return;
    }
    white_space(source, findings);
    words(source, root, findings);
    let lines = source.text.lines().count();
    if lines > ANY_FILE_LINES_MAX && !is_generated(source) {
        findings.push(Finding {
            weight: lines - ANY_FILE_LINES_MAX,
            ..source.finding(
                "file-length",
                0,
                format!("{lines} lines, at most {ANY_FILE_LINES_MAX}: split the file by noun"),
            )
        });
    }
}

fn is_data(source: &Source) -> bool {
    source.path == "LICENSE"
        || source.path.contains("/corpus/")
        || source.path.ends_with("/recorded.txt")
        || DATA.contains(&source.extension())
}

/// Whether the file is generated from the directive rows, of which there are many.
fn is_generated(source: &Source) -> bool {
    source.path == "docs/compat.md" || source.path.starts_with("docs/directives/")
}

fn names(source: &Source, findings: &mut Vec<Finding>) {
    for part in source.path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            let message = format!(
                "`{part}` is a meaningless name: code that is used twice belongs \
                to its noun"
            );
            findings.push(source.finding("empty-name", 0, message));
        }
    }
}

fn white_space(source: &Source, findings: &mut Vec<Finding>) {
    for (number, line) in source.text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            let message = "white space at the end of the line: remove it".to_owned();
            findings.push(source.finding("white-space", number + 1, message));
        }
    }
    if !source.text.is_empty() && !source.text.ends_with('\n') {
        let message = "no newline at the end of the file: add one".to_owned();
        findings.push(source.finding("white-space", source.text.lines().count(), message));
    }
}

fn words(source: &Source, root: &Path, findings: &mut Vec<Finding>) {
    if source.path == "crates/xtask/src/tidy/prose.rs" {
        return;
    }
    let here = root.to_string_lossy();
    for (number, line) in source.text.lines().enumerate() {
        for (word, remedy) in WORDS {
            if holds_word(line, word) {
                let message = format!("`{word}`: {remedy}");
                findings.push(source.finding("word", number + 1, message));
            }
        }
        if here.len() > 1 && line.contains(here.as_ref()) {
            let message = "the path of one checkout: name the file from the root".to_owned();
            findings.push(source.finding("word", number + 1, message));
        }
    }
}

/// Finds [`PHRASES`] in `prose`: the text of a document, or a program's comments and literals with
/// everything else blanked.
pub fn idiom(source: &Source, prose: &str, findings: &mut Vec<Finding>) {
    if is_data(source) || is_generated(source) || source.path == "crates/xtask/src/tidy/prose.rs" {
        return;
    }
    for (number, line) in prose.lines().enumerate() {
        let line = line.to_ascii_lowercase();
        for (phrase, remedy) in PHRASES {
            if holds_word(&line, phrase) {
                let message = format!("`{phrase}`: {remedy}");
                findings.push(source.finding("idiom", number + 1, message));
            }
        }
    }
}

fn holds_word(line: &str, word: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    line.match_indices(word).any(|(start, _)| {
        let bytes = line.as_bytes();
        let before = start.checked_sub(1).and_then(|at| bytes.get(at));
        !is_letter(before) && !is_letter(bytes.get(start + word.len()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(&Source { path, text }, Path::new("/srv/checkout"), &mut findings);
        findings.iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn white_space_at_the_end_is_found() {
        assert_eq!(rules("a.md", "one \ntwo"), [("white-space", 1), ("white-space", 2)]);
        assert_eq!(rules("a.md", "one\ntwo\n"), []);
        assert_eq!(rules("tests/a.test", "one \n"), []);
    }

    #[test]
    fn empty_names_are_found_in_any_part_of_the_path() {
        assert_eq!(rules("crates/util/src/lib.rs", "\n"), [("empty-name", 0)]);
        assert_eq!(rules("crates/wire/src/helpers.rs", "\n"), [("empty-name", 0)]);
        assert_eq!(rules("crates/wire/src/commonplace.rs", "\n"), []);
    }

    #[test]
    fn words_count_whole() {
        assert_eq!(rules("a.rs", "// TODO: later\n"), [("word", 1)]);
        assert_eq!(rules("a.rs", "// mkstemp(\"/tmp/aXXXXXX\")\n"), []);
        assert_eq!(rules("a.md", "see /srv/checkout/README.md\n"), [("word", 1)]);
    }

    #[test]
    fn phrases_are_found_in_prose_in_any_case() {
        let mut findings = Vec::new();
        let source = Source { path: "crates/wire/src/a.rs", text: "" };
        idiom(&source, "Nobody is told.\nnobodys, retold\n", &mut findings);
        let lines: Vec<_> = findings.iter().map(|found| (found.rule, found.line)).collect();
        assert_eq!(lines, [("idiom", 1), ("idiom", 1)]);
        let generated = Source { path: "docs/directives/core.md", text: "" };
        idiom(&generated, "nobody\n", &mut findings);
        assert_eq!(findings.len(), 2);
    }

    #[test]
    fn long_files_weigh_their_excess() {
        let mut findings = Vec::new();
        let text = "x\n".repeat(ANY_FILE_LINES_MAX + 7);
        check(&Source { path: "a.md", text: &text }, Path::new("/srv"), &mut findings);
        assert_eq!(findings.iter().map(|finding| finding.weight).sum::<usize>(), 7);
        check(&Source { path: "docs/compat.md", text: &text }, Path::new("/srv"), &mut findings);
        assert_eq!(findings.len(), 1);
    }
}
