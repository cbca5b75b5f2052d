//! The companion of a program: asks it one question at a time, and starts it again when it dies.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use messages::Message;
use mpm::companion::{Log, Question, Received};
use mpm::pipes::pause;
use mpm::scoreboard::ProgramCounts;
use mpm::{Level, Line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::running::{Reply, Running};
use super::{FAILED, FOUND, MapProgram};

/// A program that dies sooner than this is started again after a pause.
const QUICK_DEATH: Duration = Duration::from_secs(1);

/// Runs until the end of the line; returns the exit status.
pub(super) fn run(
    map: &MapProgram,
    identity: Option<(u32, u32)>,
    wait: Duration,
    line: &Line,
    (counts, log): (ProgramCounts, &mut Log<'_>),
) -> i32 {
    let running = None;
    let mut companion =
        Asking { map, identity, wait, counts, log, running, quick_deaths: 0, start_at: None };
    companion.start();
    while companion.turn(line) {}
    if let Some(running) = companion.running.take() {
        running.end();
    }
    0
}

struct Asking<'a, 'l> {
    map: &'a MapProgram,
    identity: Option<(u32, u32)>,
    /// The time that the program may take for an answer.
    wait: Duration,
    counts: ProgramCounts,
    log: &'a mut Log<'l>,
    running: Option<Running>,
    quick_deaths: u32,
    /// When to start it again.
    start_at: Option<Instant>,
}

/// The next thing to do.
enum Event {
    Start,
    Died,
    Question,
    Nothing,
}

impl Asking<'_, '_> {
    /// Does what is due; false at the end of the line.
    fn turn(&mut self, line: &Line) -> bool {
        match self.wait(line) {
            Event::Nothing => true,
            Event::Start => {
                self.start();
                true
            }
            Event::Died => {
                self.ended();
                true
            }
            Event::Question => match line.next() {
                Ok(Some(Received::Question(question))) => {
                    self.answer(question);
                    true
                }
                // Only a compromised child sends it.
                Ok(Some(Received::Notice(_))) => true,
                Ok(None) | Err(_) => false,
            },
        }
    }

    fn wait(&self, line: &Line) -> Event {
        let Ok(incoming) = line.incoming() else { return Event::Question };
        let mut polled = vec![PollFd::new(&*incoming, PollFlags::IN)];
        if let Some(running) = &self.running {
            polled.push(PollFd::from_borrowed_fd(running.as_fd(), PollFlags::IN));
        }
        let timeout = self.start_at.map(|at| at.saturating_duration_since(Instant::now()));
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        match poll(&mut polled, timeout.as_ref()) {
            Ok(0) => Event::Start,
            Err(Errno::INTR) => Event::Nothing,
            Err(_) => Event::Question,
            // First, so that a question reaches a running program.
            Ok(_) if polled.get(1).is_some_and(|died| !died.revents().is_empty()) => Event::Died,
            Ok(_) => Event::Question,
        }
    }

    fn answer(&mut self, question: Question) {
        if !question.is_wanted() {
            return;
        }
        let key = question.message.get(1..).unwrap_or_default();
        // Only a compromised child sends it: two lines would be two questions.
        if key.contains(&b'\n') {
            return question.answer(&[&[FAILED]]);
        }
        let Some(running) = &mut self.running else {
            // As in Apache once the program has died.
            return question.answer(&[&[FOUND]]);
        };
        match running.ask(key, Instant::now() + self.wait) {
            Reply::Line(value) => question.answer(&[&[FOUND], &value]),
            Reply::Ended(value) => {
                question.answer(&[&[FOUND], &value]);
                self.ended();
            }
            Reply::Faulty(why) => {
                question.answer(&[&[FAILED]]);
                let program = self.map.path.display();
                let text = format!("mod_rewrite: RewriteMap program {program} {why}; restarted");
                (self.log)(Level::Error, Message::MapProgramFaulty.number(), &text);
                self.running = None;
                self.counts.set_running(0, 0);
                self.start();
            }
        }
    }

    fn start(&mut self) {
        self.start_at = None;
        match Running::start(self.map, self.identity) {
            Ok(running) => {
                self.running = Some(running);
                self.counts.started();
                self.counts.set_running(1, 0);
            }
            Err(error) => {
                self.counts.failed();
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                let cause = nix::errno::Errno::from_raw(errno.raw_os_error()).desc();
                let (number, program) = (errno.raw_os_error(), self.map.path.display());
                let text = format!("({number}){cause}: exec of '{program}' failed");
                (self.log)(Level::Error, 653, &text);
                self.quick_deaths += 1;
                self.start_at = Some(Instant::now() + pause(self.quick_deaths));
            }
        }
    }

    fn ended(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let is_quick = running.started.elapsed() < QUICK_DEATH;
        self.quick_deaths = if is_quick { self.quick_deaths + 1 } else { 0 };
        let (program, how) = (self.map.path.display(), running.how_it_ended());
        drop(running);
        self.counts.set_running(0, 0);
        let pause = pause(self.quick_deaths);
        let text = match pause.is_zero() {
            true => format!("mod_rewrite: RewriteMap program {program} {how}; restarted"),
            false => format!(
                "mod_rewrite: RewriteMap program {program} {how}; restarted in {:.1} s",
                pause.as_secs_f32()
            ),
        };
        (self.log)(Level::Error, Message::MapProgramEnded.number(), &text);
        match pause.is_zero() {
            true => self.start(),
            false => self.start_at = Some(Instant::now() + pause),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::sync::OnceLock;

    use super::*;

    #[test]
    fn a_key_is_one_line() {
        let (arguments, identity, line) = (Vec::new(), None, OnceLock::new());
        let map = MapProgram { path: "/none".into(), arguments, identity, line };
        let log: &mut Log<'_> = &mut |_, _, _| {};
        let wait = Duration::from_secs(1);
        let (running, start_at) = (None, None);
        let counts = mpm::Scoreboard::new(1, 1).unwrap().program_counts(None);
        let (map, identity, quick_deaths) = (&map, None, 0);
        let mut companion =
            Asking { map, identity, wait, counts, log, running, quick_deaths, start_at };
        let line = Line::new().unwrap();
        for (message, expected) in [(&b"?key"[..], [FOUND]), (b"?key\nother", [FAILED])] {
            let answer = line.ask(message).unwrap();
            let Some(Received::Question(question)) = line.next().unwrap() else { panic!() };
            companion.answer(question);
            let mut text = Vec::new();
            File::from(answer).read_to_end(&mut text).unwrap();
            assert_eq!(text, expected);
        }
    }
}
