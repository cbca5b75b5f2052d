//! Parses commands.

use super::parser::{Failed, Parser};
use super::pattern::{NO_SUCH_GROUP, TOO_MUCH};
use super::script::{Command, Part, Prints, Substitution, Which};

/// What follows a command.
pub(crate) enum Then {
    /// The next line: Apache reads nothing behind a label or the end of a block.
    EndOfLine,
    /// Another command, with addresses of its own.
    NextCommand,
    /// The end of this command, which is to be added.
    Step(Command),
}

/// Files of `w` (`NWFILES`).
const TARGETS_MAX: usize = 11;

/// Bytes of a file's name (`APR_PATH_MAX`).
const NAME_BYTES: usize = 4096;

/// Bytes of a text in Apache's compiled script: all that are left.
const TEXT_BYTES: usize = 9999;

const NO_ADDRESS: &str = "no addresses allowed: ";
const ONE_ADDRESS: &str = "only one address allowed: ";
const NO_SPACE: &str = "Space missing before filename: ";
const NO_END: &str = "ending delimiter missing on string: ";
const NO_END_OF_REPLACEMENT: &str = "ending delimiter missing on substitution: ";
const OTHER_SIZE: &str = "transform strings not the same size: ";

impl Parser {
    /// The command of this name, behind which the parser stands.
    pub fn command(&mut self, name: u8) -> Result<Then, Failed> {
        if matches!(name, b'=' | b'a' | b'i' | b'r' | b'q') && self.draft.has_range() {
            return Err(self.fail(ONE_ADDRESS));
        }
        if matches!(name, b':' | b'}') && self.draft.has_address() {
            return Err(self.fail(NO_ADDRESS));
        }
        Ok(Then::Step(match name {
            b'{' => return self.open_block(),
            b'}' if self.labels.close(&mut self.script) => return Ok(Then::EndOfLine),
            b'}' => return Err(self.fail_with("too many }'s")),
            b':' => return self.label(),
            b'=' => Command::LineNumber,
            b'a' => Command::Append(self.lines()?),
            b'b' => Command::Branch(self.target()?),
            b'c' => Command::Change(self.lines()?),
            b'd' => Command::Delete,
            b'D' => Command::DeleteFirst,
            b'g' => Command::Fetch,
            b'G' => Command::FetchAppended,
            b'h' => Command::Hold,
            b'H' => Command::HoldAppended,
            b'i' => Command::Insert(self.lines()?),
            b'l' => Command::List,
            b'n' => Command::Next,
            b'N' => Command::NextAppended,
            b'p' => Command::Print,
            b'P' => Command::PrintFirst,
            b'q' => Command::Quit,
            b'r' => self.source()?,
            b's' => self.substitution()?,
            b't' => Command::Test(self.target()?),
            b'w' => Command::Write(self.file()?),
            b'x' => Command::Exchange,
            b'y' => Command::Transliterate(self.table()?),
            _ => return Err(self.fail("unrecognized command: ")),
        }))
    }

    fn open_block(&mut self) -> Result<Then, Failed> {
        let opened = self.labels.open(&self.script);
        opened.map_err(|wrong| self.fail(wrong))?;
        self.draft.is_negated = !self.draft.is_negated;
        self.push(Command::Branch(None))?;
        Ok(Then::NextCommand)
    }

    fn label(&mut self) -> Result<Then, Failed> {
        let name = self.name();
        let defined = self.labels.define(&name, &mut self.script);
        defined.map_err(|wrong| self.fail(wrong))?;
        Ok(Then::EndOfLine)
    }

    fn target(&mut self) -> Result<Option<usize>, Failed> {
        let name = self.name();
        let target = self.labels.branch(&name, &mut self.script);
        target.map_err(|wrong| self.fail(wrong))
    }

    /// A label: the rest of the line.
    fn name(&mut self) -> Vec<u8> {
        while self.peek() == b' ' {
            self.at += 1;
        }
        let mut name = Vec::new();
        while self.peek() != 0 {
            name.push(self.next());
        }
        name
    }

    /// The text of `a`, `c` and `i`, which begins in a line of its own.
    fn lines(&mut self) -> Result<Vec<u8>, Failed> {
        if self.peek() == b'\\' {
            self.at += 1;
        }
        if self.next() != b'\n' {
            return Err(self.garbled());
        }
        let text = self.text(TEXT_BYTES.saturating_sub(self.space)).ok_or(Failed)?;
        self.space += text.len() + 1;
        Ok(text)
    }

    /// `r`
    fn source(&mut self) -> Result<Command, Failed> {
        if self.next() != b' ' {
            return Err(self.garbled());
        }
        let name = self.text(TEXT_BYTES.saturating_sub(self.space)).ok_or(Failed)?;
        self.space += name.len() + 1;
        Ok(Command::Read(index_of(&mut self.script.sources, name)))
    }

    /// The file of `w`.
    fn file(&mut self) -> Result<usize, Failed> {
        if self.next() != b' ' {
            return Err(self.fail(NO_SPACE));
        }
        let Some(name) = self.text(NAME_BYTES) else {
            return Err(self.fail("file name too long: "));
        };
        let index = index_of(&mut self.script.targets, name);
        if index >= TARGETS_MAX {
            return Err(self.fail_with("too many files in w commands"));
        }
        Ok(index)
    }

