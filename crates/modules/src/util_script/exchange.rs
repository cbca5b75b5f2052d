//! What a program reads and writes: both directions move at once, so that neither side waits for
//! the other's full pipe.

use std::io;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use mpm::companion::spawner::Outcome;
use rt::Deadline;
use server::errorlog::Verbatim;

use super::error_lines::ErrorLines;
use super::left_errors;
use super::program::Program;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// How often it is checked that what has started the program lives. What the program itself has
/// started may keep the output open.
const CHECK_AFTER: Duration = Duration::from_secs(1);

/// What a program reads.
pub(crate) trait Source {
    /// Why it can't be read.
    type Error;

    /// The next bytes; `None` at the end.
    fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Self::Error>>>;
}

/// Why nothing moves any more.
#[derive(Debug)]
pub(crate) enum Broken<E> {
    /// The source can't be read.
    Source(E),
    /// The program can't be read, or takes too long (`TimedOut`).
    Program(io::Error),
}

/// A program at work. Dropping it ends the program.
pub(crate) struct Exchange<S> {
    source: S,
    has_source_ended: bool,
    /// The program.
    pub program: Program,
    /// Its messages.
    pub lines: ErrorLines,
    /// Whether they are logged; otherwise they are dropped.
    logs_errors: bool,
    /// What the program has not taken yet.
    unsent: Bytes,
    /// Why it takes nothing any more, if it closed its input before the end of the source.
    pub refusal: Option<io::Error>,
    /// What it has written and is not used yet.
    pub received: Vec<u8>,
    /// Whether its output has ended.
    pub has_ended: bool,
    /// The longest wait for the program.
    timeout: Duration,
    deadline: Option<Deadline>,
    check_at: Option<Deadline>,
}

impl<S: Source> Exchange<S> {
    /// Begins with a program that was started, whose messages are logged or dropped.
    pub fn new(
        source: S,
        program: Program,
        (lines, logs_errors): (ErrorLines, bool),
        timeout: Duration,
    ) -> Exchange<S> {
        Exchange {
            source,
            has_source_ended: false,
            program,
            lines,
            logs_errors,
            unsent: Bytes::new(),
            refusal: None,
            received: Vec::new(),
            has_ended: false,
            timeout,
            deadline: None,
            check_at: None,
        }
    }

    /// Whether the program still gets input.
    pub fn is_sending(&self) -> bool {
        self.program.input.is_some()
    }

