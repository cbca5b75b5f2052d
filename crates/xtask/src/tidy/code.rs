//! Rules on Rust code: lengths, `unsafe`, panics.

use super::mask::{Masked, item_end, line_of};
use super::{Finding, Source};

/// Most lines of a Rust file without its tests.
const FILE_LINES_MAX: usize = 400;
/// Most lines of a function, from `fn` to its closing brace.
const FUNCTION_LINES_MAX: usize = 70;
/// Most characters of a line.
const LINE_WIDTH_MAX: usize = 100;
/// Crates that may contain `unsafe`, and a test that requires it for its counting allocator.
const UNSAFE_PLACES: [&str; 6] = [
    "crates/rt/",
    "crates/pcre/",
    "crates/mpm/",
    "crates/python/",
    "crates/wsgi/",
    "crates/tamarack/tests/allocations.rs",
];
/// Calls that open a name, and block if it leads to a FIFO.
const OPENS: [&str; 5] =
    ["File::open(", "fs::read(", "fs::read_to_string(", "OpenOptions::new(", "fs::open("];
/// Files that open system files or their own, and those that write.
const OPEN_PLACES: [&str; 11] = [
    "crates/regular/",
    "crates/xtask/",
    "crates/mpm/src/affinity/",
    "crates/mpm/src/listeners/holder.rs",
    "crates/mpm/src/supervisor/",
    "crates/mpm/src/daemon.rs",
    "crates/mpm/src/logfile.rs",
    "crates/mpm/src/pidfile.rs",
    "crates/tamarack/src/program.rs",
    "crates/tamarack/src/startup.rs",
    "crates/tls/src/local.rs",
];
/// Log numbers that Apache does not have.
const MESSAGES: std::ops::Range<u32> = 20_001..20_400;
/// Calls that panic. `expect` counts only with a literal message, because parsers have an `expect`
/// of their own.
const PANICS: [&str; 5] = [".unwrap()", ".expect(\"", "panic!(", "todo!(", "unimplemented!("];

/// Runs every rule of this file on a source.
pub fn check(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    let all_tests = is_test_file(source.path);
    file_length(source, masked, all_tests, findings);
    function_length(source, masked, findings);
    line_width(source, findings);
    unsafe_code(source, masked, findings);
    if !all_tests {
        panics(source, masked, findings);
        opens(source, masked, findings);
        message_numbers(source, masked, findings);
    }
}

