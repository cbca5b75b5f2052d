//! Parses scripts, as the sed of Solaris does in Apache.
//!
//! Source: `fcomp` and what it calls (modules/filters/sed0.c). A script's line is a string that
//! ends at a zero byte, and what Apache reads beyond is what it finds here, too.

use std::sync::Arc;

use super::commands::Then;
use super::labels::Labels;
use super::pattern::{Compiled, Compiler, TOO_MUCH};
use super::script::{Address, Command, Script, Step};

/// Bytes of Apache's compiled script (`RESIZE`).
const SPACE_BYTES: usize = 10_000;

/// Bytes of a line of a script (`LBSIZE`).
const LINE_BYTES: usize = 1000;

/// Addresses by number in a script (`SED_NLINES`).
const NUMBERS_MAX: usize = 256;

/// Commands of a script. Apache has no limit.
const STEPS_MAX: usize = 10_000;

/// A script of which more may come: a section's directives continue each other.
#[derive(Clone, Debug)]
pub(crate) struct Parser {
    /// The commands so far.
    pub script: Script,
    /// What of labels and blocks is still open.
    pub labels: Labels,
    /// The line that is being parsed, followed by zeros and what earlier lines have left.
    line: Vec<u8>,
    /// Where the next byte is read.
    pub at: usize,
    /// The bytes that Apache's compiled script takes.
    pub space: usize,
    /// The next command's addresses.
    pub draft: Draft,
    /// The address that an empty pattern stands for.
    pub last: Option<Arc<Address>>,
    /// That of a line whose parsing has failed does not count.
    kept: Option<Arc<Address>>,
    numbers: usize,
    /// Groups of the last pattern of `s`.
    pub groups: usize,
    /// What is wrong, or would be if the rest was.
    complaint: Option<String>,
}

/// The addresses of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    first: Option<Arc<Address>>,
    second: Option<Arc<Address>>,
    /// Whether `!` stands behind them.
    pub is_negated: bool,
}

impl Draft {
    /// Whether there is an address.
    pub fn has_address(&self) -> bool {
        self.first.is_some()
    }

    /// Whether there are two of them.
    pub fn has_range(&self) -> bool {
        self.second.is_some()
    }
}

/// The script can't be parsed: [`Parser::complaint`] has the reason.
#[derive(Debug)]
pub(crate) struct Failed;

/// An address, or none.
enum Found {
    None,
    /// The empty pattern.
    Empty,
    Address(Arc<Address>),
}

impl Default for Parser {
    fn default() -> Parser {
        Parser {
            script: Script::default(),
            labels: Labels::default(),
            line: vec![0; LINE_BYTES + 1],
            at: 0,
            space: 0,
            draft: Draft::default(),
            last: None,
            kept: None,
            numbers: 0,
            groups: 0,
            complaint: None,
        }
    }
}

impl Parser {
    /// Adds what a directive says.
    ///
    /// # Errors
    /// The reason, in Apache's words.
    pub fn add(&mut self, text: &[u8]) -> Result<(), String> {
        self.last = self.kept.clone();
        self.groups = 0;
        let mut rest = Some(text);
        let mut is_first = true;
        while let Some(text) = rest {
            // A line that is too long, or ends with a backslash, is the end of the script.
            let Some(next) = self.read_line(text) else { break };
            rest = next;
            if std::mem::take(&mut is_first) && self.peek() == b'#' {
                self.script.is_silent |= self.line.get(1) == Some(&b'n');
                continue;
            }
            if self.commands().is_err() {
                return Err(self.complaint.take().unwrap_or_else(|| "(null)".into()));
            }
        }
        self.kept = self.last.clone();
        self.script.unfinished = self.labels.unfinished();
        Ok(())
    }

