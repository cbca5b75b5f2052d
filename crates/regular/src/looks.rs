//! Counts what a thread asks of the file system: `tamarack explain` shows it. What a request asks
//! there takes a system call, beside which counting costs nothing.

use std::cell::Cell;

thread_local! {
    static LOOKS: Cell<Looks> = const { Cell::new(Looks { stats: 0, opens: 0 }) };
}

/// What a thread has asked of the file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Looks {
    /// Calls of stat(2) and lstat(2).
    pub stats: u64,
    /// Calls of open(2), also of those that failed.
    pub opens: u64,
}

impl Looks {
    /// What this thread has asked so far; only differences mean something.
    pub fn so_far() -> Looks {
        LOOKS.get()
    }

    /// What this thread has asked since then.
    #[must_use]
    pub fn since(self) -> Looks {
        let now = LOOKS.get();
        Looks {
            stats: now.stats.wrapping_sub(self.stats),
            opens: now.opens.wrapping_sub(self.opens),
        }
    }

    /// Counts what another thread has asked for this one.
    pub fn take_over(self) {
        let now = LOOKS.get();
        LOOKS.set(Looks {
            stats: now.stats.wrapping_add(self.stats),
            opens: now.opens.wrapping_add(self.opens),
        });
    }
}

/// Counts a stat.
pub fn count_stat() {
    Looks { stats: 1, opens: 0 }.take_over();
}

/// Counts an open.
pub(crate) fn count_open() {
    Looks { stats: 0, opens: 1 }.take_over();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_counts_for_itself_and_for_those_that_it_takes_over() {
        let before = Looks::so_far();
        count_stat();
        assert!(crate::open("/none").is_err() && crate::open_directory("/none").is_err());
        let of_other = std::thread::spawn(|| {
            let before = Looks::so_far();
            count_stat();
            before.since()
        });
        assert_eq!(before.since(), Looks { stats: 1, opens: 2 });
        of_other.join().unwrap().take_over();
        assert_eq!(before.since(), Looks { stats: 2, opens: 2 });
    }
}
