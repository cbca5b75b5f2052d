//! `-X`: one process, without children, that a debugger can follow.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};

use super::signals::{Request, Signals};
use super::{Supervisor, use_standard_error};
use crate::child::{ControlLine, Order};
use crate::program::Level;
use crate::shape::LOOPS_PER_PROCESS_MAX;

impl Supervisor<'_> {
    /// Serves in this process: the first slot of the shape, with all its loops. A thread of its own
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
        // All sockets of an address go to this one process.
        settings.shape = settings.shape.cut_to(1, LOOPS_PER_PROCESS_MAX);
        let settings = std::sync::Arc::new(settings);
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
        let signals = Signals::block()?;
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || pass_signals_on(&signals, &line))?;
        let status = self.run_child(child);
        self.board.release(board_slot);
        Ok(status)
    }
}

/// Turns signals into orders until the process ends. The signals are blocked in every thread.
fn pass_signals_on(signals: &Signals, line: &ControlLine) {
    loop {
        let mut polled = [PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        let _ = poll(&mut polled, None);
        for request in signals.read() {
            match request {
                Request::Stop => line.send(Order::Stop),
                Request::GracefulStop => line.send(Order::Graceful),
                Request::Restart | Request::Graceful | Request::Upgrade | Request::Reap => {}
            }
        }
    }
}
