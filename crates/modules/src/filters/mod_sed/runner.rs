//! Executes a script on a body that comes in pieces, with its files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use super::machine::{Machine, Next, Wrong};
use super::output::Output;
use super::parser::Parser;
use crate::filters::rewritten::Rewrite;

/// Bytes of a file that are read at a time, as Apache counts what it writes.
const READ_BYTES: usize = 512;

/// Bytes of output that end a turn.
const TURN_BYTES: usize = 64 * 1024;

/// Messages of a body.
const MESSAGES_MAX: usize = 16;

/// A script that is being executed.
pub(super) struct Runner {
    script: Arc<Parser>,
    machine: Machine,
    output: Output,
    /// The files of `w`, and what is to be written to them.
    targets: Vec<(File, Vec<u8>)>,
    /// The file of an `r`.
    source: Option<File>,
    /// Whether there is more to do before input is needed.
    is_behind: bool,
    is_over: bool,
    /// What is to be logged.
    pub messages: Vec<String>,
}

impl Runner {
    /// Before the first line. Opens the files that the script writes, unless it `only_looks`.
    ///
    /// # Errors
    /// The name of a file that can't be opened.
    pub fn new(script: Arc<Parser>, only_looks: bool) -> Result<Runner, Vec<u8>> {
        let open = |name: &Vec<u8>| {
            let path = Path::new(std::ffi::OsStr::from_bytes(name));
            regular::create(path).map(|file| (file, Vec::new())).map_err(|_| name.clone())
        };
        let targets = script.script.targets.iter().filter(|_| !only_looks);
        let targets = targets.map(open).collect::<Result<_, _>>()?;
        Ok(Runner {
            machine: Machine::new(script.clone()),
            script,
            output: Output::default(),
            targets,
            source: None,
            is_behind: false,
            is_over: false,
            messages: Vec::new(),
        })
    }

    /// Whether Apache would have sent the head of the response by now.
    pub fn is_passed_on(&self) -> bool {
        self.output.is_passed_on()
    }

    /// Whether it would have done so before the end of the body, which has been reached.
    pub fn is_passed_on_at_end(&self) -> bool {
        self.output.is_passed_on_at_end()
    }

    fn run(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        let done = self.steps();
        out.append(&mut self.output.text);
        for (file, text) in &mut self.targets {
            // Apache does not look whether a line was written.
            let _ = file.write_all(text);
            text.clear();
        }
        done
    }

    fn steps(&mut self) -> io::Result<()> {
        self.is_behind = true;
        while !self.is_over {
            if let Some(source) = self.source.take() {
                self.copy(source);
            }
            if self.output.text.len() > TURN_BYTES {
                return Ok(());
            }
            match self.machine.next(&mut self.output) {
                Ok(Next::Input) => break,
                Ok(Next::Turn) => return Ok(()),
                Ok(Next::Over) => self.is_over = true,
                Ok(Next::Read(source)) => self.source = self.open(source),
                Ok(Next::Write(target)) => self.write(target),
                Ok(Next::Log(message)) => {
                    if self.messages.len() < MESSAGES_MAX {
                        self.messages.push(message);
                    }
                }
                // Apache passes on what there is.
                Err(Wrong::TooLong) if self.machine.is_at_end() => self.is_over = true,
                Err(wrong) => {
                    self.is_over = true;
                    self.is_behind = false;
                    return Err(io::Error::other(match wrong {
                        Wrong::TooLong => "a line of sed is too long",
                        Wrong::TooMuchWork => "a sed script takes too long",
                    }));
                }
            }
        }
        self.is_behind = false;
        Ok(())
    }

    /// A file that can't be opened is left out.
    fn open(&self, source: usize) -> Option<File> {
        let name = self.script.script.sources.get(source)?;
        regular::open(Path::new(std::ffi::OsStr::from_bytes(name))).ok()
    }

    /// Copies a part of a file.
    fn copy(&mut self, mut source: File) {
        let mut piece = [0; READ_BYTES];
        while self.output.text.len() <= TURN_BYTES {
            match source.read(&mut piece) {
                Ok(count @ 1..) => self.output.write(piece.get(..count).unwrap_or_default()),
                _ => return,
            }
        }
        self.source = Some(source);
    }

    fn write(&mut self, target: usize) {
        if let Some((_, text)) = self.targets.get_mut(target) {
            text.extend_from_slice(self.machine.text());
            text.push(b'\n');
        }
    }
}

impl Rewrite for Runner {
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        if self.is_over {
            return Ok(());
        }
        self.machine.lines.push(piece);
        self.run(out)
    }

    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.machine.lines.complete();
        self.run(out)
    }

    fn is_behind(&self) -> bool {
        self.is_behind
    }
}
