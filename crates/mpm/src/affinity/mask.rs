//! Affinity masks of threads, and the server's whole mask, which executed programs get back.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sched::{CpuSet as Bits, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::cpu_set::{CPU_NUMBERS, CpuSet};
use crate::scoreboard::MASK_WORDS;
use crate::shared::map_cells;

/// The supervisor's own mask, in memory shared with all its children. The supervisor is never
/// pinned, so this is what the administrator and the cpuset allow.
static WHOLE: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// The mask of the calling thread.
pub fn current() -> io::Result<CpuSet> {
    of_thread(0)
}

/// The CPU that the calling thread runs on. No system call on most machines.
pub fn current_cpu() -> Option<usize> {
    Some(rustix::thread::sched_getcpu())
}

/// The mask of a thread, by its id.
pub(crate) fn of_thread(thread: i32) -> io::Result<CpuSet> {
    let bits = sched_getaffinity(Pid::from_raw(thread))?;
    Ok((0..CPU_NUMBERS).filter(|cpu| bits.is_set(*cpu).unwrap_or(false)).collect())
}

/// Binds the calling thread to `cpus`. Errors: none of them is allowed or online.
pub fn pin(cpus: &CpuSet) -> io::Result<()> {
    pin_thread(0, cpus)
}

/// As [`pin`], for another thread of this process.
pub fn pin_thread(thread: i32, cpus: &CpuSet) -> io::Result<()> {
    let mut bits = Bits::new();
    for cpu in cpus.iter() {
        bits.set(cpu)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(thread), &bits)?)
}

/// Restores the server's whole mask for the calling thread. For threads without a loop, and for
/// programs: it may also be called between fork and exec, since it does not allocate.
///
/// Does nothing if no supervisor has called [`remember_whole`].
pub fn unpin() -> io::Result<()> {
    let Some(words) = WHOLE.get() else { return Ok(()) };
    let mut bits = Bits::new();
    for (at, word) in words.iter().enumerate() {
        let mut word = word.load(Ordering::Relaxed);
        while word != 0 {
            bits.set(at * 64 + word.trailing_zeros() as usize)?;
            word &= word - 1;
        }
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &bits)?)
}

/// The server's whole mask as last stored; `None` if no supervisor has stored it.
pub(crate) fn whole() -> Option<CpuSet> {
    let words: Vec<u64> = WHOLE.get()?.iter().map(|word| word.load(Ordering::Relaxed)).collect();
    Some(CpuSet::from_words(&words)).filter(|cpus| !cpus.is_empty())
}

/// Stores the supervisor's mask for [`unpin`]; called at start, and when the mask has changed.
pub(crate) fn remember_whole(cpus: &CpuSet) -> io::Result<()> {
    if WHOLE.get().is_none() {
        let _ = WHOLE.set(map_cells(MASK_WORDS)?);
    }
    for (word, bits) in WHOLE.get().copied().unwrap_or_default().iter().zip(cpus.to_words()) {
        word.store(bits, Ordering::Relaxed);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_let_go() {
        // Runs in its own thread, whose mask affects no other test.
        let whole = current().unwrap();
        let first: CpuSet = whole.first().into_iter().collect();
        remember_whole(&whole).unwrap();
        let thread = std::thread::spawn(move || {
            pin(&first).unwrap();
            let pinned = current().unwrap();
            // A thread inherits the mask of the thread that starts it.
            let inherited = std::thread::spawn(|| current().unwrap()).join().unwrap();
            unpin().unwrap();
            (first, pinned, inherited, current().unwrap())
        });
        let (first, pinned, inherited, back) = thread.join().unwrap();
        assert_eq!((&pinned, &inherited), (&first, &first));
        assert_eq!(back, whole);
        assert!(pin(&CpuSet::default()).is_err());
    }
}
