//! Piped logs: programs that read log lines from a pipe (`|prog`, `||prog`, `|$shell command`).
//!
//! The supervisor keeps both ends of every pipe open, so that a reader can die and be restarted
//! without losing a line that fits into the pipe. The write end never blocks: a reader that is too
//! slow loses lines, which are counted, and never delays serving.
//!
//! As in Apache, every restart starts new readers; the previous generation's see end of file when
//! its last child is gone.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::companion::reset_signals;

/// How long a reader may take to end after its end of file before it is sent SIGTERM.
pub const READER_END_DEADLINE: Duration = Duration::from_secs(2);
/// The pipe's size if the system allows it (`/proc/sys/fs/pipe-max-size`).
pub const PIPE_BYTES: usize = 1 << 20;
/// A reader that dies sooner than this is restarted after a pause.
const QUICK_DEATH: Duration = Duration::from_secs(1);
/// The longest pause before a reader is restarted.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Words in the command of a piped log at most.
const WORDS_MAX: usize = 4096;

/// The command of a piped log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PipeSpec {
    /// `|prog arg …` and `||prog arg …`: executed directly. At least one word.
    Program(Vec<Vec<u8>>),
    /// `|$command`: executed by `/bin/sh -c`.
    Shell(Vec<u8>),
}

impl PipeSpec {
    /// Parses a log's target. `None` if it doesn't begin with `|` or names no program.
    pub fn parse(target: &[u8]) -> Option<Self> {
        let command = target.strip_prefix(b"|")?;
        if let Some(command) = command.strip_prefix(b"$") {
            let command = command.trim_ascii();
            return (!command.is_empty()).then(|| Self::Shell(command.to_vec()));
        }
        let words = split_words(command.strip_prefix(b"|").unwrap_or(command));
        (!words.is_empty()).then_some(Self::Program(words))
    }

