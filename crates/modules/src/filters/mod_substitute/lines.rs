//! A body in lines.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::Rules;
use super::rule::{Limits, Made, Patience, Rule, Wrong, replace_line};
use crate::filters::rewritten::Rewrite;

/// How long lines are replaced on the loop for each piece of a body.
pub(super) const PIECE: Duration = Duration::from_millis(3);

/// Replaces text in lines while they are sent. What takes long is left to the blocking pool, and so
/// is what follows it.
pub(super) struct Lines {
    rules: Arc<Vec<Rule>>,
    line_bytes: usize,
    /// A line without its end.
    open: Vec<u8>,
    /// Lines that wait for the pool.
    later: Vec<u8>,
    is_slow: bool,
}

impl Lines {
    /// The lines of a body.
    pub fn new(rules: &Rules) -> Lines {
        let (open, later) = (Vec::new(), Vec::new());
        let (rules, line_bytes) = (rules.list.clone(), rules.limit());
        Lines { rules, line_bytes, open, later, is_slow: false }
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
        if line.len() > self.line_bytes { Err(Wrong::TooLong) } else { Ok(()) }
    }

    /// What a piece may take: the pool has as much time as is needed.
    fn patience(&self) -> Patience {
        if self.is_slow { Patience::Pool } else { Patience::Loop(Instant::now() + PIECE) }
    }

    fn line(&mut self, line: &[u8], patience: Patience, out: &mut Vec<u8>) -> Result<(), Wrong> {
        if !self.later.is_empty() {
            self.later.extend_from_slice(line);
            return Ok(());
        }
        let limits = Limits { line_bytes: self.line_bytes, patience };
        match replace_line(&self.rules, line, limits, out, &mut Made::default()) {
            Err(Wrong::Later) if patience != Patience::Pool => {
                self.is_slow = true;
                self.later.extend_from_slice(line);
                Ok(())
            }
            done => done,
        }
    }

    /// Replaces what was left for the pool.
    fn catch_up(&mut self, out: &mut Vec<u8>) -> Result<(), Wrong> {
        let later = std::mem::take(&mut self.later);
        let mut lines = later.split_inclusive(|byte| *byte == b'\n');
        lines.try_for_each(|line| self.line(line, Patience::Pool, out))
    }
}

impl Rewrite for Lines {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.catch_up(out).map_err(failed)?;
        let patience = self.patience();
        self.split(piece, |lines, line| lines.line(line, patience, out)).map_err(failed)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.catch_up(out).map_err(failed)?;
        let open = std::mem::take(&mut self.open);
        match open.is_empty() {
            true => Ok(()),
            false => self.line(&open, self.patience(), out).map_err(failed),
        }
    }

    fn is_behind(&self) -> bool {
        !self.later.is_empty()
    }

    fn is_slow(&self) -> bool {
        self.is_slow
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
        // On a busy machine a line may have taken longer than a piece may on a loop.
        while lines.is_behind() {
            lines.push(b"", &mut out)?;
        }
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
    fn what_takes_long_is_not_replaced_on_the_loop_and_is_not_left_as_it_is() {
        let options = pcre::Flags::default();
        let regex = pcre::Regex::new(b"a(?=[^b]*$)", options).unwrap();
        let rule =
            Rule { pattern: Pattern::Regex(regex), replacement: b"x".to_vec(), flattens: true };
        let (line_bytes, inherits_before) = (None, None);
        let mut lines =
            Lines::new(&Rules { list: Arc::new(vec![rule]), line_bytes, inherits_before });
        let line = [vec![b'a'; 8_000], b"\n".to_vec()].concat();
        let (mut out, mut longest) = (Vec::new(), Duration::ZERO);
        for _ in 0..4 {
            let (began, is_slow) = (Instant::now(), lines.is_slow());
            lines.push(&line, &mut out).unwrap();
            if !is_slow {
                longest = longest.max(began.elapsed());
            }
        }
        while lines.is_behind() {
            lines.push(b"", &mut out).unwrap();
        }
        lines.end(&mut out).unwrap();
        assert!(lines.is_slow(), "{longest:?}");
        assert!(longest < Duration::from_secs(1), "{longest:?}");
        assert_eq!(out, line.repeat(4).replace(b"a", b"x"));
    }

    #[test]
    fn a_line_in_pieces_is_limited() {
        let mut lines = lines(5);
        let mut out = Vec::new();
        lines.push(b"in one piece\nabc", &mut out).unwrap();
        assert!(lines.push(b"def", &mut out).is_err());
    }
}
