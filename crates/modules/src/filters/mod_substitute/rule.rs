//! A rule: `s/pattern/substitution/flags`.

use std::time::Instant;

use bstr::ByteSlice;
use pcre::{Captures, Later, Regex};

use crate::filters::rewritten::is_held;

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What is replaced.
    pub(super) pattern: Pattern,
    /// What it is replaced by.
    pub(super) replacement: Vec<u8>,
    /// Whether later rules see the result as one text (not `q`).
    pub(super) flattens: bool,
}

/// What a rule replaces.
#[derive(Clone, Debug)]
pub(super) enum Pattern {
    /// All matches.
    Regex(Regex),
    /// This text (`n`).
    Text(Vec<u8>),
    /// This text in lower case, whatever the case is (`in`).
    Caseless(Vec<u8>),
}

/// Why a line has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wrong {
    /// It would be too long.
    TooLong,
    /// Matches take long.
    Later,
}

impl From<Later> for Wrong {
    fn from(_: Later) -> Wrong {
        Wrong::Later
    }
}

/// How much time matches may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// As little as a loop has: each of them, and all together until this moment.
    Loop(Instant),
    /// As much as Apache gives each of them.
    Pool,
}

impl Patience {
    /// # Errors
    /// [`Later`]: time is over.
    fn check(self) -> Result<(), Later> {
        match self {
            Patience::Loop(end) if Instant::now() > end => Err(Later),
            _ => Ok(()),
        }
    }
}

/// What of a line is limited, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Most bytes of a line.
    pub line_bytes: usize,
    /// How much time matches may take.
    pub patience: Patience,
}

/// A text in parts, between which nothing is found.
#[derive(Debug, Default)]
pub(super) struct Parts {
    text: Vec<u8>,
    /// The ends of the parts; none for a single one.
    ends: Vec<usize>,
}

/// The parts of the result of one or more lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Made {
    /// Their number.
    pub parts: usize,
    /// The length of the last one, bytes.
    pub last: usize,
    /// That of all, bytes.
    pub bytes: usize,
    /// Whether base64 holds one back as a whole.
    pub is_held: bool,
}

impl Made {
    /// Adds a part.
    fn add(&mut self, length: usize) {
        self.is_held |= is_held(self.bytes as u64, length as u64);
        self.parts += 1;
        self.last = length;
        self.bytes += length;
    }
}

/// Applies all rules to a line, appends the result, and counts its parts. Source: `do_pattmatch`.
pub(super) fn replace_line(
    rules: &[Rule],
    line: &[u8],
    limits: Limits,
    out: &mut Vec<u8>,
    made: &mut Made,
) -> Result<(), Wrong> {
    let mut replaced: Option<Parts> = None;
    for rule in rules {
        let is_quick = !rule.flattens || rules.len() == 1;
        let next = match &replaced {
            None => rule.replace_part(line, is_quick, limits)?,
            Some(parts) => rule.replace_parts(parts, is_quick, limits)?,
        };
        replaced = next.or(replaced);
    }
    let Some(Parts { text, ends }) = replaced else {
        out.extend_from_slice(line);
        made.add(line.len());
        return Ok(());
    };
    out.extend_from_slice(&text);
    if ends.is_empty() {
        made.add(text.len());
    }
    let mut start = 0;
    for end in ends {
        made.add(end - start);
        start = end;
    }
    Ok(())
}

impl Rule {
    /// The text with what matches in any of its parts replaced; `None` if nothing does.
    fn replace_parts(
        &self,
        parts: &Parts,
        is_quick: bool,
        limits: Limits,
    ) -> Result<Option<Parts>, Wrong> {
        if parts.ends.is_empty() {
            return self.replace_part(&parts.text, is_quick, limits);
        }
        let mut all = Parts::default();
        let (mut start, mut any) = (0, false);
        for end in &parts.ends {
            let part = parts.text.get(start..*end).unwrap_or_default();
            start = *end;
            let offset = all.text.len();
            match self.replace_part(part, is_quick, limits)? {
                Some(made) => {
                    any = true;
                    all.text.extend_from_slice(&made.text);
                    all.ends.extend(made.ends.iter().map(|end| end + offset));
                }
                None => all.text.extend_from_slice(part),
            }
            // Apache limits each part alone, so that rules could multiply a line.
            if any && all.text.len() > limits.line_bytes {
                return Err(Wrong::TooLong);
            }
            if all.ends.last() != Some(&all.text.len()) || part.is_empty() {
                all.ends.push(all.text.len());
            }
        }
        Ok(any.then_some(all))
    }

    /// The part with what matches replaced; `None` if nothing does.
    fn replace_part(
        &self,
        part: &[u8],
        is_quick: bool,
        limits: Limits,
    ) -> Result<Option<Parts>, Wrong> {
        let mut captures = Captures::new();
        let mut rest = part;
        let folded = self.folded(part);
        let mut made = Parts::default();
        let mut room = limits.line_bytes;
        let mut found = false;
        loop {
            let start = part.len() - rest.len();
            let seen = folded.as_ref().and_then(|all| all.get(start..)).unwrap_or(rest);
            let at = self.find(seen, &mut captures, limits.patience)?;
            limits.patience.check()?;
            let Some((start, end)) = at else { break };
            found = true;
            if end == 0 {
                // Apache would stay at this place until the line is too long.
                return Err(Wrong::TooLong);
            }
            made.text.extend_from_slice(rest.get(..start).unwrap_or_default());
            let between = made.text.len();
            self.append(rest, &captures, start, &mut room, &mut made.text)?;
            if is_quick {
                made.ends.extend([between, made.text.len()]);
            }
            rest = rest.get(end..).unwrap_or_default();
        }
        if !found {
            return Ok(None);
        }
        if is_quick && self.is_text() && room < rest.len() {
            return Err(Wrong::TooLong);
        }
        made.text.extend_from_slice(rest);
        if is_quick {
            made.ends.push(made.text.len());
        }
        Ok(Some(made))
    }

