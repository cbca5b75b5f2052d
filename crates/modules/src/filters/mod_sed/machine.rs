//! Executes a script on lines.
//!
//! Source: modules/filters/sed1.c. A line with a zero byte is a string that ends there for all
//! commands but those that print it.

use std::sync::Arc;

use super::lines::Lines;
use super::output::Output;
use super::parser::Parser;
use super::script::{Address, Command, Script, Step};
use super::search::Search;
use super::substitute::Progress;

/// Bytes of a line and of the hold space (`MAX_BUF_SIZE`).
pub(crate) const SPACE_BYTES: usize = 8 * 1024 * 1024;

/// Texts and files that wait for the end of a line (`SED_ABUFSIZE`, less the end of its list).
const APPENDED_MAX: usize = 19;

/// Commands that are executed for a line; Apache executes an endless loop forever.
const COMMANDS_MAX: u32 = 1_000_000;

/// Steps of commands and searches in a line.
const LINE_STEPS_MAX: u64 = 200_000_000;

/// Steps that are made in a turn, more or less; a command counts as some.
const TURN_STEPS: u64 = 1_000_000;

/// Steps for which a command counts.
const COMMAND_STEPS: u64 = 16;

/// Bytes of output that end a turn.
const TURN_BYTES: usize = 64 * 1024;

/// Why a script can't be executed any further.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A line or the hold space is longer than [`SPACE_BYTES`].
    TooLong,
    /// A loop without an end, or searches that take too long.
    TooMuchWork,
}

/// What is to be done before the script continues.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// More input is needed, or its end.
    Input,
    /// Something else should run first.
    Turn,
    /// The source of this index is to be appended to the output.
    Read(usize),
    /// [`Machine::text`] is to be appended to the target of this index.
    Write(usize),
    /// A message is to be logged.
    Log(String),
    /// Nothing more comes out.
    Over,
}

/// The state of a script.
pub(crate) struct Machine {
    script: Arc<Parser>,
    /// The line that is edited, and those that are still to come.
    pub lines: Lines,
    hold: Vec<u8>,
    /// The number of the line, from 1.
    number: i64,
    phase: Phase,
    /// Where the next line begins in the script (`n`, `N`).
    resume: usize,
    /// The steps whose range the line is in.
    in_range: Vec<bool>,
    appended: Vec<usize>,
    has_substituted: bool,
    /// Commands executed for this line.
    commands: u32,
    line_steps: u64,
    turn_steps: u64,
    pub(super) search: Search,
    pub(super) progress: Option<Progress>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Waits for a line.
    Line,
    /// Executes this step.
    Step(usize),
    /// Prints what was appended, from this one on.
    Appended(usize, Then),
    /// Nothing is done any more.
    Over,
}

/// What follows the appended texts.
#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    /// The end of the line.
    End,
    /// The next line; the script continues at this step (`n`).
    Next(usize),
    /// The same, but the line is kept (`N`).
    NextAppended(usize),
    /// Nothing (`q`).
    Quit,
}

/// Which step follows.
pub(super) enum Flow {
    Next,
    /// This step, or the end.
    Jump(Option<usize>),
    /// The end, without printing the line.
    Deleted,
    /// The appended texts first.
    Appended(Then),
    /// What is to be done first; then the next step.
    First(Next),
    /// The same step once more, in another turn.
    Again,
}

impl Machine {
    /// Before the first line.
    pub fn new(script: Arc<Parser>) -> Machine {
        let in_range = vec![false; script.script.steps.len()];
        Machine {
            script,
            lines: Lines::default(),
            hold: Vec::new(),
            number: 0,
            phase: Phase::Line,
            resume: 0,
            in_range,
            appended: Vec::new(),
            has_substituted: false,
            commands: 0,
            line_steps: 0,
            turn_steps: 0,
            search: Search::default(),
            progress: None,
        }
    }

    /// The line, as far as commands see it.
    pub fn text(&self) -> &[u8] {
        self.lines.text()
    }

    /// Whether the last line is being edited: Apache ignores errors there.
    pub fn is_at_end(&self) -> bool {
        self.lines.is_last()
    }

