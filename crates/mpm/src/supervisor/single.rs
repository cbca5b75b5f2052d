//! `-X`: a single process without children, for debuggers.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::signals::{Request, Signals};
use super::{DRAIN_DELAY, Supervisor, use_standard_error};
use crate::child::{ControlLine, Order};
use crate::listeners::Listeners;
use crate::program::Level;
use crate::shape::LOOPS_PER_PROCESS_MAX;

impl Supervisor<'_> {
    /// Serves in this process: the first slot of the shape, with all its loops. A separate thread
    /// turns signals into orders; restarts are not possible.
    pub(super) fn serve_alone(mut self) -> i32 {
        let status = self.serve_first_slot().unwrap_or_else(|error| {
            self.program.log(Level::Emergency, 0, &format!("could not start: {error}"));
            1
        });
        self.end_readers();
        self.remove_pid_file();
        status
    }

    fn serve_first_slot(&mut self) -> io::Result<i32> {
        let Some(generation) = self.staged.take() else { return Ok(1) };
        let mut settings = (*generation.settings).clone();
        // All sockets of an address belong to this process.
        settings.shape = settings.shape.cut_to(1, LOOPS_PER_PROCESS_MAX);
        let settings = Arc::new(settings);
        use_standard_error(&generation.logs);
        self.program.commit(generation.number);
        self.board.begin_generation(generation.number, &settings, Order::Graceful);
        let full = || io::Error::other("the scoreboard is full");
        let board_slot =
            self.board.claim(generation.number, 0, &settings.shape).ok_or_else(full)?;
        self.board.set_pid(board_slot, i32::try_from(std::process::id()).unwrap_or(0));
        let (line, control) = ControlLine::pair()?;
        let child = self.make_child(generation.number, 0, board_slot, settings, control)?;
        self.announce();
        let has_served = Arc::new(AtomicBool::new(false));
        let orders = Orders {
            signals: Signals::block()?,
            has_served: has_served.clone(),
            line,
            listeners: std::mem::take(&mut self.listeners),
            limit: child.settings.graceful_shutdown_timeout,
            stop_at: None,
        };
        let thread = std::thread::Builder::new().name("signals".to_owned());
        thread.spawn(move || orders.pass_on())?;
        let status = self.run_child(child);
        has_served.store(true, Ordering::Relaxed);
        self.board.release(board_slot);
        Ok(status)
    }
}

/// Turns signals, which are blocked in every thread, into orders.
struct Orders {
    signals: Signals,
    /// Whether the process has stopped serving.
    has_served: Arc<AtomicBool>,
    line: ControlLine,
    /// The supervisor's handles to the listening sockets.
    listeners: Listeners,
    /// `GracefulShutdownTimeout`.
    limit: Option<Duration>,
    /// When a graceful shutdown is cut short.
    stop_at: Option<Instant>,
}

impl Orders {
    /// Runs until requests are no longer served. The signals that come later are the supervisor's,
    /// which waits for the ends of other processes.
    fn pass_on(mut self) {
        loop {
            self.wait();
            if self.has_served.load(Ordering::Relaxed) {
                return;
            }
            if self.stop_at.is_some_and(|at| at <= Instant::now()) {
                self.stop_at = None;
                self.line.send(Order::Stop);
            }
            for request in self.signals.read() {
                match request {
                    Request::Stop => self.line.send(Order::Stop),
                    Request::GracefulStop => self.finish(),
                    Request::Restart | Request::Graceful | Request::Upgrade | Request::Reap => {}
                }
            }
        }
    }

    fn wait(&self) {
        let timeout = self.stop_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut polled = [PollFd::from_borrowed_fd(self.signals.as_fd(), PollFlags::IN)];
        let _ = poll(&mut polled, timeout.as_ref());
    }

    /// As with children: later clients are refused instead of waiting in vain.
    fn finish(&mut self) {
        self.listeners.retire_all();
        std::thread::sleep(DRAIN_DELAY);
        self.listeners.close_retired();
        self.line.send(Order::Graceful);
        if self.stop_at.is_none() {
            self.stop_at = self.limit.map(|limit| Instant::now() + limit);
        }
    }
}