/// Whether a file contains only tests.
pub fn is_test_file(path: &str) -> bool {
    path.starts_with("tests/")
        || path.starts_with("fuzz/")
        || path.contains("/tests/")
        || path.contains("/benches/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

fn file_length(source: &Source, masked: &Masked, all_tests: bool, findings: &mut Vec<Finding>) {
    let lines = masked.test_lines.iter().filter(|&&test| !test).count();
    if !all_tests && lines > FILE_LINES_MAX {
        findings.push(Finding {
            weight: lines - FILE_LINES_MAX,
            ..source.finding(
                "file-length",
                0,
                format!(
                    "{lines} lines without tests, at most {FILE_LINES_MAX}: a file is one noun; \
                     move the second noun to a file of its own"
                ),
            )
        });
    }
}

fn function_length(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    let is_type = |start: usize| masked.code[start..].starts_with("fn(");
    for start in words(&masked.code, "fn").filter(|&start| !is_type(start)) {
        let end = item_end(&masked.code, start);
        let first = line_of(&masked.code, start);
        let lines = line_of(&masked.code, end) - first + 1;
        if lines > FUNCTION_LINES_MAX {
            findings.push(Finding {
                weight: lines - FUNCTION_LINES_MAX,
                ..source.finding(
                    "function-length",
                    first + 1,
                    format!(
                        "{lines} lines, at most {FUNCTION_LINES_MAX}: keep the branching here \
                         and move straight work to helpers below"
                    ),
                )
            });
        }
    }
}

fn line_width(source: &Source, findings: &mut Vec<Finding>) {
    for (number, line) in source.text.lines().enumerate() {
        let width = line.chars().count();
        if width > LINE_WIDTH_MAX {
            findings.push(source.finding(
                "line-width",
                number + 1,
                format!("{width} columns, at most {LINE_WIDTH_MAX}: break the line"),
            ));
        }
    }
}

fn unsafe_code(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    let allowed = UNSAFE_PLACES.iter().any(|place| source.path.starts_with(place));
    let lines: Vec<&str> = source.text.lines().collect();
    for start in words(&masked.code, "unsafe") {
        let line = line_of(&masked.code, start);
        if claims_nothing(&masked.code, start) {
            continue;
        }
        if !allowed {
            let message = "only crates rt, pcre, mpm, wsgi and python hold `unsafe`: \
                           move the call there behind a safe function";
            findings.push(source.finding("unsafe-place", line + 1, message.to_owned()));
        } else if !has_safety_note(&lines, line) {
            let message = "state above it, after `// SAFETY:`, why this is sound (`# Safety` in \
                the doc comment of an unsafe fn)";
            findings.push(source.finding("unsafe-safety", line + 1, message.to_owned()));
        }
    }
}

/// `#[unsafe(no_mangle)]`, `unsafe extern` and `unsafe fn(…)` as a type make no claim here; the
/// conditions of a private `unsafe fn` are its trait's or stand at its blocks.
fn claims_nothing(code: &str, start: usize) -> bool {
    let after = code.get(start + "unsafe".len()..).unwrap_or("").trim_start();
    let is_public = code.get(..start).unwrap_or("").trim_end().ends_with("pub");
    after.starts_with('(')
        || after.starts_with("extern")
        || after.starts_with("fn(")
        || after.starts_with("fn ") && !is_public
}

fn has_safety_note(lines: &[&str], line: usize) -> bool {
    let own = lines.get(line).copied().unwrap_or("");
    if own.contains("// SAFETY:") {
        return true;
    }
    let above = lines.iter().take(line).rev().map(|text| text.trim_start());
    let comment = above
        .skip_while(|text| !text.starts_with("//") && !ends_statement(text))
        .take_while(|text| text.starts_with("//") || text.starts_with("#["));
    let mut comment = comment;
    comment.any(|text| text.contains("SAFETY:") || text.contains("# Safety"))
}

/// Whether a line ends a statement or opens a block, so that a comment above it does not apply.
fn ends_statement(text: &str) -> bool {
    text.is_empty() || text.ends_with([';', '{', '}', ','])
}

fn panics(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    for needle in PANICS {
        for (start, _) in masked.code.match_indices(needle) {
            let line = line_of(&masked.code, start);
            let part_of_word = !needle.starts_with('.') && follows_word(&masked.code, start);
            if part_of_word || masked.test_lines.get(line) == Some(&true) {
                continue;
            }
            let call = needle.trim_end_matches(['(', ')', '"']);
            let message = format!(
                "`{call}` can kill a child: return an error, or make the state a type in which it \
                 can't happen"
            );
            findings.push(source.finding("no-panic", line + 1, message));
        }
    }
}

fn opens(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    let is_open_place = OPEN_PLACES.iter().any(|place| source.path.starts_with(place));
    if is_open_place || source.path.contains("/examples/") {
        return;
    }
    for needle in OPENS {
        for (start, _) in masked.code.match_indices(needle) {
            let line = line_of(&masked.code, start);
            if follows_word(&masked.code, start) || masked.test_lines.get(line) == Some(&true) {
                continue;
            }
            let message = format!(
                "`{needle}…)` blocks if the name leads to a FIFO or a device: use `regular::open` \
                 or `regular::read`"
            );
            findings.push(source.finding("open-regular", line + 1, message));
        }
    }
}

/// Our own log numbers stand in one enum, which the compiler keeps free of duplicates.
fn message_numbers(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    if source.path.starts_with("crates/messages/") || !source.path.contains("/src/") {
        return;
    }
    for (line, code) in masked.code.lines().enumerate() {
        let is_word = |byte: char| byte.is_ascii_alphanumeric() || byte == '_' || byte == '.';
        let mut words = code.split(|byte| !is_word(byte));
        let is_number = |word: &str| {
            word.len() == 5 && word.parse().is_ok_and(|number: u32| MESSAGES.contains(&number))
        };
        if words.any(is_number) && masked.test_lines.get(line) != Some(&true) {
            let message = "a log number of our own: name it in crates/messages".to_owned();
            findings.push(source.finding("message-number", line + 1, message));
        }
    }
}

/// Byte offsets of `word` as a whole word.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(start, _)| start).filter(move |&start| {
        let next = code.as_bytes().get(start + word.len());
        !follows_word(code, start)
            && next.is_some_and(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
    })
}