    /// Takes a line over; returns what follows it.
    #[allow(clippy::option_option, reason = "the end of the script, and a line without a next one")]
    fn read_line<'t>(&mut self, text: &'t [u8]) -> Option<Option<&'t [u8]>> {
        let mut end = 0;
        let next = loop {
            match text.get(end) {
                None => break None,
                Some(b'\n') => break text.get(end + 1..),
                // The byte behind a backslash belongs to the line.
                Some(b'\\') if end + 1 >= text.len() => return None,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        };
        let line = text.get(..end)?;
        let room = self.line.get_mut(..=end)?;
        let (last, rest) = room.split_last_mut()?;
        rest.copy_from_slice(line);
        *last = 0;
        self.at = 0;
        Some(next)
    }

    /// The commands of a line.
    fn commands(&mut self) -> Result<(), Failed> {
        loop {
            self.skip_blanks();
            match self.peek() {
                0 | b'#' => return Ok(()),
                b';' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            self.addresses()?;
            self.skip_blanks();
            let name = loop {
                match self.next() {
                    b'!' => self.draft.is_negated = true,
                    name => break name,
                }
            };
            match self.command(name)? {
                Then::EndOfLine => return Ok(()),
                Then::NextCommand => continue,
                Then::Step(command) => self.push(command)?,
            }
            match self.next() {
                0 => return Ok(()),
                b';' => {}
                _ => return Err(self.garbled()),
            }
        }
    }

    /// Adds a command with the addresses that precede it.
    pub fn push(&mut self, command: Command) -> Result<(), Failed> {
        if self.script.steps.len() >= STEPS_MAX {
            return Err(self.fail("too many commands: "));
        }
        let Draft { first, second, is_negated } = std::mem::take(&mut self.draft);
        self.script.steps.push(Step { first, second, is_negated, command });
        Ok(())
    }

    fn addresses(&mut self) -> Result<(), Failed> {
        match self.address()? {
            Found::None => self.draft.first = None,
            Found::Empty => self.draft.first = Some(self.last_address()?),
            Found::Address(address) => {
                self.last = Some(address.clone());
                self.draft.first = Some(address);
                if matches!(self.peek(), b',' | b';') {
                    self.at += 1;
                    self.draft.second = match self.address()? {
                        Found::None => return Err(self.garbled()),
                        Found::Empty => self.last.clone(),
                        Found::Address(address) => {
                            self.last = Some(address.clone());
                            Some(address)
                        }
                    };
                }
            }
        }
        if self.space >= SPACE_BYTES {
            return Err(self.fail(TOO_MUCH));
        }
        Ok(())
    }

    /// The address that an empty pattern stands for.
    pub fn last_address(&mut self) -> Result<Arc<Address>, Failed> {
        match self.last.clone() {
            Some(last) => Ok(last),
            None => {
                self.complaint = Some("first RE may not be null".into());
                Err(Failed)
            }
        }
    }

    fn address(&mut self) -> Result<Found, Failed> {
        match self.peek() {
            b'$' => {
                self.take_space(2)?;
                self.at += 1;
                Ok(Found::Address(Arc::new(Address::Last)))
            }
            b'/' | b'\\' => {
                if self.next() == b'\\' {
                    self.at += 1;
                }
                let delimiter = self.line.get(self.at.wrapping_sub(1)).copied().unwrap_or(0);
                // One that can't be compiled counts as none: its first byte is the command.
                Ok(match self.pattern(delimiter) {
                    Err(Failed) => Found::None,
                    Ok(None) => Found::Empty,
                    Ok(Some((address, _))) => Found::Address(address),
                })
            }
            b'0'..=b'9' => self.line_number(),
            _ => Ok(Found::None),
        }
    }

    fn line_number(&mut self) -> Result<Found, Failed> {
        let mut number = 0i64;
        while let digit @ b'0'..=b'9' = self.peek() {
            number = number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0'));
            self.at += 1;
        }
        self.take_space(3)?;
        self.numbers += 1;
        if self.numbers >= NUMBERS_MAX {
            return Err(self.garbled());
        }
        Ok(Found::Address(Arc::new(Address::Line(number))))
    }

    fn take_space(&mut self, bytes: usize) -> Result<(), Failed> {
        if self.space > SPACE_BYTES - bytes {
            return Err(self.garbled());
        }
        self.space += bytes;
        Ok(())
    }

    /// Compiles what follows up to `delimiter`: the pattern and its groups, or `None` if it is
    /// empty.
    pub fn pattern(&mut self, delimiter: u8) -> Result<Option<(Arc<Address>, usize)>, Failed> {
        let room = SPACE_BYTES - 1;
        let mut compiler = Compiler::new(&self.line, self.at, delimiter, self.space, room);
        let compiled = compiler.compile();
        let (at, space) = compiler.ends();
        match compiled {
            Err(wrong) => Err(self.fail(wrong)),
            Ok(Compiled::Empty) => {
                self.at = at;
                Ok(None)
            }
            Ok(Compiled::Pattern(pattern, groups)) => {
                (self.at, self.space) = (at, space);
                Ok(Some((Arc::new(Address::Pattern(pattern)), groups)))
            }
        }
    }

    /// The next byte, which is read.
    pub fn next(&mut self) -> u8 {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    /// The next byte.
    pub fn peek(&self) -> u8 {
        self.line.get(self.at).copied().unwrap_or(0)
    }

    /// The byte at `at`.
    pub fn byte_at(&self, at: usize) -> u8 {
        self.line.get(at).copied().unwrap_or(0)
    }

    /// Whether nothing comes any more, not even what earlier lines have left.
    pub fn is_exhausted(&self) -> bool {
        self.at > self.line.len()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.at += 1;
        }
    }

    /// Whether the compiled script is longer than Apache's may be.
    pub fn is_over_space(&self) -> bool {
        self.space >= SPACE_BYTES
    }

    /// The line can't be understood.
    pub fn garbled(&mut self) -> Failed {
        self.fail("command garbled: ")
    }

    /// Remembers what is wrong with this line.
    pub fn fail(&mut self, wrong: &str) -> Failed {
        let line = self.line.split(|byte| *byte == 0).next().unwrap_or_default();
        self.complaint = Some(format!("{wrong}{}", String::from_utf8_lossy(line)));
        Failed
    }

    /// Remembers what is wrong.
    pub fn fail_with(&mut self, wrong: &str) -> Failed {
        self.complaint = Some(wrong.into());
        Failed
    }
}