    /// The command for use in messages.
    pub fn display(&self) -> String {
        let bytes = match self {
            Self::Program(words) => words.join(&b' '),
            Self::Shell(command) => command.clone(),
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn command(&self) -> Command {
        let word = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        match self {
            Self::Program(words) => {
                let mut words = words.iter().map(|bytes| word(bytes));
                let mut command = Command::new(words.next().unwrap_or_default());
                command.args(words);
                command
            }
            Self::Shell(line) => {
                let mut command = Command::new("/bin/sh");
                command.arg("-c").arg(word(line));
                command
            }
        }
    }
}

/// Splits a command as `apr_tokenize_to_argv` does: blanks separate words, and quotes of either
/// kind around a word keep them. A backslash before a blank or a quote makes it a part of the word;
/// then backslashes are removed, except those behind one.
pub fn split_words(command: &[u8]) -> Vec<Vec<u8>> {
    let is_blank = |byte: u8| byte == b' ' || byte == b'\t';
    let mut words = Vec::new();
    let mut rest = command;
    while words.len() < WORDS_MAX {
        let start = rest.iter().position(|byte| !is_blank(*byte));
        let Some(word) = start.and_then(|start| rest.get(start..)) else { break };
        let quote = word.first().copied().filter(|byte| matches!(byte, b'"' | b'\''));
        let word = word.get(usize::from(quote.is_some())..).unwrap_or_default();
        let mut end = 0;
        while let Some(byte) = word.get(end) {
            let next = word.get(end + 1).copied();
            match *byte {
                b'\\' if next.is_some_and(|next| is_blank(next) || b"\"'".contains(&next)) => {
                    end += 1
                }
                byte if quote == Some(byte) || quote.is_none() && is_blank(byte) => break,
                _ => {}
            }
            end += 1;
        }
        let mut bytes = word.get(..end.min(word.len())).unwrap_or_default().iter().copied();
        let unescaped = std::iter::from_fn(|| match bytes.next()? {
            b'\\' => bytes.next(),
            byte => Some(byte),
        });
        words.push(unescaped.collect());
        rest = word.get(end + 1..).unwrap_or_default();
    }
    words
}

/// The write end of a piped log. Never blocks.
#[derive(Debug)]
pub struct PipeWriter {
    fd: OwnedFd,
}

impl PipeWriter {
    /// Writes one or more whole lines. False if they were dropped because the pipe is full or has
    /// no reader: count it
    /// ([`Scoreboard::count_dropped_log_lines`](crate::Scoreboard::count_dropped_log_lines)).
    ///
    /// Up to 4096 bytes (PIPE_BUF) are written in whole or not at all. Longer writes can be cut if
    /// the pipe is nearly full; the rest is then dropped.
    pub fn write(&self, lines: &[u8]) -> bool {
        let mut rest = lines;
        while !rest.is_empty() {
            match rustix::io::write(&self.fd, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or(&[]),
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Another handle to the same pipe.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }
}

impl AsFd for PipeWriter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl From<PipeWriter> for OwnedFd {
    fn from(writer: PipeWriter) -> Self {
        writer.fd
    }
}

/// All readers of piped logs, in the supervisor. Children clear theirs after the fork.
#[derive(Default)]
pub struct PipedLogs {
    readers: Vec<Reader>,
}

struct Reader {
    spec: PipeSpec,
    generation: u32,
    /// The running program.
    pid: Option<Pid>,
    started: Instant,
    quick_deaths: u32,
    /// When to restart it.
    restart_at: Option<Instant>,
    /// Both ends of the pipe; `None` once the reader must end.
    ends: Option<(OwnedFd, OwnedFd)>,
    /// When a reader that must end is sent SIGTERM.
    end_by: Option<Instant>,
}

/// What [`PipedLogs::reaped`] has found out about a process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    /// Not a reader.
    Stranger,
    /// A reader that was supposed to end.
    Ended,
    /// A reader that ended unexpectedly: its command.
    Died(String),
}

impl PipedLogs {
    /// Creates the pipe of a reader for `generation`, or finds the existing one.
    /// [`PipedLogs::start_all`] starts the reader, once standard error is in place.
    pub(crate) fn open(&mut self, spec: &PipeSpec, generation: u32) -> io::Result<PipeWriter> {
        let existing = self
            .readers
            .iter()
            .find(|reader| reader.generation == generation && reader.spec == *spec)
            .and_then(|reader| reader.ends.as_ref());
        if let Some((_, write_end)) = existing {
            return Ok(PipeWriter { fd: write_end.try_clone()? });
        }
        let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&write_end, true)?;
        // Refused above the system's limit for ordinary users: the default size is good enough.
        let _ = rustix::pipe::fcntl_setpipe_size(&write_end, PIPE_BYTES);
        let writer = PipeWriter { fd: write_end.try_clone()? };
        self.readers.push(Reader {
            spec: spec.clone(),
            generation,
            pid: None,
            started: Instant::now(),
            quick_deaths: 0,
            restart_at: None,
            ends: Some((read_end, write_end)),
            end_by: None,
        });
        Ok(writer)
    }

    /// Starts the readers that were opened and are not running. On failure returns the command and
    /// the cause.
    pub(crate) fn start_all(&mut self) -> Result<(), String> {
        for reader in &mut self.readers {
            let is_new = reader.pid.is_none() && reader.restart_at.is_none();
            if is_new && let Err(error) = reader.start() {
                return Err(format!("'{}': {error}", reader.spec.display()));
            }
        }
        Ok(())
    }

    /// Records the end of a process.
    pub(crate) fn reaped(&mut self, pid: Pid, now: Instant) -> Reaped {
        let Some(position) = self.readers.iter().position(|reader| reader.pid == Some(pid)) else {
            return Reaped::Stranger;
        };
        let Some(reader) = self.readers.get_mut(position) else { return Reaped::Stranger };
        reader.pid = None;
        if reader.ends.is_none() {
            self.readers.remove(position);
            return Reaped::Ended;
        }
        let lived = now.saturating_duration_since(reader.started);
        reader.quick_deaths = if lived < QUICK_DEATH { reader.quick_deaths + 1 } else { 0 };
        reader.restart_at = Some(now + pause(reader.quick_deaths));
        Reaped::Died(reader.spec.display())
    }

    /// Restarts readers that are due, and sends SIGTERM to those that did not end in time. Returns
    /// what could not be started.
    pub(crate) fn turn(&mut self, now: Instant) -> Vec<String> {
        let mut failures = Vec::new();
        for reader in &mut self.readers {
            if reader.restart_at.is_some_and(|at| at <= now) {
                reader.restart_at = None;
                if let Err(error) = reader.start() {
                    failures.push(format!("{}: {error}", reader.spec.display()));
                    reader.quick_deaths += 1;
                    reader.restart_at = Some(now + pause(reader.quick_deaths));
                }
            }
            if reader.end_by.is_some_and(|by| by <= now) {
                reader.end_by = None;
                if let Some(pid) = reader.pid {
                    let _ = kill(pid, Signal::SIGTERM);
                }
            }
        }
        failures
    }

    /// When [`PipedLogs::turn`] has work next.
    pub(crate) fn next_turn(&self) -> Option<Instant> {
        self.readers.iter().flat_map(|reader| [reader.restart_at, reader.end_by]).flatten().min()
    }

    /// Ends the readers of generations for which `is_over` holds: they see end of file when the
    /// last process that writes to them is gone.
    pub(crate) fn end(&mut self, is_over: impl Fn(u32) -> bool, now: Instant) {
        for reader in &mut self.readers {
            if is_over(reader.generation) && reader.ends.take().is_some() {
                reader.restart_at = None;
                reader.end_by = Some(now + READER_END_DEADLINE);
            }
        }
        self.readers.retain(|reader| reader.ends.is_some() || reader.pid.is_some());
    }

    /// Whether any reader is running.
    pub(crate) fn is_running(&self) -> bool {
        self.readers.iter().any(|reader| reader.pid.is_some())
    }

    /// Drops all readers, in a child.
    pub(crate) fn forget(&mut self) {
        self.readers.clear();
    }
}

impl Reader {
    fn start(&mut self) -> io::Result<()> {
        let Some((read_end, write_end)) = &self.ends else { return Ok(()) };
        // The reader of the error log must not hold its own pipe open as standard error, or it
        // would never see the end.
        let standard_error = match is_same_file(write_end, io::stderr().as_fd()) {
            true => Stdio::null(),
            false => Stdio::inherit(),
        };
        // Runs in its own process group, so that an interrupt typed at a terminal ends the server
        // and lets the reader read to the end.
        let mut command = self.spec.command();
        command.stdin(Stdio::from(read_end.try_clone()?)).stderr(standard_error).process_group(0);
        reset_signals(&mut command);
        let child = command.spawn()?;
        self.pid = i32::try_from(child.id()).ok().map(Pid::from_raw);
        self.started = Instant::now();
        Ok(())
    }
}

fn is_same_file(one: impl AsFd, other: impl AsFd) -> bool {
    match (rustix::fs::fstat(one), rustix::fs::fstat(other)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// The pause before a process is restarted: none at first, then doubling.
pub fn pause(quick_deaths: u32) -> Duration {
    match quick_deaths {
        0 | 1 => Duration::ZERO,
        more => Duration::from_millis(100 << more.min(12)).min(PAUSE_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_parse_as_apache_reads_them() {
        let words = |list: &[&str]| {
            PipeSpec::Program(list.iter().map(|word| word.as_bytes().to_vec()).collect())
        };
        let parse = |text: &str| PipeSpec::parse(text.as_bytes());
        assert_eq!(parse("|/bin/cat >x"), Some(words(&["/bin/cat", ">x"])));
        assert_eq!(parse("||rotatelogs 'a b' \"c d\""), Some(words(&["rotatelogs", "a b", "c d"])));
        assert_eq!(parse("| a\\ b  c"), Some(words(&["a b", "c"])));
        assert_eq!(parse("|$cat >> x"), Some(PipeSpec::Shell(b"cat >> x".to_vec())));
        assert_eq!(parse("|"), None);
        assert_eq!(parse("|$ "), None);
        assert_eq!(parse("logs/access.log"), None);
    }

    #[test]
    fn a_full_pipe_drops_and_does_not_block() {
        let mut pipes = PipedLogs::default();
        let spec = PipeSpec::parse(b"|/bin/sleep 60").unwrap();
        let writer = pipes.open(&spec, 1).unwrap();
        pipes.start_all().unwrap();
        let line = [b'x'; 4096];
        let written = (0..10_000).take_while(|_| writer.write(&line)).count();
        assert!((1..10_000).contains(&written), "{written}");
        let pid = pipes.readers[0].pid.unwrap();
        pipes.end(|_| true, Instant::now());
        kill(pid, Signal::SIGKILL).unwrap();
        nix::sys::wait::waitpid(pid, None).unwrap();
        assert_eq!(pipes.reaped(pid, Instant::now()), Reaped::Ended);
        assert!(!pipes.is_running());
    }

    #[test]
    fn a_dead_reader_is_started_again_and_loses_nothing_that_fits() {
        let mut pipes = PipedLogs::default();
        let path = std::env::temp_dir().join(format!("mpm-pipe-{}", std::process::id()));
        let line = format!("|$cat >> {}", path.display());
        let writer = pipes.open(&PipeSpec::parse(line.as_bytes()).unwrap(), 1).unwrap();
        pipes.start_all().unwrap();
        let first = pipes.readers[0].pid.unwrap();
        // The reader runs in its own group: the shell and its cat.
        nix::sys::signal::killpg(first, Signal::SIGKILL).unwrap();
        nix::sys::wait::waitpid(first, None).unwrap();
        // A reader that is about to exit may still take what is written now.
        let end = Instant::now() + Duration::from_secs(30);
        while nix::sys::signal::killpg(first, None).is_ok() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(matches!(pipes.reaped(first, Instant::now()), Reaped::Died(_)));
        assert!(writer.write(b"kept\n"));
        assert!(pipes.next_turn().unwrap() <= Instant::now());
        assert!(pipes.turn(Instant::now()).is_empty());
        let second = pipes.readers[0].pid.unwrap();
        drop(writer);
        pipes.end(|_| true, Instant::now());
        nix::sys::wait::waitpid(second, None).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"kept\n");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn pauses_grow_to_a_limit() {
        assert_eq!(pause(1), Duration::ZERO);
        assert!(pause(2) < pause(3));
        assert_eq!(pause(40), PAUSE_MAX);
    }
}