    /// Goes on until there is something to do.
    ///
    /// # Errors
    /// [`Wrong`]: nothing can be done any more.
    pub fn next(&mut self, out: &mut Output) -> Result<Next, Wrong> {
        let script = self.script.clone();
        let script = &script.script;
        self.turn_steps = 0;
        loop {
            if self.turn_steps > TURN_STEPS || out.text.len() > TURN_BYTES {
                return Ok(Next::Turn);
            }
            match self.phase {
                Phase::Over => return Ok(Next::Over),
                Phase::Line => match self.lines.take()? {
                    true => self.begin_line(),
                    false if self.lines.is_over() => self.phase = Phase::Over,
                    false => return Ok(Next::Input),
                },
                Phase::Step(at) => {
                    if let Some(next) = self.step(script, at, out)? {
                        return Ok(next);
                    }
                }
                Phase::Appended(at, then) => {
                    if let Some(source) = self.append(script, at, then, out) {
                        return Ok(Next::Read(source));
                    }
                }
            }
        }
    }

    fn begin_line(&mut self) {
        self.number = self.number.wrapping_add(1);
        self.has_substituted = false;
        (self.commands, self.line_steps) = (0, 0);
        self.search.groups = Default::default();
        self.phase = Phase::Step(std::mem::take(&mut self.resume));
    }

    /// Executes a step.
    fn step(
        &mut self,
        script: &Script,
        at: usize,
        out: &mut Output,
    ) -> Result<Option<Next>, Wrong> {
        let Some(step) = script.steps.get(at) else {
            self.end_line(script, true, out);
            return Ok(None);
        };
        let before = self.search.steps;
        // A line that grows makes each command slower.
        let bytes_in_a_step =
            if matches!(step.command, Command::Transliterate(_)) { 2 } else { 32 };
        let work = COMMAND_STEPS + self.lines.whole().len() as u64 / bytes_in_a_step;
        let flow = match self.progress.is_some() || self.is_selected(step, at)? != step.is_negated {
            true => self.execute(script, step, at, out)?,
            false => Flow::Next,
        };
        let steps = work + self.search.steps - before;
        (self.turn_steps, self.line_steps) = (self.turn_steps + steps, self.line_steps + steps);
        self.commands += 1;
        if self.commands > COMMANDS_MAX || self.line_steps > LINE_STEPS_MAX {
            return Err(Wrong::TooMuchWork);
        }
        match flow {
            Flow::Next => self.phase = Phase::Step(at + 1),
            Flow::Jump(Some(target)) => self.phase = Phase::Step(target),
            Flow::Jump(None) => self.phase = Phase::Step(usize::MAX),
            Flow::Deleted => self.end_line(script, false, out),
            Flow::Appended(then) => self.phase = Phase::Appended(0, then),
            Flow::First(next) => {
                self.phase = Phase::Step(at + 1);
                return Ok(Some(next));
            }
            Flow::Again => return Ok(Some(Next::Turn)),
        }
        Ok(None)
    }

    fn end_line(&mut self, script: &Script, prints: bool, out: &mut Output) {
        if prints && !script.is_silent {
            out.line(self.lines.whole());
        }
        self.phase = Phase::Appended(0, Then::End);
    }

    /// Prints what was appended to the line; returns the source that comes next.
    fn append(
        &mut self,
        script: &Script,
        at: usize,
        then: Then,
        out: &mut Output,
    ) -> Option<usize> {
        let step = self.appended.get(at).and_then(|step| script.steps.get(*step));
        let Some(step) = step else {
            self.appended.clear();
            self.phase = Phase::Line;
            match then {
                Then::End => self.lines.clear(),
                Then::Next(step) => {
                    self.lines.clear();
                    self.resume = step;
                }
                Then::NextAppended(step) => self.resume = step,
                Then::Quit => self.phase = Phase::Over,
            }
            return None;
        };
        self.phase = Phase::Appended(at + 1, then);
        match &step.command {
            Command::Append(text) => out.line(text),
            Command::Read(source) => return Some(*source),
            _ => {}
        }
        None
    }

