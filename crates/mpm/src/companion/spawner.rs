//! The companion that starts programs for requests (CGI).
//!
//! A question is a [`StartOrder`] with three descriptors, the program's standard input, output and
//! error; an order that is too long for a message is in a fourth, a file in memory. The answer
//! comes when the program has ended, or at once if it can't be started. An asker that closes its
//! end before wants the program ended, with all that it has started; one that sends a notice with
//! the order's key before has all of the output, and wants only the program itself ended, as Apache
//! does: what that has left running in the background goes on.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::launch::{Launcher, Step};
use super::line::{Line, Question, Received};
use super::order::StartOrder;
use crate::scoreboard::ProgramCounts;

/// Orders that wait while as many programs run as may (`DEFAULT_CGID_LISTENBACKLOG`).
pub const QUEUE_MAX: usize = 100;

/// How long a program may take to end after SIGTERM before it is killed.
const END_DEADLINE: Duration = Duration::from_secs(3);

/// The longest order in a file: more than the kernel executes.
const ORDER_BYTES_MAX: u64 = 4 << 20;

/// The identifier of the line among what epoll reports; that of a program has its key above the
/// lowest bit.
const LINE: u64 = u64::MAX;

/// What becomes of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The program has ended: the status of wait(2).
    Ended(i32),
    /// It could not be started: the step that failed, and the error's number.
    NotStarted(Step, i32),
    /// Too many programs run, and too many orders wait.
    Busy,
}

impl Outcome {
    /// Reads an answer; `None` if the spawner has died.
    pub fn read(answer: &[u8]) -> Option<Outcome> {
        let (kind, number) = answer.split_first()?;
        let number = i32::from_ne_bytes(number.try_into().ok()?);
        Some(match kind {
            b'=' => Outcome::Ended(number),
            b'B' => Outcome::Busy,
            b'f' => Outcome::NotStarted(Step::Fork, number),
            b'p' => Outcome::NotStarted(Step::Prepare, number),
            b'x' => Outcome::NotStarted(Step::Execute, number),
            _ => return None,
        })
    }

    fn write(self) -> [u8; 5] {
        let (kind, number) = match self {
            Outcome::Ended(status) => (b'=', status),
            Outcome::Busy => (b'B', 0),
            Outcome::NotStarted(Step::Fork, errno) => (b'f', errno),
            Outcome::NotStarted(Step::Prepare, errno) => (b'p', errno),
            Outcome::NotStarted(Step::Execute, errno) => (b'x', errno),
        };
        let [a, b, c, d] = number.to_ne_bytes();
        [kind, a, b, c, d]
    }
}

/// Runs until the end of the line, then ends the programs that still run; returns the exit status.
/// At most `programs_max` run at a time.
pub fn run(line: &Line, programs_max: usize, counts: ProgramCounts) -> i32 {
    match Spawner::new(line, programs_max, counts) {
        Ok(mut spawner) => {
            while spawner.turn() {}
            0
        }
        Err(_) => 1,
    }
}

struct Spawner<'l> {
    line: &'l Line,
    /// `None` once the line has ended.
    incoming: Option<Arc<OwnedFd>>,
    epoll: OwnedFd,
    launcher: Launcher,
    programs_max: usize,
    running: HashMap<u64, Running>,
    queue: VecDeque<Question>,
    counts: ProgramCounts,
}

/// A program that runs.
struct Running {
    process: OwnedFd,
    /// Its number, and its process group's.
    pid: Pid,
    /// `None` once the asker has gone.
    question: Option<Question>,
    /// Whether it is ended without what it has started.
    is_alone: bool,
    /// When it is killed.
    kill_at: Option<Instant>,
}

impl<'l> Spawner<'l> {
    fn new(line: &'l Line, programs_max: usize, counts: ProgramCounts) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let incoming = line.incoming()?;
        let data = epoll::EventData::new_u64(LINE);
        epoll::add(&epoll, &*incoming, data, epoll::EventFlags::IN)?;
        Ok(Spawner {
            line,
            incoming: Some(incoming),
            epoll,
            launcher: Launcher::new(),
            programs_max: programs_max.max(1),
            running: HashMap::new(),
            queue: VecDeque::new(),
            counts,
        })
    }