    /// What the program reads.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// Moves what can move. Ready once `enough` bytes of output are there, or all of it.
    pub fn poll_move(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
    ) -> Poll<Result<(), Broken<S::Error>>> {
        loop {
            self.poll_errors(cx);
            let has_sent = self.poll_send(cx)?;
            if self.has_ended || self.received.len() >= enough {
                return Poll::Ready(Ok(()));
            }
            match self.poll_receive(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(Broken::Program(error))),
                Poll::Pending if has_sent => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Moves what can move, until the program has all of the source, or wants no more of it. Ready
    /// before that if `enough` bytes of output are there: the program may write no more until they
    /// are used.
    pub fn poll_sent(
        &mut self,
        cx: &mut Context<'_>,
        enough: usize,
    ) -> Poll<Result<(), Broken<S::Error>>> {
        loop {
            let moved = self.poll_move(cx, enough)?;
            if !self.is_sending() {
                return Poll::Ready(Ok(()));
            }
            if moved.is_pending() {
                return Poll::Pending;
            }
            // A program may read on after it has closed its output.
            if !self.has_ended {
                return Poll::Ready(Ok(()));
            }
            if !self.poll_send(cx)? {
                return Poll::Pending;
            }
        }
    }

    /// Reads the rest of the source, which the program does not want.
    pub fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        while !self.has_source_ended {
            match self.source.poll_bytes(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => {
                    self.has_source_ended = true;
                    return Poll::Ready(Err(error));
                }
                Poll::Ready(None) => self.has_source_ended = true,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Reads the messages that have arrived.
    pub fn poll_errors(&mut self, cx: &mut Context<'_>) {
        while self.program.errors.is_some() {
            match self.poll_error_bytes(cx, Deadline::NEVER) {
                Poll::Ready(()) => {}
                Poll::Pending => return,
            }
        }
    }

    /// Reads messages up to their end.
    pub async fn finish_errors(&mut self) {
        let deadline = self.program.output.handle().deadline(self.timeout);
        while self.program.errors.is_some() {
            std::future::poll_fn(|cx| self.poll_error_bytes(cx, deadline)).await;
        }
    }

    /// Logs why the program was not started, if it was not. `executed` is the file that it is.
    pub fn log_start(&mut self, executed: &[u8]) {
        if self.has_ended
            && let Some(Outcome::NotStarted(_, errno)) = self.program.outcome()
        {
            let cause = nix::errno::Errno::from_raw(errno).desc();
            let line = format!("({errno}){cause}: exec of '{}' failed", Verbatim::new(executed));
            self.lines.log(line.as_bytes());
        }
    }

    /// Lets the program go, whose output has ended. What it has left running may still write
    /// messages; nothing waits for them.
    pub fn leave(mut self) {
        self.program.finish();
        let Exchange { mut program, lines, logs_errors, timeout, .. } = self;
        if let Some(errors) = program.errors.take() {
            left_errors::follow(errors, lines, logs_errors, timeout);
        }
    }

    /// Reads messages once.
    fn poll_error_bytes(&mut self, cx: &mut Context<'_>, deadline: Deadline) -> Poll<()> {
        let Some(errors) = &mut self.program.errors else { return Poll::Ready(()) };
        let lines = &mut self.lines;
        let is_open = ready!(left_errors::poll(errors, lines, self.logs_errors, cx, deadline));
        if !is_open {
            self.program.errors = None;
        }
        Poll::Ready(())
    }

    /// Gives the program what the source has; returns whether something has moved.
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Result<bool, Broken<S::Error>> {
        let Some(input) = &mut self.program.input else { return Ok(false) };
        if self.unsent.is_empty() {
            match self.source.poll_bytes(cx) {
                Poll::Ready(Some(bytes)) => self.unsent = bytes.map_err(Broken::Source)?,
                Poll::Ready(None) => {
                    self.has_source_ended = true;
                    self.program.input = None;
                    return Ok(true);
                }
                Poll::Pending => return Ok(false),
            }
        }
        let handle = input.handle();
        let deadline = *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout));
        match input.poll_write(cx, &self.unsent, deadline) {
            Poll::Ready(Ok(count)) => {
                self.unsent = self.unsent.slice(count.min(self.unsent.len())..);
            }
            Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(Broken::Program(error));
            }
            Poll::Ready(Err(error)) => {
                self.refusal = Some(error);
                self.unsent = Bytes::new();
                self.program.input = None;
            }
            Poll::Pending => return Ok(false),
        }
        self.deadline = None;
        Ok(true)
    }

    /// Reads output. Waits for it up to the time limit if the program has all of its input; before,
    /// the limit is that of the input, and a program that waits for the source has none.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let handle = self.program.output.handle();
        let deadline = match self.program.input {
            Some(_) => Deadline::NEVER,
            None => *self.deadline.get_or_insert_with(|| handle.deadline(self.timeout)),
        };
        self.received.reserve(READ_BYTES);
        loop {
            let check_at = *self.check_at.get_or_insert_with(|| handle.deadline(CHECK_AFTER));
            let until = deadline.min(check_at);
            let read = self.program.output.poll_read(cx, &mut self.received, until);
            let is_check = is_late(&read) && !deadline.has_passed(handle.clock());
            if read.is_ready() {
                self.check_at = None;
            }
            if (is_check || matches!(read, Poll::Ready(Ok(0)))) && self.program.is_lost() {
                return Poll::Ready(Err(io::Error::other("what has started the program has died")));
            }
            if is_check {
                continue;
            }
            if read.is_ready() {
                self.deadline = None;
            }
            self.has_ended |= matches!(read, Poll::Ready(Ok(0)));
            return read.map_ok(|_| ());
        }
    }
}

fn is_late<T>(read: &Poll<io::Result<T>>) -> bool {
    matches!(read, Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::TimedOut)
}