    fn is_text(&self) -> bool {
        !matches!(self.pattern, Pattern::Regex(_))
    }

    /// The text in which the pattern is sought, if it is not the part itself.
    fn folded(&self, part: &[u8]) -> Option<Vec<u8>> {
        matches!(self.pattern, Pattern::Caseless(_)).then(|| part.to_ascii_lowercase())
    }

    /// Where the pattern is found.
    fn find(
        &self,
        text: &[u8],
        captures: &mut Captures,
        patience: Patience,
    ) -> Result<Option<(usize, usize)>, Later> {
        let at = match &self.pattern {
            Pattern::Regex(regex) => {
                let matched = match patience {
                    Patience::Loop(_) => regex.glance(text, Some(captures))?,
                    Patience::Pool => regex.matches(text, Some(captures)).surely(),
                };
                let range = captures.range(0).filter(|_| matched);
                return Ok(range.map(|range| (range.start, range.end)));
            }
            Pattern::Text(wanted) | Pattern::Caseless(wanted) => {
                text.find(wanted).map(|at| (at, wanted.len()))
            }
        };
        Ok(at.map(|(at, length)| (at, at + length)))
    }

    /// Appends what replaces a match that begins at `start`, whose text before it has been
    /// appended. The whole is limited by `room`.
    fn append(
        &self,
        subject: &[u8],
        captures: &Captures,
        start: usize,
        room: &mut usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Wrong> {
        if self.is_text() {
            *room = room.checked_sub(start + self.replacement.len()).ok_or(Wrong::TooLong)?;
            out.extend_from_slice(&self.replacement);
            return Ok(());
        }
        *room = room.checked_sub(start).filter(|room| *room > 0).ok_or(Wrong::TooLong)?;
        let before = out.len();
        pcre::substitute(&self.replacement, subject, captures, *room, out)
            .map_err(|_| Wrong::TooLong)?;
        *room = room.saturating_sub(out.len() - before);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(pattern: &str, replacement: &str, flags: &str) -> Rule {
        let pattern = match flags.contains('n') {
            true if flags.contains('i') => Pattern::Caseless(pattern.to_lowercase().into()),
            true => Pattern::Text(pattern.into()),
            false => Pattern::Regex(Regex::new(pattern.as_bytes(), Default::default()).unwrap()),
        };
        let flattens = !flags.contains('q');
        Rule { pattern, replacement: replacement.into(), flattens }
    }

    fn replaced(rules: &[Rule], line: &str, line_bytes: usize) -> Result<String, Wrong> {
        let mut out = Vec::new();
        let limits = Limits { line_bytes, patience: Patience::Pool };
        replace_line(rules, line.as_bytes(), limits, &mut out, &mut Made::default())?;
        Ok(String::from_utf8(out).unwrap())
    }

    #[test]
    fn parts_have_borders() {
        let quick = [rule("x", "ab", "q"), rule("bc", "!", "")];
        assert_eq!(replaced(&quick, "xc bc", 99).as_deref(), Ok("abc !"));
        let flat = [rule("x", "ab", ""), rule("bc", "!", "")];
        assert_eq!(replaced(&flat, "xc bc", 99).as_deref(), Ok("a! !"));
        let three = [rule("x", "-", "q"), rule("^a", "A", "q"), rule("A-", "!", "n")];
        assert_eq!(replaced(&three, "axaxb", 99).as_deref(), Ok("A-A-b"));
        assert_eq!(replaced(&[rule("FOO", "bar", "in")], "FoO foo", 99).as_deref(), Ok("bar bar"));
    }

    #[test]
    fn the_limit_holds_for_results() {
        for flags in ["", "n", "q", "nq"] {
            let rules = [rule("x", "yy", flags), rule("z", "z", "")];
            assert_eq!(replaced(&rules, &"x".repeat(9), 20).map(|line| line.len()), Ok(18));
            assert_eq!(replaced(&rules, &"x".repeat(11), 20), Err(Wrong::TooLong), "{flags}");
        }
        assert_eq!(replaced(&[rule("x*", "", "")], "a", 20), Err(Wrong::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn no_line_exceeds_the_limit_or_panics(
            line in "[abxy]{0,30}", one in "[abx]{1,2}", two in "[a-c.]{1,2}",
            to in "[abx$0]{0,3}", flags in "[nqi]{0,2}",
        ) {
            let rules = [rule(&one, &to, &flags), rule(&two, &one, "q"), rule("a", &to, "")];
            if let Ok(out) = replaced(&rules, &line, 40) {
                // Behind the last match of a single rule, the rest of the line is not counted.
                proptest::prop_assert!(out.len() <= 80, "{}", out);
            }
        }
    }
}
