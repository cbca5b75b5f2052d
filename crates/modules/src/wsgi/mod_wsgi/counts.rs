//! What process groups do, for the pages of mod_status: what the companion knows of their
//! processes, and what the children count of their requests, in memory that they share.

use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use server::host::Server;

use super::{Settings, Wsgi};

/// Raised when the layout changes: regions outlive the executable.
const LAYOUT: u32 = 1;

/// Why a process was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    Script,
    Requests,
    Interval,
    Signal,
    TimeLimit,
    Deadlock,
    Death,
}

/// All reasons, by their names on pages.
pub(super) const REASONS: [(Reason, &str); 7] = [
    (Reason::Script, "script"),
    (Reason::Requests, "requests"),
    (Reason::Interval, "interval"),
    (Reason::Signal, "signal"),
    (Reason::TimeLimit, "time-limit"),
    (Reason::Deadlock, "deadlock"),
    (Reason::Death, "death"),
];

impl Reason {
    /// The reason that a process reports in words.
    pub fn of(text: &str) -> Reason {
        match text {
            "Script changed" => Reason::Script,
            "Maximum requests reached" => Reason::Requests,
            "Application restart timer expired" => Reason::Interval,
            "Time limit" => Reason::TimeLimit,
            // A user's, or that of a limit on CPU time.
            _ => Reason::Signal,
        }
    }
}

/// A group, as the companion sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State {
    /// Its processes, those that end included.
    pub processes: u64,
    /// The threads of those that take requests.
    pub threads: u64,
    /// Threads with a request; `None` if its processes can't use shared memory.
    pub busy: Option<u64>,
    /// Requests that wait for a thread.
    pub waiting: u64,
    /// Processes that were replaced, by [`REASONS`].
    pub replaced: [u64; REASONS.len()],
}

/// What asks the companion for the states of all groups, in place of the number of a group.
pub(super) const STATES: [u8; 4] = u32::MAX.to_le_bytes();

/// The longest answer.
pub(super) const STATES_BYTES: usize = 1 << 20;

impl State {
    /// Adds it as a line.
    pub fn write(&self, out: &mut String) {
        let busy = self.busy.map_or("-".to_owned(), |busy| busy.to_string());
        let _ = write!(out, "{} {} {busy} {}", self.processes, self.threads, self.waiting);
        for count in self.replaced {
            let _ = write!(out, " {count}");
        }
        out.push('\n');
    }

    /// Reads a line.
    pub fn read(line: &str) -> Option<State> {
        let mut words = line.split(' ').map(|word| word.parse().ok());
        let (processes, threads) = (words.next()??, words.next()??);
        let (busy, waiting) = (words.next()?, words.next()??);
        let mut replaced = [0; REASONS.len()];
        for count in &mut replaced {
            *count = words.next()??;
        }
        Some(State { processes, threads, busy, waiting, replaced })
    }
}

/// What the children count of a group's requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts(&'static [AtomicU64; 3]);

impl Counts {
    /// Requests that a thread took.
    pub fn requests(self) -> u64 {
        self.0[0].load(Relaxed)
    }

    /// The time of these requests, in microseconds, from when they were queued to the end of the
    /// application.
    pub fn time_us(self) -> u64 {
        self.0[1].load(Relaxed)
    }

    /// Requests that no thread took.
    pub fn refused(self) -> u64 {
        self.0[2].load(Relaxed)
    }

    /// A request could not be queued.
    pub fn count_refused(self) {
        self.0[2].fetch_add(1, Relaxed);
    }
}

/// A request of a group, counted when it is over.
#[derive(Debug)]
pub(super) struct Counted {
    counts: Option<Counts>,
    began: Instant,
    /// Whether a thread has taken it.
    pub is_taken: bool,
}

impl Counted {
    /// A request that is queued now.
    pub fn new(counts: Option<Counts>) -> Counted {
        Counted { counts, began: Instant::now(), is_taken: false }
    }

    /// Does not count it.
    pub fn forget(&mut self) {
        self.counts = None;
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(counts) = self.counts else { return };
        if !self.is_taken {
            return counts.count_refused();
        }
        let time_us = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(0);
        counts.0[0].fetch_add(1, Relaxed);
        counts.0[1].fetch_add(time_us, Relaxed);
    }
}

/// The counts of all groups, embedded mode first.
#[derive(Clone, Copy, Debug)]
pub(super) struct All(&'static [AtomicU64]);

impl All {
    /// Those of a group.
    pub fn of(self, index: usize) -> Option<Counts> {
        self.0.get(index * 3..)?.first_chunk().map(Counts)
    }
}

/// Makes the memory, before the fork. A configuration with the same groups gets the same.
pub(super) fn share(server: &Server, shared: &mpm::Shared) -> Result<(), String> {
    let Some(slot) = server.registry.slot_of::<Wsgi>() else { return Ok(()) };
    let mut hasher = DefaultHasher::new();
    (LAYOUT, env!("CARGO_PKG_VERSION")).hash(&mut hasher);
    let mut groups = 1;
    let settings = server.hosts.iter().filter_map(|host| host.server.get::<Settings>(slot));
    for group in settings.flat_map(|settings| &settings.groups.0) {
        group.name.hash(&mut hasher);
        groups += 1;
    }
    let name = format!("wsgi-{:016x}", hasher.finish());
    let words = shared.words(&name, groups * 3);
    let words = words.map_err(|error| format!("mod_wsgi: no shared memory: {error}"))?;
    if let Some(main) = server.main().server.get::<Settings>(slot) {
        let _ = main.runtime.0.counts().set(All(words));
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_as_they_are_written() {
        let replaced = [1, 2, 3, 4, 5, 6, 7];
        for busy in [Some(3), None] {
            let state = State { processes: 2, threads: 30, busy, waiting: u64::MAX, replaced };
            let mut text = String::new();
            state.write(&mut text);
            assert_eq!(State::read(text.trim_end()), Some(state));
        }
        for broken in ["", "1 2", "1 2 3", "1 2 3 4 1 2 3 4 5 6", "x 2 3 4 1 2 3 4 5 6 7"] {
            assert_eq!(State::read(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_request_is_counted_once_it_is_over() {
        static WORDS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];
        let all = All(&WORDS);
        assert!(all.of(2).is_none());
        let counts = all.of(1).unwrap();
        let mut taken = Counted::new(Some(counts));
        taken.is_taken = true;
        drop(Counted::new(Some(counts)));
        assert_eq!((counts.requests(), counts.refused()), (0, 1));
        drop(taken);
        drop(Counted::new(None));
        assert_eq!((counts.requests(), counts.refused()), (1, 1));
        assert_eq!(all.of(0).unwrap().requests(), 0);
    }

    #[test]
    fn the_words_of_workers_are_known() {
        let worker = include_str!("worker/life.py");
        for (text, reason) in [
            ("Script changed", Reason::Script),
            ("Maximum requests reached", Reason::Requests),
            ("Application restart timer expired", Reason::Interval),
            ("Time limit", Reason::TimeLimit),
            ("Graceful restart requested", Reason::Signal),
            ("Signal received", Reason::Signal),
        ] {
            assert!(worker.contains(text), "{text}");
            assert_eq!(Reason::of(text), reason);
        }
    }
}
