//! Tests of scripts, and of their independence from how a text is cut.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::sample::select;

use super::machine::{Machine, Next, Wrong};
use super::output::Output;
use super::parser::Parser;

fn parser(script: &str) -> Result<Arc<Parser>, String> {
    let mut parser = Parser::default();
    parser.add(script.as_bytes())?;
    Ok(Arc::new(parser))
}

fn go_on(machine: &mut Machine, out: &mut Output, whole: &mut Vec<u8>) -> Result<(), Wrong> {
    loop {
        let next = machine.next(out)?;
        whole.append(&mut out.text);
        match next {
            Next::Input | Next::Over => return Ok(()),
            Next::Read(source) => out.write(format!("<file {source}>").as_bytes()),
            Next::Write(target) => {
                let text = machine.text().to_vec();
                out.write(&[format!("<{target}:").as_bytes(), &text, b">"].concat());
            }
            Next::Log(_) | Next::Turn => {}
        }
    }
}

/// What a script makes of a text that comes in pieces.
fn cut(script: &Arc<Parser>, text: &[u8], at: &[usize]) -> Result<Vec<u8>, Wrong> {
    let (mut machine, mut out, mut start) = (Machine::new(script.clone()), Output::default(), 0);
    let mut whole = Vec::new();
    for end in at.iter().copied().chain([text.len()]) {
        machine.lines.push(&text[start..end]);
        start = end;
        go_on(&mut machine, &mut out, &mut whole)?;
    }
    machine.lines.complete();
    go_on(&mut machine, &mut out, &mut whole)?;
    Ok(whole)
}

