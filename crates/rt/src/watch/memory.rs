//! The memory of a watch: words that all processes forked from its maker share, and a lock among
//! them that survives the death of its holder.

#![expect(unsafe_code, reason = "memory and a lock shared between processes")]

use std::cell::UnsafeCell;
use std::ffi::c_int;
use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Words from the start of the mapping that the lock takes, in a cache line of their own.
const LOCK_WORDS: usize = 8;
/// The word behind the lock: 1 if a holder panicked.
const BROKEN: usize = LOCK_WORDS;
const HEAD_WORDS: usize = 2 * LOCK_WORDS;

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= LOCK_WORDS * size_of::<AtomicU64>());

/// Memory that a process shares with those forked from it: words, all 0 at first, and their lock.
pub struct Memory {
    start: NonNull<AtomicU64>,
    count: usize,
}

// SAFETY: the mapping belongs to no thread; its words are atomics, and its lock is made for use by
// several threads.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// `words` words. Errors: those of mmap(2) and pthread_mutex_init(3).
    pub fn new(words: usize) -> io::Result<Self> {
        let count = HEAD_WORDS + words;
        // SAFETY: a new anonymous mapping at an address chosen by the kernel overlaps no memory in
        // use.
        let start = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                count * size_of::<AtomicU64>(),
                ProtFlags::READ | ProtFlags::WRITE,
                // NORESERVE: unused room must not count even as committed memory.
                MapFlags::SHARED | MapFlags::NORESERVE,
            )?
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        let memory = Self { start, count };
        memory.make_lock()?;
        Ok(memory)
    }

    /// All words.
    #[inline]
    pub fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned, `count` words long, zeroed, and lives as long as
        // `self`; zero is a valid value, and all access is atomic.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) };
        all.get(HEAD_WORDS..).unwrap_or_default()
    }

    /// Waits for the lock. The second value is true if the last holder did not finish its change,
    /// because it panicked or its process died.
    pub fn lock(&self) -> (Guard<'_>, bool) {
        // SAFETY: the lock was initialised by `new`, and is never moved or destroyed.
        let outcome = unsafe { libc::pthread_mutex_lock(self.mutex()) };
        if outcome == libc::EOWNERDEAD {
            // SAFETY: this thread holds the lock now.
            unsafe { libc::pthread_mutex_consistent(self.mutex()) };
        }
        let broken = self.broken().swap(0, Ordering::Relaxed) != 0;
        (Guard(self), outcome != 0 || broken)
    }

    fn make_lock(&self) -> io::Result<()> {
        let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attributes = attributes.as_mut_ptr();
        // SAFETY: the attributes are initialised before they are used; the lock's memory is large
        // enough (asserted above), aligned to a page, and used by nothing else.
        unsafe {
            check(libc::pthread_mutexattr_init(attributes))?;
            let shared = libc::PTHREAD_PROCESS_SHARED;
            check(libc::pthread_mutexattr_setpshared(attributes, shared))?;
            let robust = libc::PTHREAD_MUTEX_ROBUST;
            check(libc::pthread_mutexattr_setrobust(attributes, robust))?;
            check(libc::pthread_mutex_init(self.mutex(), attributes))?;
            check(libc::pthread_mutexattr_destroy(attributes))
        }
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        // The words are cells, so that the pointer may be written through.
        let cell: *const UnsafeCell<libc::pthread_mutex_t> = self.start.as_ptr().cast();
        UnsafeCell::raw_get(cell)
    }

    fn broken(&self) -> &AtomicU64 {
        // SAFETY: a word within the mapping, as in `words`.
        unsafe { self.start.add(BROKEN).as_ref() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `new`; no reference into it outlives `self`. Other
        // processes keep theirs.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.count * size_of::<AtomicU64>()) };
    }
}

/// The held lock.
pub struct Guard<'m>(&'m Memory);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken().store(1, Ordering::Relaxed);
        }
        // SAFETY: this thread holds the lock.
        unsafe { libc::pthread_mutex_unlock(self.0.mutex()) };
    }
}

fn check(outcome: c_int) -> io::Result<()> {
    if outcome == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(outcome)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_that_panics_is_noticed_once() {
        let memory = Memory::new(4).unwrap();
        assert!(!memory.lock().1);
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let _guard = memory.lock();
                std::panic::resume_unwind(Box::new(()));
            });
            assert!(holder.join().is_err());
        });
        assert!(memory.lock().1);
        assert!(!memory.lock().1);
    }

    #[test]
    fn a_holder_that_ends_without_letting_go_is_noticed_once() {
        let memory = Memory::new(4).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| std::mem::forget(memory.lock()));
        });
        assert!(memory.lock().1);
        assert!(!memory.lock().1);
    }

    #[test]
    fn locked_changes_do_not_mix() {
        let memory = Memory::new(1).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let _guard = memory.lock();
                        let word = &memory.words()[0];
                        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(memory.words()[0].load(Ordering::Relaxed), 40_000);
    }
}
