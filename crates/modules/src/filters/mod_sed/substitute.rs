//! `s`. Source: `substitute`, `dosub`.

use super::machine::{Flow, Machine, Next, SPACE_BYTES, Wrong};
use super::output::Output;
use super::script::{Address, Part, Prints, Script, Substitution, Which};

/// Steps of searches after which other work comes first.
const TURN_STEPS: u64 = 1_000_000;

/// Matches after which other work comes first.
const TURN_MATCHES: u32 = 10_000;

/// Bytes that are copied in the time of a step.
const COPIED_IN_A_STEP: usize = 16;

/// How far a substitution has come.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The new line so far.
    line: Vec<u8>,
    /// What precedes this place in the line is in the new one.
    copied: usize,
    /// Where the last match ends.
    end: usize,
    matches: u32,
    is_made: bool,
}

impl Machine {
    /// Executes `s`, or goes on with it.
    pub(super) fn substitute(
        &mut self,
        script: &Script,
        how: &Substitution,
        out: &mut Output,
    ) -> Result<Flow, Wrong> {
        let mut progress = self.progress.take().unwrap_or_default();
        let steps = self.search.steps;
        let until = progress.matches.saturating_add(TURN_MATCHES);
        // Looking for the end takes as long as the line is.
        let length = self.text().len();
        while self.find(how, &progress, length)? {
            let (found, was) = (self.search.found.clone(), progress.end);
            progress.matches = progress.matches.saturating_add(1);
            progress.end = found.end;
            let is_wanted = match how.which {
                Which::Number(number) => progress.matches == number,
                Which::First | Which::All => true,
            };
            if is_wanted {
                self.replace(how, &mut progress, length)?;
            }
            match how.which {
                Which::First => break,
                Which::Number(number) if progress.matches >= number => break,
                _ => {}
            }
            if progress.end >= length {
                break;
            }
            if progress.matches > 1 && found.is_empty() && found.end == was {
                // Apache would go on forever.
                return Err(Wrong::TooMuchWork);
            }
            if self.search.steps - steps > TURN_STEPS || progress.matches >= until {
                self.progress = Some(progress);
                return Ok(Flow::Again);
            }
        }
        if progress.matches == 0 {
            return Ok(Flow::Next);
        }
        self.note_substitution(progress.is_made);
        if !progress.is_made {
            return Ok(Flow::Next);
        }
        let rest = self.lines.whole().get(progress.copied..length).unwrap_or_default();
        progress.line.extend_from_slice(rest);
        if progress.line.len() > SPACE_BYTES {
            return Err(Wrong::TooLong);
        }
        self.lines.set(progress.line);
        if script.is_silent {
            match how.prints {
                Prints::Nothing => {}
                Prints::Line => out.line(self.lines.whole()),
                Prints::First => out.line(self.lines.first()),
            }
        }
        Ok(how.target.map_or(Flow::Next, |target| Flow::First(Next::Write(target))))
    }

    /// Finds the next match in the line, of which commands see `length` bytes.
    fn find(
        &mut self,
        how: &Substitution,
        progress: &Progress,
        length: usize,
    ) -> Result<bool, Wrong> {
        let is_again = progress.matches > 0;
        let Address::Pattern(pattern) = &*how.pattern else {
            // Apache takes the address for a pattern, which matches nothing at the beginning.
            self.search.found = 0..0;
            return Ok(!is_again);
        };
        if is_again && pattern.is_anchored {
            return Ok(false);
        }
        let text = self.lines.whole().get(..length).unwrap_or_default();
        let found = self.search.find(pattern, text, progress.end, is_again);
        found.map_err(|_| Wrong::TooMuchWork)
    }

    /// Replaces the match that was found.
    fn replace(
        &mut self,
        how: &Substitution,
        progress: &mut Progress,
        length: usize,
    ) -> Result<(), Wrong> {
        let text = self.lines.whole().get(..length).unwrap_or_default();
        let found = self.search.found.clone();
        let line = &mut progress.line;
        let before = line.len();
        line.extend_from_slice(text.get(progress.copied..found.start).unwrap_or_default());
        for part in &how.replacement {
            let part = match part {
                Part::Text(text) => text.as_slice(),
                Part::Match => text.get(found.clone()).unwrap_or_default(),
                Part::Group(group) => {
                    let group = self.search.groups.get(*group).cloned().unwrap_or_default();
                    text.get(group).unwrap_or_default()
                }
            };
            line.extend_from_slice(part);
        }
        self.search.steps += ((line.len() - before) / COPIED_IN_A_STEP) as u64;
        (progress.copied, progress.is_made) = (found.end, true);
        if line.len() > SPACE_BYTES { Err(Wrong::TooLong) } else { Ok(()) }
    }
}
