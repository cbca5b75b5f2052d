//! Detaching from the terminal: the original process waits for the one that serves.
#![expect(unsafe_code, reason = "fork")]

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use nix::unistd::{ForkResult, dup2_stderr, dup2_stdin, dup2_stdout, fork, setsid};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// Which of the two processes this is.
pub(crate) enum Detached {
    /// The original process: exit with this status.
    Parent(i32),
    /// The process that serves.
    Daemon(Starter),
}

/// Reports the outcome of the start to the parent. Dropping it reports a failure.
#[derive(Debug)]
pub(crate) struct Starter {
    pipe: OwnedFd,
}

impl Starter {
    /// Lets the parent exit with 0.
    pub(crate) fn started(self) {
        let _ = rustix::io::write(&self.pipe, &[0]);
    }

    /// Lets the parent exit with `status`.
    pub(crate) fn failed(self, status: i32) {
        let _ = rustix::io::write(&self.pipe, &[u8::try_from(status).unwrap_or(1)]);
    }
}

/// Forks; the child leads a new session, and the parent waits until the child has started or
/// failed. Must be called while the process has one thread.
pub(crate) fn detach() -> io::Result<Detached> {
    let (read_end, write_end) = pipe_with(PipeFlags::CLOEXEC)?;
    // SAFETY: the process has one thread, so the child is a complete copy in which no lock is held.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => {
            drop(write_end);
            Ok(Detached::Parent(wait_for_start(&read_end)))
        }
        ForkResult::Child => {
            drop(read_end);
            setsid()?;
            Ok(Detached::Daemon(Starter { pipe: write_end }))
        }
    }
}

fn wait_for_start(pipe: &OwnedFd) -> i32 {
    let mut status = [1u8];
    loop {
        match rustix::io::read(pipe, &mut status) {
            Err(Errno::INTR) => {}
            Ok(1..) => return i32::from(status[0]),
            Ok(0) | Err(_) => return 1,
        }
    }
}

/// Points standard input and output at /dev/null, and standard error too unless it is the error log
/// by now. Must precede the forks: a child that held the terminal open would block a caller that
/// waits for end of file (`ssh host apachectl start`).
pub(crate) fn close_terminal(has_error_log: bool) -> io::Result<()> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    if !has_error_log {
        dup2_stderr(&null)?;
    }
    Ok(())
}

/// The standard input of programs that get nothing: /dev/null, which they can share, unlike a pipe,
/// into which they could write. `None` if it is missing.
pub fn empty_input() -> Option<&'static OwnedFd> {
    static EMPTY: OnceLock<Option<OwnedFd>> = OnceLock::new();
    let open = || OpenOptions::new().read(true).open("/dev/null").ok();
    EMPTY.get_or_init(|| open().map(OwnedFd::from)).as_ref()
}
