//! A program that runs for a request: the order to start it, and its pipes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use mpm::Line;
use mpm::companion::spawner::Outcome;
use mpm::companion::{Limit, Limits, MESSAGE_BYTES_MAX, OrderWriter, set_key};
use mpm::daemon::empty_input;
use nix::sys::resource::RLIM_INFINITY;
use rt::Pipe;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, pipe_with};
use server::core::ResourceLimit;
use server::request::Request;

use super::environment::Environment;

/// The delay before an order is sent again if too many wait to be received.
const RETRY: std::time::Duration = std::time::Duration::from_millis(10);

/// A program that runs. Dropping it ends the program.
pub(crate) struct Program {
    /// Its standard input; `None` once it has all of the request's body.
    pub input: Option<Pipe>,
    /// Its standard output.
    pub output: Pipe,
    /// Its standard error; `None` after its end.
    pub errors: Option<Pipe>,
    /// Where its end is reported. Closing it ends the program.
    answer: Option<OwnedFd>,
    /// What has been reported.
    outcome: Option<Outcome>,
    /// Whether nothing will be: the companion has died.
    is_lost: bool,
    /// How the companion knows it.
    key: u64,
    line: Arc<Line>,
}

/// Programs that this process has ordered.
static ORDERS: AtomicU32 = AtomicU32::new(0);

/// An order to the companion: what to execute, in which folder, with which words, of which the
/// first is the name. Limits and variables are the request's.
pub(crate) fn order(request: &Request, folder: &[u8], file: &[u8], words: &[&[u8]]) -> Vec<u8> {
    let core = &request.plan.core;
    let limits = Limits {
        cpu_seconds: limit(core.limit_cpu.get()),
        memory_bytes: limit(core.limit_memory.get()),
        processes: limit(core.limit_processes.get()),
    };
    let mut order = OrderWriter::new(&limits, folder, file, words);
    for (name, value) in Environment::of(&request.env).iter() {
        order.variable(&name, value);
    }
    order.finish()
}

fn limit(setting: Option<&ResourceLimit>) -> Limit {
    let Some((soft, hard)) = setting else { return (None, None) };
    let number = |limit: &Option<u64>| limit.unwrap_or(RLIM_INFINITY);
    (Some(number(soft)), hard.as_ref().map(number))
}

impl Program {
    /// Has the companion start what `order` says; its input is empty unless it `has_input`.
    ///
    /// # Errors
    /// `WouldBlock` if the companion takes no orders for `Timeout`; others if there are no
    /// descriptors, or the companion is gone.
    pub async fn start(
        request: &Request,
        line: &Arc<Line>,
        mut order: Vec<u8>,
        has_input: bool,
    ) -> io::Result<Program> {
        let (begun, wait) = (Instant::now(), request.host.core.timeout());
        loop {
            match Program::try_start(line, &mut order, has_input) {
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && begun.elapsed() < wait =>
                {
                    request.engine.handle.sleep(RETRY).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// `WouldBlock` if too many orders wait to be received; see [`Program::start`].
    pub fn try_start(line: &Arc<Line>, order: &mut [u8], has_input: bool) -> io::Result<Program> {
        // No two processes have the same number at a time, and none has so many programs.
        let count = ORDERS.fetch_add(1, Ordering::Relaxed);
        let key = u64::from(std::process::id()) << 32 | u64::from(count);
        set_key(order, key);
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        // Most requests have no body: nothing need be kept open for one.
        let nothing = if has_input { None } else { empty_input() };
        let (input, own_input) = match nothing {
            Some(nothing) => (Input::Nothing(nothing), None),
            None => pipe().map(|(input, own)| (Input::Pipe(input), has_input.then_some(own)))?,
        };
        let ((own_output, output), (own_errors, errors)) = (pipe()?, pipe()?);
        let file = match order.len() > MESSAGE_BYTES_MAX {
            true => Some(in_memory(order)?),
            false => None,
        };
        let message = if file.is_some() { b"in a file".as_slice() } else { order };
        let mut descriptors = vec![input.as_fd(), output.as_fd(), errors.as_fd()];
        descriptors.extend(file.as_ref().map(AsFd::as_fd));
        let answer = line.ask_with(message, &descriptors)?;
        Ok(Program {
            input: own_input.map(Pipe::writer).transpose()?,
            output: Pipe::reader(own_output)?,
            errors: Some(Pipe::reader(own_errors)?),
            answer: Some(answer),
            outcome: None,
            is_lost: false,
            key,
            line: line.clone(),
        })
    }

    /// What has become of it, if that is known by now: after the end of its output it is for a
    /// program that was not started.
    pub fn outcome(&mut self) -> Option<Outcome> {
        if let (None, Some(answer)) = (self.outcome, &self.answer) {
            let mut bytes = [0; 16];
            let length = rustix::io::read(answer, &mut bytes).ok()?;
            self.outcome = Outcome::read(bytes.get(..length)?);
            self.is_lost = length == 0;
        }
        self.outcome
    }

    /// Whether the companion has died before the program: it got SIGTERM then, and what it has
    /// written may not be all.
    pub fn is_lost(&mut self) -> bool {
        self.outcome().is_none() && self.is_lost
    }

    /// Its output has ended: what it has left running is not ended with it.
    pub fn finish(&mut self) {
        // Most programs end with their output.
        if self.outcome().is_none() {
            let _ = self.line.tell(&self.key.to_ne_bytes());
        }
    }

    /// The same, and ends the program now, as if this were dropped.
    pub fn release(&mut self) {
        (self.input, self.errors) = (None, None);
        self.finish();
        self.answer = None;
    }
}

/// What a program reads.
enum Input {
    Pipe(OwnedFd),
    Nothing(&'static OwnedFd),
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Pipe(fd) => fd.as_fd(),
            Input::Nothing(fd) => fd.as_fd(),
        }
    }
}

/// A file in memory that contains `bytes`.
fn in_memory(bytes: &[u8]) -> io::Result<OwnedFd> {
    let file = std::fs::File::from(memfd_create(c"order", MemfdFlags::CLOEXEC)?);
    file.write_all_at(bytes, 0)?;
    Ok(file.into())
}
