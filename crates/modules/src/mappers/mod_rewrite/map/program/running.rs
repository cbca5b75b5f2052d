//! A running program, and the pipes to and from it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, pidfd_open};

use super::{MapProgram, VALUE_BYTES_MAX};

/// How long a program may take to end before it is killed.
const END_DEADLINE: Duration = Duration::from_secs(2);

/// Bytes read at once.
const CHUNK_BYTES: usize = 4096;

/// A program that runs. Dropping it kills it.
pub(super) struct Running {
    process: Child,
    /// Readable once it has ended.
    life: OwnedFd,
    input: ChildStdin,
    output: ChildStdout,
    /// Output that no question has taken yet.
    read: Vec<u8>,
    /// When it was started.
    pub started: Instant,
}

/// The outcome of a question.
#[derive(Debug)]
pub(super) enum Reply {
    /// A line.
    Line(Vec<u8>),
    /// The program has ended, or has closed its output, after these bytes without a line's end.
    Ended(Vec<u8>),
    /// Why it has to be started again.
    Faulty(String),
}

impl Running {
    /// Starts a program in its own folder, without environment variables.
    pub fn start(map: &MapProgram, identity: Option<(u32, u32)>) -> io::Result<Running> {
        let mut command = Command::new(&map.path);
        command
            .current_dir(map.path.parent().unwrap_or(Path::new("/")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some((user, group)) = identity {
            command.uid(user).gid(group);
        }
        let path = map.path.as_os_str().as_bytes().to_vec();
        let words = std::iter::once(path).chain(map.arguments.iter().cloned()).collect();
        let mut process = mpm::companion::start(&mut command, words, Vec::new())?;
        let running = (|| {
            let missing = || io::Error::from(io::ErrorKind::BrokenPipe);
            let input = process.stdin.take().ok_or_else(missing)?;
            let output = process.stdout.take().ok_or_else(missing)?;
            rustix::io::ioctl_fionbio(&input, true)?;
            rustix::io::ioctl_fionbio(&output, true)?;
            let pid = rustix::process::Pid::from_child(&process);
            Ok((pidfd_open(pid, PidfdFlags::empty())?, input, output))
        })();
        match running {
            Ok((life, input, output)) => {
                let (read, started) = (Vec::new(), Instant::now());
                Ok(Running { process, life, input, output, read, started })
            }
            Err(error) => {
                let _ = process.kill();
                let _ = process.wait();
                Err(error)
            }
        }
    }

    /// Writes a key and reads a line. A line that was written earlier comes first, as in Apache.
    pub fn ask(&mut self, key: &[u8], deadline: Instant) -> Reply {
        let question = [key, b"\n"].concat();
        let mut unsent = question.as_slice();
        loop {
            // Also writes what the pipe did not take at once. An input that is closed takes all.
            if self.write(&mut unsent)
                && let Some(line) = self.take_line()
            {
                return Reply::Line(line);
            }
            if self.read.len() > VALUE_BYTES_MAX {
                return Reply::Faulty(format!("wrote a line of more than {VALUE_BYTES_MAX} bytes"));
            }
            match self.wait(!unsent.is_empty(), deadline) {
                Ok(true) => {}
                Ok(false) => return Reply::Faulty("did not answer in time (Timeout)".to_owned()),
                Err(errno) => return Reply::Faulty(format!("can't be asked: {errno}")),
            }
            if self.read_more() {
                let rest = std::mem::take(&mut self.read);
                let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
                return Reply::Ended(line.to_vec());
            }
        }
    }

    /// Writes; true once nothing is left, or its input is closed.
    fn write(&self, unsent: &mut &[u8]) -> bool {
        while !unsent.is_empty() {
            match rustix::io::write(&self.input, unsent) {
                Ok(count) => *unsent = unsent.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => *unsent = &[],
            }
        }
        true
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let end = self.read.iter().position(|byte| *byte == b'\n')?;
        let mut line: Vec<u8> = self.read.drain(..=end).collect();
        line.pop();
        Some(line)
    }

    /// Waits for bytes, for room, or for its end; false at the deadline.
    fn wait(&self, writes: bool, deadline: Instant) -> Result<bool, Errno> {
        let mut polled =
            vec![PollFd::new(&self.output, PollFlags::IN), PollFd::new(&self.life, PollFlags::IN)];
        if writes {
            polled.push(PollFd::new(&self.input, PollFlags::OUT));
        }
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: 1, tv_nsec: 0 });
        match poll(&mut polled, Some(&timeout)) {
            Ok(0) => Ok(false),
            Ok(_) | Err(Errno::INTR) => Ok(true),
            Err(errno) => Err(errno),
        }
    }

    /// Reads what is there, up to a little more than a value; true at the end.
    fn read_more(&mut self) -> bool {
        // Checked first: everything that a program wrote before its end is then in the pipe.
        let has_ended = self.has_ended(Duration::ZERO);
        while self.read.len() <= VALUE_BYTES_MAX {
            self.read.reserve(CHUNK_BYTES);
            match rustix::io::read(&self.output, rustix::buffer::spare_capacity(&mut self.read)) {
                Ok(0) => return true,
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return has_ended,
                Err(_) => return true,
            }
        }
        false
    }

    fn has_ended(&self, wait: Duration) -> bool {
        let mut polled = [PollFd::new(&self.life, PollFlags::IN)];
        let timeout = Timespec::try_from(wait).ok();
        matches!(poll(&mut polled, timeout.as_ref()), Ok(1..))
    }

    /// How it has ended, for the log; kills it if it only closed its output.
    pub fn how_it_ended(&mut self) -> String {
        // Between the end of its output and its exit.
        if !self.has_ended(Duration::from_millis(100)) {
            return "has closed its output".to_owned();
        }
        match self.process.wait() {
            Ok(status) => format!("ended unexpectedly ({status})"),
            Err(error) => format!("ended unexpectedly ({error})"),
        }
    }

    /// Ends it as Apache does: SIGTERM, and SIGKILL if it does not exit.
    pub fn end(self) {
        self.signal(Signal::SIGTERM);
        self.has_ended(END_DEADLINE);
    }

    /// Signals the program and what it has started.
    fn signal(&self, signal: Signal) {
        if let Ok(pid) = i32::try_from(self.process.id()) {
            let _ = killpg(Pid::from_raw(pid), signal);
        }
    }
}

impl AsFd for Running {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.life.as_fd()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Not if it was reaped: its id may belong to another process by now.
        if matches!(self.process.try_wait(), Ok(None)) {
            self.signal(Signal::SIGKILL);
            let _ = self.process.wait();
        }
    }
}
