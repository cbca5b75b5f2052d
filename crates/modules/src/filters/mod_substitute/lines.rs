//! A body in lines.

use std::io;
use std::sync::Arc;

use bstr::ByteSlice;

use super::Rules;
use super::rule::{Limits, Patience, Rule, Wrong, replace_line};
use crate::filters::rewritten::Rewrite;

/// Lines that are sent as they are since a match takes long; the body ends at the next one.
const HARD_LINES: usize = 16;

/// Replaces text in lines while they are sent.
pub(super) struct Lines {
    rules: Arc<Vec<Rule>>,
    limits: Limits,
    /// A line without its end.
    open: Vec<u8>,
    hard: usize,
}

impl Lines {
    /// The lines of a body.
    pub fn new(rules: &Rules) -> Lines {
        let limits = Limits { line_bytes: rules.limit(), patience: Patience::Loop };
        Lines { rules: rules.list.clone(), limits, open: Vec::new(), hard: 0 }
    }

    /// Adds a piece. Calls `each` with each line that it completes.
    pub fn split(
        &mut self,
        piece: &[u8],
        mut each: impl FnMut(&mut Lines, &[u8]) -> Result<(), Wrong>,
    ) -> Result<(), Wrong> {
        let mut rest = piece;
        while let Some(at) = rest.find_byte(b'\n') {
            let (line, tail) = rest.split_at(at + 1);
            rest = tail;
            if self.open.is_empty() {
                each(self, line)?;
                continue;
            }
            let mut whole = std::mem::take(&mut self.open);
            whole.extend_from_slice(line);
            self.check(&whole)?;
            each(self, &whole)?;
            whole.clear();
            self.open = whole;
        }
        self.open.extend_from_slice(rest);
        // With its end, it would be longer still.
        if !rest.is_empty() { self.check(&self.open) } else { Ok(()) }
    }

    /// A line that came in several pieces is limited, and the last one without an end.
    fn check(&self, line: &[u8]) -> Result<(), Wrong> {
        if line.len() > self.limits.line_bytes { Err(Wrong::TooLong) } else { Ok(()) }
    }

    fn line(&mut self, line: &[u8], out: &mut Vec<u8>) -> Result<(), Wrong> {
        match replace_line(&self.rules, line, self.limits, out) {
            Err(Wrong::Later) if self.hard < HARD_LINES => {
                self.hard += 1;
                out.extend_from_slice(line);
                Ok(())
            }
            done => done,
        }
    }
}

impl Rewrite for Lines {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.split(piece, |lines, line| lines.line(line, out)).map_err(failed)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let open = std::mem::take(&mut self.open);
        match open.is_empty() {
            true => Ok(()),
            false => self.line(&open, out).map_err(failed),
        }
    }
}

fn failed(wrong: Wrong) -> io::Error {
    io::Error::other(match wrong {
        Wrong::TooLong => "a line is too long for SubstituteMaxLineLength",
        Wrong::Later => "matches of Substitute take too long",
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::mod_substitute::rule::Pattern;

    fn lines(limit: usize) -> Lines {
        let pattern = Pattern::Regex(pcre::Regex::new(b"b+\\s", Default::default()).unwrap());
        let rule = Rule { pattern, replacement: b"[$0]".to_vec(), flattens: true };
        let (line_bytes, inherits_before) = (Some(limit), None);
        Lines::new(&Rules { list: Arc::new(vec![rule]), line_bytes, inherits_before })
    }

    fn cut(text: &[u8], at: &[usize]) -> io::Result<Vec<u8>> {
        let (mut lines, mut out, mut start) = (lines(100), Vec::new(), 0);
        for end in at.iter().copied().chain([text.len()]) {
            lines.push(&text[start..end], &mut out)?;
            start = end;
        }
        lines.end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn the_result_does_not_depend_on_cuts() {
        let text = b"abb\nb b\n\nbbb\r\nlast b";
        let whole = cut(text, &[]).unwrap();
        assert_eq!(whole, b"a[bb\n][b ][b\n]\n[bbb\r]\nlast b");
        for first in 0..=text.len() {
            for second in first..=text.len() {
                assert_eq!(cut(text, &[first, second]).unwrap(), whole, "{first} {second}");
            }
        }
        let every: Vec<usize> = (0..text.len()).collect();
        assert_eq!(cut(text, &every).unwrap(), whole);
    }

    #[test]
    fn a_line_in_pieces_is_limited() {
        let mut lines = lines(5);
        let mut out = Vec::new();
        lines.push(b"in one piece\nabc", &mut out).unwrap();
        assert!(lines.push(b"def", &mut out).is_err());
    }
}