    /// A text up to the end of the line, without the blanks at the beginning of its lines; `None`
    /// if it is longer than `limit`.
    fn text(&mut self, limit: usize) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        self.skip_indentation();
        loop {
            if text.len() > limit {
                return None;
            }
            let mut byte = self.next();
            if byte == b'\\' {
                byte = self.next();
            }
            if byte == 0 {
                self.at -= 1;
                return Some(text);
            }
            text.push(byte);
            if byte == b'\n' {
                self.skip_indentation();
            }
        }
    }

    fn skip_indentation(&mut self) {
        while matches!(self.peek(), b'\t' | b' ') {
            self.at += 1;
        }
    }

    /// `s`
    fn substitution(&mut self) -> Result<Command, Failed> {
        let delimiter = self.next();
        let pattern = match self.pattern(delimiter)? {
            None => self.last_address()?,
            Some((pattern, groups)) => {
                self.groups = groups;
                self.last = Some(pattern.clone());
                pattern
            }
        };
        let replacement = self.replacement(delimiter)?;
        let mut which = Which::First;
        if self.peek() == b'g' {
            self.at += 1;
            which = Which::All;
        }
        if let b'1'..=b'9' = self.peek() {
            let mut number = 0;
            while let digit @ b'0'..=b'9' = self.peek() {
                number = number * 10 + u32::from(digit - b'0');
                if number > 512 {
                    return Err(self.fail("suffix too large: "));
                }
                self.at += 1;
            }
            which = Which::Number(number);
        }
        let mut prints = Prints::Nothing;
        for (flag, what) in [(b'p', Prints::Line), (b'P', Prints::First)] {
            if self.peek() == flag {
                self.at += 1;
                prints = what;
            }
        }
        let mut target = None;
        if self.peek() == b'w' {
            self.at += 1;
            target = Some(self.file()?);
        }
        Ok(Command::Substitute(Box::new(Substitution {
            pattern,
            replacement,
            which,
            prints,
            target,
        })))
    }

    /// Source: `compsub`.
    fn replacement(&mut self, delimiter: u8) -> Result<Vec<Part>, Failed> {
        let (mut parts, mut text) = (Vec::new(), Vec::new());
        loop {
            if self.is_over_space() {
                return Err(self.fail(TOO_MUCH));
            }
            let byte = self.next();
            self.space += 1;
            let part = match byte {
                b'\\' => {
                    let escaped = self.next();
                    self.space += 1;
                    match escaped {
                        b'1'..=b'9' => {
                            let group = usize::from(escaped - b'1');
                            if group >= self.groups {
                                return Err(self.fail(NO_SUCH_GROUP));
                            }
                            Some(Part::Group(group))
                        }
                        0 => return Err(self.fail(NO_END_OF_REPLACEMENT)),
                        _ => {
                            text.push(escaped);
                            None
                        }
                    }
                }
                _ if byte == delimiter => break,
                0 => return Err(self.fail(NO_END_OF_REPLACEMENT)),
                b'&' => Some(Part::Match),
                _ => {
                    text.push(byte);
                    None
                }
            };
            if let Some(part) = part {
                if !text.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut text)));
                }
                parts.push(part);
            }
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(parts)
    }

    /// The table of `y`. Source: `ycomp`.
    fn table(&mut self) -> Result<Box<[u8; 256]>, Failed> {
        let delimiter = self.next();
        if self.space + 256 > TEXT_BYTES {
            return Err(self.fail(TOO_MUCH));
        }
        let mut to = self.at;
        loop {
            let byte = self.byte_at(to);
            if byte == delimiter {
                break;
            }
            if byte == 0 || byte == b'\n' {
                return Err(self.fail(NO_END));
            }
            to += if byte == b'\\' { 2 } else { 1 };
        }
        to += 1;
        let mut table = [0u8; 256];
        loop {
            let mut from = self.next();
            if from == delimiter || self.is_exhausted() {
                break;
            }
            if from == b'\\' && self.peek() == b'n' {
                self.at += 1;
                from = b'\n';
            }
            let mut byte = self.byte_at(to);
            to += 1;
            if byte == b'\\' && self.byte_at(to) == b'n' {
                byte = b'\n';
                to += 1;
            }
            if let Some(entry) = table.get_mut(usize::from(from)) {
                *entry = byte;
            }
        }
        match self.byte_at(to) {
            byte if byte == delimiter => self.at = to + 1,
            0 => return Err(self.fail(NO_END)),
            _ => return Err(self.fail(OTHER_SIZE)),
        }
        for (byte, entry) in (0..=255).zip(&mut table) {
            if *entry == 0 {
                *entry = byte;
            }
        }
        self.space += 256;
        Ok(Box::new(table))
    }
}

/// The place of a name in a list, to which it is added if it is missing.
fn index_of(names: &mut Vec<Vec<u8>>, name: Vec<u8>) -> usize {
    let place = names.iter().position(|known| *known == name);
    place.unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}
