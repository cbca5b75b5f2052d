//! Affinity masks of threads, and the whole mask that programs of others get back.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sched::{CpuSet as Bits, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use super::cpu_set::{CPU_NUMBERS, CpuSet};
use crate::shared::map_cells;

/// 64-bit words of a mask.
pub(crate) const MASK_WORDS: usize = CPU_NUMBERS / 64;

/// The supervisor's own mask, in memory that all its children share. The supervisor is never
/// pinned, so that this is what the administrator and the cpuset allow.
static WHOLE: OnceLock<&'static [AtomicU64]> = OnceLock::new();

/// The mask of the thread that asks.
pub fn current() -> io::Result<CpuSet> {
    of_thread(0)
}

/// The mask of a thread, by its id.
pub(crate) fn of_thread(thread: i32) -> io::Result<CpuSet> {
    let bits = sched_getaffinity(Pid::from_raw(thread))?;
    Ok((0..CPU_NUMBERS).filter(|cpu| bits.is_set(*cpu).unwrap_or(false)).collect())
}

/// Lets the thread that asks run on `cpus` alone. Errors: none of them is allowed or online.
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

/// Gives the thread that asks the server's whole mask back. For threads that are no loop's, and
/// for programs: between fork and exec it may be called too, since it allocates nothing.
///
/// Does nothing where no supervisor has called [`remember_whole`].
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

/// Notes the supervisor's mask for [`unpin`]; called at start, and when the mask has changed.
pub(crate) fn remember_whole(cpus: &CpuSet) -> io::Result<()> {
    if WHOLE.get().is_none() {
        let _ = WHOLE.set(map_cells(MASK_WORDS)?);
    }
    let words = WHOLE.get().copied().unwrap_or_default();
    store(words, cpus);
    Ok(())
}

/// Writes a mask into shared words.
pub(crate) fn store(words: &[AtomicU64], cpus: &CpuSet) {
    for (at, word) in words.iter().enumerate() {
        let bits =
            cpus.iter().filter(|cpu| cpu / 64 == at).fold(0, |bits, cpu| bits | 1 << (cpu % 64));
        word.store(bits, Ordering::Relaxed);
    }
}

/// Reads what [`store`] has written.
#[cfg(test)]
pub(crate) fn load(words: &[AtomicU64]) -> CpuSet {
    let bits = words.iter().enumerate().flat_map(|(at, word)| {
        let word = word.load(Ordering::Relaxed);
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
    });
    bits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_pinned_and_let_go() {
        // A thread of its own: the mask belongs to it alone.
        let whole = current().unwrap();
        let first: CpuSet = whole.first().into_iter().collect();
        remember_whole(&whole).unwrap();
        let thread = std::thread::spawn(move || {
            pin(&first).unwrap();
            let pinned = current().unwrap();
            // A thread that is started by a pinned one is as pinned.
            let heir = std::thread::spawn(|| current().unwrap()).join().unwrap();
            unpin().unwrap();
            (first, pinned, heir, current().unwrap())
        });
        let (first, pinned, heir, back) = thread.join().unwrap();
        assert_eq!((&pinned, &heir), (&first, &first));
        assert_eq!(back, whole);
        assert!(pin(&CpuSet::default()).is_err());
    }

    #[test]
    fn masks_in_shared_words_read_back() {
        let words = map_cells(MASK_WORDS).unwrap();
        let set = CpuSet::from_kernel("0,63-65,1023");
        store(words, &set);
        assert_eq!(load(words), set);
    }
}
