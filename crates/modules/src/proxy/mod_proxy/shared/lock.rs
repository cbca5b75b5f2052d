//! The lock of a balancer: a word of the region that holds the id of its holder's process, so that
//! it outlives no holder.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// How often a word is read before the thread lets others run.
const SPINS: u32 = 64;
/// After how many such turns the holder's process is looked for.
const TURNS: u32 = 256;

/// The id of this process, which a child sets when it starts.
static OWN: AtomicU32 = AtomicU32::new(0);

/// Notes the id of this process.
pub(super) fn note_process(pid: u32) {
    OWN.store(pid, Relaxed);
}

/// The id of this process; 0 before any child has started.
pub(super) fn own_process() -> u32 {
    OWN.load(Relaxed)
}

/// A lock.
#[derive(Clone, Copy)]
pub(super) struct Lock<'w>(&'w AtomicU64);

/// The lock is held until this is dropped.
pub struct Locked<'w>(&'w AtomicU64);

impl<'w> Lock<'w> {
    /// The lock in this word.
    pub fn of(word: &'w AtomicU64) -> Lock<'w> {
        Lock(word)
    }

    /// Waits for the lock: it is held for less than a microsecond, unless its holder is not run.
    pub fn lock(self) -> Locked<'w> {
        // Before any child has started there is one process.
        let own = u64::from(OWN.load(Relaxed).max(1));
        let mut turns = 0;
        loop {
            for _ in 0..SPINS {
                if self.0.compare_exchange_weak(0, own, Acquire, Relaxed).is_ok() {
                    return Locked(self.0);
                }
                std::hint::spin_loop();
            }
            std::thread::yield_now();
            turns += 1;
            if turns % TURNS == 0 {
                let holder = self.0.load(Relaxed);
                if holder != own && !is_alive(holder) {
                    let _ = self.0.compare_exchange(holder, 0, Acquire, Relaxed);
                }
            }
        }
    }

    /// Frees the lock if this process, which has ended, holds it.
    pub fn release(self, pid: u32) {
        let _ = self.0.compare_exchange(pid.into(), 0, Release, Relaxed);
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        self.0.store(0, Release);
    }
}

fn is_alive(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_it() {
        let (word, sum) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _held = Lock::of(&word).lock();
                        sum.store(sum.load(Relaxed) + 1, Relaxed);
                    }
                });
            }
        });
        assert_eq!((sum.load(Relaxed), word.load(Relaxed)), (4000, 0));
    }

    #[test]
    fn a_holder_that_has_ended_holds_it_no_longer() {
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        let pid = ended.id();
        ended.wait().unwrap();
        let word = AtomicU64::new(pid.into());
        drop(Lock::of(&word).lock());
        assert_eq!(word.load(Relaxed), 0);
        word.store(7, Relaxed);
        Lock::of(&word).release(8);
        assert_eq!(word.load(Relaxed), 7);
        Lock::of(&word).release(7);
        assert_eq!(word.load(Relaxed), 0);
    }
}