    /// Does what is due; false once the line has ended, and every program.
    fn turn(&mut self) -> bool {
        if self.incoming.is_none() && self.running.is_empty() {
            return false;
        }
        let due = self.running.values().filter_map(|running| running.kill_at).min();
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        // Rounded up, or the last millisecond would be spent in turns.
        let left = left.map(|left| left + Duration::from_millis(1));
        let timeout = left.and_then(|left| Timespec::try_from(left).ok());
        let mut events = Vec::with_capacity(64);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return false,
        }
        let events = events.iter().map(|event| event.data.u64());
        if events.clone().any(|event| event != LINE && event & 1 == 1) {
            // First: an asker's notice comes before its end.
            while self.receive() {}
        } else if events.clone().any(|event| event == LINE) {
            // Mostly no other one waits; epoll reports those that do.
            self.receive();
        }
        events.filter(|event| *event != LINE).for_each(|event| self.happened(event));
        self.kill_late();
        self.counts.set_running(self.running.len(), self.queue.len());
        true
    }

    /// Receives a message; false if none waits.
    fn receive(&mut self) -> bool {
        match self.line.try_next() {
            Ok(Some(Received::Question(question))) => self.asked(question),
            Ok(Some(Received::Notice(message))) => self.output_ended(&message),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Ok(None) | Err(_) => {
                self.finish();
                return false;
            }
        }
        true
    }

    fn asked(&mut self, question: Question) {
        if self.running.len() < self.programs_max {
            self.start(question);
        } else if self.queue.len() < QUEUE_MAX {
            self.queue.push_back(question);
        } else {
            self.counts.refused();
            question.answer(&[&Outcome::Busy.write()]);
        }
    }

    /// An asker has all of a program's output, or the program has ended meanwhile.
    fn output_ended(&mut self, message: &[u8]) {
        let key = message.try_into().map(u64::from_ne_bytes);
        if let Some(running) = key.ok().and_then(|key| self.running.get_mut(&key)) {
            running.is_alone = true;
        }
    }

    /// The line has ended: no process is left that could ask.
    fn finish(&mut self) {
        if let Some(incoming) = self.incoming.take() {
            let _ = epoll::delete(&self.epoll, &*incoming);
        }
        self.queue.clear();
        let all: Vec<u64> = self.running.keys().copied().collect();
        all.into_iter().for_each(|key| self.terminate(key));
    }

    fn start(&mut self, question: Question) {
        if !question.is_wanted() {
            return;
        }
        match self.launch(&question) {
            Ok((key, process, pid)) => {
                self.counts.started();
                self.watch(key, process, pid, question);
            }
            Err((step, error)) => {
                self.counts.failed();
                let errno = error.raw_os_error().unwrap_or(0);
                question.answer(&[&Outcome::NotStarted(step, errno).write()]);
            }
        }
    }

    fn launch(&mut self, question: &Question) -> Result<(u64, OwnedFd, Pid), (Step, io::Error)> {
        let invalid = || (Step::Prepare, io::Error::from_raw_os_error(libc::EINVAL));
        let [input, output, error, more @ ..] = question.descriptors.as_slice() else {
            return Err(invalid());
        };
        let long = match more.first() {
            Some(file) => Some(read_order(file).map_err(|error| (Step::Prepare, error))?),
            None => None,
        };
        let message = long.as_deref().unwrap_or(&question.message);
        let order = StartOrder::read(message).ok_or_else(invalid)?;
        if self.running.contains_key(&order.key) {
            return Err(invalid());
        }
        let descriptors = [input.as_fd(), output.as_fd(), error.as_fd()];
        let (process, pid) = self.launcher.start(&order, descriptors)?;
        Ok((order.key, process, pid))
    }

    fn watch(&mut self, key: u64, process: OwnedFd, pid: Pid, mut question: Question) {
        // The program has its own: an end of a pipe that stayed here would never be seen.
        question.descriptors.clear();
        let life = epoll::EventData::new_u64(key << 1);
        let asker = epoll::EventData::new_u64(key << 1 | 1);
        let is_watched = epoll::add(&self.epoll, &process, life, epoll::EventFlags::IN)
            // The asker sends nothing: only its end is reported.
            .and_then(|()| epoll::add(&self.epoll, &question, asker, epoll::EventFlags::empty()));
        let running =
            Running { process, pid, question: Some(question), is_alone: false, kill_at: None };
        self.running.insert(key, running);
        if is_watched.is_err() {
            self.terminate(key);
        }
    }

    /// A program has ended, or its asker has gone.
    fn happened(&mut self, event: u64) {
        let key = event >> 1;
        if event & 1 == 1 {
            return self.terminate(key);
        }
        let Some(mut running) = self.running.remove(&key) else { return };
        let status = running.reap();
        if let Some(question) = running.question.take() {
            question.answer(&[&Outcome::Ended(status).write()]);
        }
        // Most orders that wait may be withdrawn by now: none of those takes the place.
        while self.running.len() < self.programs_max
            && let Some(question) = self.queue.pop_front()
        {
            self.start(question);
        }
    }

    /// Asks a program to end. As long as it has not been reaped, no other process has its number.
    fn terminate(&mut self, key: u64) {
        let Some(running) = self.running.get_mut(&key) else { return };
        if let Some(question) = running.question.take() {
            let _ = epoll::delete(&self.epoll, &question);
        }
        if running.kill_at.is_none() {
            running.signal(Signal::SIGTERM);
            running.kill_at = Some(Instant::now() + END_DEADLINE);
        }
    }

    fn kill_late(&mut self) {
        let now = Instant::now();
        for running in self.running.values_mut() {
            if running.kill_at.is_some_and(|at| at <= now) {
                running.signal(Signal::SIGKILL);
                running.kill_at = Some(now + END_DEADLINE);
            }
        }
    }
}

impl Running {
    fn signal(&self, signal: Signal) {
        let _ = match self.is_alone {
            true => kill(self.pid, signal),
            false => killpg(self.pid, signal),
        };
    }

    /// The status of wait(2) of a program that has ended.
    fn reap(&mut self) -> i32 {
        match waitid(WaitId::PidFd(self.process.as_fd()), WaitIdOptions::EXITED) {
            Ok(Some(status)) => match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => code << 8,
                (None, Some(signal)) => signal,
                (None, None) => 0,
            },
            Ok(None) | Err(_) => 0,
        }
    }
}

/// Reads an order from a file in memory.
fn read_order(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file.try_clone()?);
    let size = file.metadata()?.len();
    if size > ORDER_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(libc::E2BIG));
    }
    let mut order = vec![0; usize::try_from(size).unwrap_or(0)];
    file.read_exact_at(&mut order, 0)?;
    Ok(order)
}

#[cfg(test)]
mod tests;
