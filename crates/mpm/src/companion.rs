//! Companions: processes beside the children that do what a child can't, such as running programs
//! as a user other than the children's.
//!
//! A companion belongs to a generation. The supervisor forks it before the generation's children,
//! with its own user, and forks it again when it dies. The one that starts programs for requests
//! has the children's user, and executes the server's file, so that it has nothing of the
//! supervisor's memory ([`executed`]). The children ask a companion through its [`Line`]. No
//! message ends it: when no process is left that could ask, the companion sees the end of its line,
//! ends what it has started, and exits.
//!
//! A companion has one thread and none of the server's sockets. It must not trust the questions
//! that it receives: the children have fewer rights.

mod channel;
pub mod executed;
mod launch;
mod line;
mod order;
pub mod spawner;
mod surroundings;

use std::ffi::CString;
use std::fmt;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::unistd::execve;

use crate::program::Level;
use crate::scoreboard::ProgramCounts;

pub use channel::{Channel, Sent, is_read, is_waiting};
pub use launch::Step;
pub use line::{DESCRIPTORS_MAX, Line, MESSAGE_BYTES_MAX, Question, Received};
pub use order::{KEY_MAX, Limit, Limits, OrderWriter, StartOrder, set_key};
pub use surroundings::Surroundings;

/// How long a companion may take to exit after the end of its line before it is killed.
pub const COMPANION_END_DEADLINE: Duration = Duration::from_secs(4);

/// Writes a line to the server's error log, as [`Program::log`](crate::Program::log).
pub type Log<'a> = dyn FnMut(Level, u32, &str) + 'a;

/// A companion of a generation.
#[derive(Clone)]
pub struct Companion {
    /// Its name in messages.
    pub name: String,
    /// The line on which it receives questions.
    pub line: Arc<Line>,
    /// What it does.
    pub task: Task,
}

/// What a companion does until the end of its line.
#[derive(Clone)]
pub enum Task {
    /// Starts programs for requests ([`spawner`]), with the children's rights.
    Spawner {
        /// How many may run at a time.
        programs_max: usize,
    },
    /// A function, with the supervisor's rights and memory.
    Function(Arc<Function>),
}

/// Returns the exit status of the process. It counts what it does with programs.
pub type Function = dyn Fn(&Line, ProgramCounts, &mut Log<'_>) -> i32 + Send + Sync;

impl fmt::Debug for Companion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Companion").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Starts a program for a companion as `command` describes, but with exactly these words and
/// variables. If the kernel can't execute the file, no shell runs it as a script. The first word is
/// the program's path.
///
/// The program has its own process group, and receives SIGTERM if the companion is killed. Must be
/// called while the process has one thread.
///
/// # Errors
/// `InvalidInput` if a word or variable contains a NUL byte; those of fork(2) and execve(2).
pub fn start(
    command: &mut Command,
    words: Vec<Vec<u8>>,
    environment: Vec<Vec<u8>>,
) -> io::Result<Child> {
    let strings = |list: Vec<Vec<u8>>| -> io::Result<Vec<CString>> {
        list.into_iter().map(|text| Ok(CString::new(text)?)).collect()
    };
    let (words, environment) = (strings(words)?, strings(environment)?);
    command.process_group(0);
    reset_signals(command);
    // SAFETY: the process has one thread, so what the closure does in its copy is unrestricted.
    #[expect(unsafe_code, reason = "what a forked child does before it executes the program")]
    unsafe {
        command.pre_exec(move || {
            prctl::set_pdeathsig(Signal::SIGTERM)?;
            let path = words.first().ok_or(io::ErrorKind::InvalidInput)?;
            match execve(path, &words, &environment)? {}
        });
    }
    command.spawn()
}

/// Has the program of `command` begin with the default signals and none of them blocked: the
/// standard library resets SIGPIPE alone, and the supervisor blocks those that it reads.
pub(crate) fn reset_signals(command: &mut Command) {
    let ignored = launch::Ignored::now();
    // SAFETY: the closure only calls signal(2) and sigprocmask(2), which are safe between fork and
    // execve.
    #[expect(unsafe_code, reason = "what a forked child does before it executes the program")]
    unsafe {
        command.pre_exec(move || {
            ignored.reset();
            Ok(sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?)
        });
    }
}