    /// Whether the line is one of those that the addresses name.
    fn is_selected(&mut self, step: &Step, at: usize) -> Result<bool, Wrong> {
        let Some(first) = &step.first else { return Ok(true) };
        let is_in_range = self.in_range.get(at).copied().unwrap_or(false);
        let (selected, stays) = match (&step.second, is_in_range) {
            (Some(second), true) => match &**second {
                Address::Last => (true, true),
                Address::Line(number) => (self.number <= *number, self.number < *number),
                Address::Pattern(_) => (true, !self.matches(second)?),
            },
            (second, _) => match &**first {
                Address::Last => (self.lines.is_last(), false),
                Address::Line(number) => (self.number == *number, second.is_some()),
                Address::Pattern(_) => (self.matches(first)?, second.is_some()),
            },
        };
        if let Some(in_range) = self.in_range.get_mut(at) {
            *in_range = selected && stays;
        }
        Ok(selected)
    }

    fn matches(&mut self, address: &Address) -> Result<bool, Wrong> {
        match address {
            Address::Pattern(pattern) => {
                let found = self.search.find(pattern, self.lines.text(), 0, false);
                found.map_err(|_| Wrong::TooMuchWork)
            }
            _ => Ok(false),
        }
    }

    /// Executes the command of a step.
    fn execute(
        &mut self,
        script: &Script,
        step: &Step,
        at: usize,
        out: &mut Output,
    ) -> Result<Flow, Wrong> {
        match &step.command {
            Command::Append(_) => return Ok(self.append_later(at, "appends")),
            Command::Read(_) => return Ok(self.append_later(at, "reads")),
            Command::Branch(target) => return Ok(Flow::Jump(*target)),
            Command::Test(target) if std::mem::take(&mut self.has_substituted) => {
                return Ok(Flow::Jump(*target));
            }
            Command::Change(text) => {
                if !self.in_range.get(at).copied().unwrap_or(false) || self.lines.is_last() {
                    out.line(text);
                }
                return Ok(Flow::Deleted);
            }
            Command::Delete => return Ok(Flow::Deleted),
            Command::DeleteFirst if self.lines.delete_first() => return Ok(Flow::Jump(Some(0))),
            Command::DeleteFirst => return Ok(Flow::Deleted),
            Command::Next | Command::Quit if !script.is_silent => out.line(self.lines.whole()),
            Command::NextAppended => self.lines.append(b"\n")?,
            Command::Insert(text) => out.line(text),
            // Apache prints an int.
            Command::LineNumber => out.line((self.number as i32).to_string().as_bytes()),
            Command::List => super::list::list(self.lines.text(), out),
            Command::Print => out.line(self.lines.whole()),
            Command::PrintFirst => out.line(self.lines.first()),
            Command::Substitute(how) => return self.substitute(script, how, out),
            Command::Write(target) => return Ok(Flow::First(Next::Write(*target))),
            command => self.edit(command)?,
        }
        Ok(match &step.command {
            Command::Next => Flow::Appended(Then::Next(at + 1)),
            Command::NextAppended => Flow::Appended(Then::NextAppended(at + 1)),
            Command::Quit => Flow::Appended(Then::Quit),
            _ => Flow::Next,
        })
    }

    /// Has a text or a file printed after the line.
    fn append_later(&mut self, step: usize, what: &str) -> Flow {
        if self.appended.len() >= APPENDED_MAX {
            let message = format!("too many {what} after line {}", self.number);
            return Flow::First(Next::Log(message));
        }
        self.appended.push(step);
        Flow::Next
    }

    /// Executes a command that only changes the line and what is held.
    fn edit(&mut self, command: &Command) -> Result<(), Wrong> {
        match command {
            Command::Fetch => self.lines.set(self.hold.clone()),
            Command::FetchAppended => {
                self.lines.append(b"\n")?;
                self.lines.append(&self.hold)?;
            }
            Command::Hold => self.hold = self.lines.text().to_vec(),
            Command::HoldAppended => {
                self.hold.push(b'\n');
                self.hold.extend_from_slice(self.lines.text());
                if self.hold.len() > SPACE_BYTES {
                    return Err(Wrong::TooLong);
                }
            }
            Command::Exchange => {
                let line = self.lines.text().to_vec();
                self.lines.set(std::mem::replace(&mut self.hold, line));
            }
            Command::Transliterate(table) => self.lines.transliterate(table),
            _ => {}
        }
        Ok(())
    }

    /// Notes that a substitution was made, or not.
    pub(super) fn note_substitution(&mut self, made: bool) {
        self.has_substituted = made;
    }
}