fn follows_word(code: &str, start: usize) -> bool {
    let before = start.checked_sub(1).and_then(|at| code.as_bytes().get(at));
    before.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::super::mask::mask;
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(&Source { path, text }, &mask(text), &mut findings);
        findings.iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn log_numbers_have_names() {
        let text = "fn a() {\n    log(20100);\n    log(2010, \"20100\");\n}\n";
        assert_eq!(rules("crates/server/src/a.rs", text), [("message-number", 2)]);
        assert_eq!(rules("crates/messages/src/lib.rs", text), []);
    }

    #[test]
    fn unsafe_needs_its_crate_and_its_note() {
        let bare = "fn f() {\n    unsafe { g() }\n}\n";
        let noted = "fn f() {\n    // SAFETY: g has no conditions.\n    unsafe { g() }\n}\n";
        let split =
            "fn f() {\n    // SAFETY: as g says.\n    let x =\n        unsafe { g() };\n}\n";
        assert_eq!(rules("crates/wire/src/a.rs", noted), [("unsafe-place", 2 + 1)]);
        assert_eq!(rules("crates/rt/src/a.rs", bare), [("unsafe-safety", 2)]);
        assert_eq!(rules("crates/rt/src/a.rs", noted), []);
        assert_eq!(rules("crates/rt/src/a.rs", split), []);
        assert_eq!(rules("crates/wire/src/a.rs", "#![forbid(unsafe_code)] // unsafe\n"), []);
    }

    #[test]
    fn a_public_unsafe_fn_states_its_conditions() {
        let silent = "pub unsafe fn f() {}\n";
        let says = "/// # Safety\n/// Once.\npub unsafe fn f() {}\n";
        let of_trait = "// SAFETY: counts.\nunsafe impl A for B {\n    unsafe fn f() {}\n}\n";
        assert_eq!(rules("crates/rt/src/a.rs", silent), [("unsafe-safety", 1)]);
        assert_eq!(rules("crates/rt/src/a.rs", says), []);
        assert_eq!(rules("crates/rt/src/a.rs", of_trait), []);
    }

    #[test]
    fn a_note_belongs_to_the_next_statement_alone() {
        let text = "fn f() {\n    // SAFETY: once.\n    unsafe { g() };\n    unsafe { h() };\n}\n";
        assert_eq!(rules("crates/rt/src/a.rs", text), [("unsafe-safety", 4)]);
    }

    #[test]
    fn panics_are_for_tests() {
        let text = "fn f() { x.unwrap(); p.expect(b','); debug_panic!(\"\"); }\n\
                    #[cfg(test)]\nmod tests { fn t() { x.unwrap() } }\n";
        assert_eq!(rules("crates/wire/src/a.rs", text), [("no-panic", 1)]);
        assert_eq!(rules("crates/wire/src/tests.rs", text), []);
        let quoted = "fn f() { x.expect(\"why\"); todo!(); g(\".unwrap()\"); }\n";
        assert_eq!(rules("crates/wire/src/a.rs", quoted), [("no-panic", 1), ("no-panic", 1)]);
    }

    #[test]
    fn files_are_opened_in_one_place() {
        let text = "fn f() { std::fs::File::open(x); MyFile::open(x); }\n\
                    #[cfg(test)]\nmod tests { fn t() { std::fs::read(x) } }\n";
        assert_eq!(rules("crates/server/src/a.rs", text), [("open-regular", 1)]);
        assert_eq!(rules("crates/regular/src/a.rs", text), []);
        let more = "fn f() { fs::read(x); OpenOptions::new(); rustix::fs::open(x); }\n";
        assert_eq!(rules("crates/tls/src/a.rs", more), [("open-regular", 1); 3]);
    }

    #[test]
    fn lengths_have_limits() {
        let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(FUNCTION_LINES_MAX));
        assert_eq!(rules("crates/wire/src/a.rs", &long), [("function-length", 1)]);
        let wide = format!("// {}\n", "é".repeat(LINE_WIDTH_MAX - 3));
        assert_eq!(rules("crates/wire/src/a.rs", &wide), []);
        assert_eq!(rules("crates/wire/src/a.rs", &format!("/{wide}")), [("line-width", 1)]);
        let file = "const A: u8 = 1;\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(rules("crates/wire/src/a.rs", &file), [("file-length", 0)]);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{file}}}\n");
        assert_eq!(rules("crates/wire/src/a.rs", &tests), []);
    }
}