fn sed(script: &str, text: &str) -> String {
    let out = cut(&parser(script).unwrap(), text.as_bytes(), &[]).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn texts_stand_around_lines() {
    assert_eq!(
        sed("2i\\\n  before\n1a\\\nafter\\\n   more", "1\n2\n3"),
        "1\nafter\nmore\nbefore\n2\n3\n"
    );
    assert_eq!(sed("1,2c\\\nnew", "1\n2\n3"), "new\n3\n");
    assert_eq!(sed("$!{c\\\nnew\n}", "1\n2\n3"), "new\nnew\n3\n");
    assert_eq!(sed("s/a/x\\\ny/", "ab"), "x\nyb\n");
    assert_eq!(sed("1r f\n1a\\\nt\n1q", "1\n2"), "1\n<file 0>t\n");
    assert_eq!(sed("s/1/x/w one\nw two", "1\n2"), "<0:x><1:x>x\n<1:2>2\n");
}

/// Apache compares the digit with memory that it has not set: it refuses them at most starts.
#[test]
fn an_empty_pattern_has_no_groups() {
    for script in ["/\\(a\\)/s//<\\1>/", "/\\(a\\)/s//<\\2>/", "/a/s//<\\1>/"] {
        let expected = format!("``\\digit'' out of range: {script}");
        assert_eq!(parser(script).err(), Some(expected));
    }
}

#[test]
fn a_zero_byte_ends_what_commands_see() {
    assert_eq!(sed("s/a/b/g", "aa\0a\naa"), "bb\nbb\n");
    assert_eq!(sed("s/x/b/", "aa\0a\naa"), "aa\0a\naa\n");
    assert_eq!(sed("y/a/b/", "aa\0a"), "bb\0a\n");
    assert_eq!(sed("P", "a\0b"), "a\na\0b\n");
    assert_eq!(sed("h;G", "a\0b"), "a\0b\na\n");
}

#[test]
fn endless_scripts_end() {
    let text = "a".repeat(50_000);
    let endless = [":a\nba", ":a\ns/^/x/\nta", "s/\\(\\)/x/g", "s/\\(\\)/x/3", ":a\nG\ny/b/c/\nba"];
    for script in endless {
        let script = parser(script).unwrap();
        assert!(cut(&script, text.as_bytes(), &[]).is_err());
    }
    let slow = parser("s/\\(.*\\)\\(.*\\)\\1\\2\\1b/x/").unwrap();
    assert_eq!(cut(&slow, text.as_bytes(), &[]), Err(Wrong::TooMuchWork));
}

#[test]
fn many_matches_end_turns_and_take_linear_time() {
    let script = parser("s/a/x/g").unwrap();
    let mut machine = Machine::new(script);
    machine.lines.push(&[b'a'; 1_000_000]);
    machine.lines.complete();
    let (mut out, mut turns, mut count) = (Output::default(), 0, 0);
    let began = std::time::Instant::now();
    loop {
        let next = machine.next(&mut out).unwrap();
        count += out.text.iter().filter(|byte| **byte == b'x').count();
        out.text.clear();
        match next {
            Next::Turn => turns += 1,
            Next::Input | Next::Over => break,
            next => panic!("{next:?}"),
        }
    }
    assert_eq!(count, 1_000_000);
    assert!(turns >= 100, "{turns}");
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
}

#[test]
fn searches_without_references_are_linear() {
    let text = "ab".repeat(100_000);
    for pattern in [".*c", "a.*b.*c", "a*b*a*b*c", "[ab]*[ab]*[ab]*c", "a.*b.*a.*c$", "\\(.*\\)x"] {
        let script = parser(&format!("s/{pattern}/-/g")).unwrap();
        let out = cut(&script, text.as_bytes(), &[]).unwrap();
        assert_eq!(out.len(), text.len() + 1, "{pattern}");
    }
}

const SCRIPTS: [&str; 14] = [
    "s/a*/-/g",
    "$!N;P;D",
    ":a\nN\n$!ba\ns/\\n/,/g",
    "n;d",
    "1!G;h;$!d",
    "#n\n$=",
    "/a/,/b/s/^/# /",
    "N;N;s/\\n/+/g",
    "2q",
    "x;p;x",
    "l",
    "s/\\(.\\)\\1/<&>/g;t;d",
    "1r f\n2a\\\nx",
    "s/a/b/w f",
];

#[test]
fn the_result_does_not_depend_on_cuts() {
    let texts: [&[u8]; 6] =
        [b"", b"\n", b"a", b"aab\nb\n\nab\n", b"a\nb\nab", b"a\0b\n\xff\n\naa bb\r\nx"];
    for script in SCRIPTS {
        let script = parser(script).unwrap();
        for text in texts {
            let whole = cut(&script, text, &[]).unwrap();
            for first in 0..=text.len() {
                for second in first..=text.len() {
                    assert_eq!(cut(&script, text, &[first, second]).unwrap(), whole);
                }
            }
            let every: Vec<usize> = (0..text.len()).collect();
            assert_eq!(cut(&script, text, &every).unwrap(), whole);
        }
    }
}

/// Where a pattern of simple items matches, by trying everything.
fn slowly(items: &[(u8, bool)], text: &[u8], at: usize) -> Option<usize> {
    let Some(((byte, is_repeated), rest)) = items.split_first() else { return Some(at) };
    let is_here = |at: usize| text.get(at).is_some_and(|here| *byte == b'.' || here == byte);
    if !is_repeated {
        return if is_here(at) { slowly(rest, text, at + 1) } else { None };
    }
    let longest = (at..).find(|at| !is_here(*at)).unwrap_or(at);
    (at..=longest).rev().find_map(|at| slowly(rest, text, at))
}

proptest::proptest! {
    #[test]
    fn what_was_tried_in_vain_matches_nowhere(
        items in vec((select(b"abc.".to_vec()), proptest::bool::ANY), 1..7),
        text in "[abc]{0,14}",
    ) {
        let pattern: String = items
            .iter()
            .map(|(byte, is_repeated)| {
                let star = if *is_repeated { "*" } else { "" };
                format!("{}{star}", char::from(*byte))
            })
            .collect();
        let found = (0..=text.len())
            .find_map(|at| slowly(&items, text.as_bytes(), at).map(|end| (at, end)));
        let expected = match found {
            Some((start, end)) => {
                format!("{}<{}>{}\n", &text[..start], &text[start..end], &text[end..])
            }
            None => format!("{text}\n"),
        };
        // A text without a byte has no line.
        let expected = if text.is_empty() { String::new() } else { expected };
        proptest::prop_assert_eq!(sed(&format!("s/{pattern}/<&>/"), &text), expected);
    }

    #[test]
    fn no_script_panics(
        script in "[a-zA-Z{}:;!#$/,0-9\\\\()*\\[\\]. \n]{0,40}",
        text in "[ab\n]{0,40}",
    ) {
        if let Ok(script) = parser(&script) {
            let every: Vec<usize> = (0..text.len()).collect();
            let pieces = cut(&script, text.as_bytes(), &every);
            proptest::prop_assert_eq!(pieces, cut(&script, text.as_bytes(), &[]));
        }
    }
}
