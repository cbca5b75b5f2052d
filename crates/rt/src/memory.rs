//! Counts what a thread has allocated: memory, to limit a cache by the memory of values whose size
//! is not known in advance, and allocations, which `tamarack explain` shows.

#![expect(unsafe_code, reason = "the global allocator")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

thread_local! {
    /// Bytes allocated less bytes freed by this thread; negative where it frees what others
    /// allocated.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
    /// Allocations of this thread, enlargements included.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// An allocator that counts per thread what it gives and takes back. It is a program's global
/// allocator, or [`taken_by`] measures nothing.
pub struct Counting<A>(pub A);

/// Runs `make`, and tells how many bytes this thread has taken by it and not given back.
pub fn taken_by<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = TAKEN.get();
    let made = make();
    (made, usize::try_from(TAKEN.get().wrapping_sub(before)).unwrap_or(0))
}

/// What this thread has taken so far and not given back, bytes; only differences mean something.
pub fn taken() -> isize {
    TAKEN.get()
}

/// The allocations that this thread has made so far, enlargements included; only differences mean
/// something.
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

fn count_allocation(bytes: isize) {
    ALLOCATIONS.set(ALLOCATIONS.get().wrapping_add(1));
    count(bytes);
}

fn count(bytes: isize) {
    TAKEN.set(TAKEN.get().wrapping_add(bytes));
}

/// A layout's size, which is isize::MAX at most.
fn size(layout: Layout) -> isize {
    layout.size().cast_signed()
}

// SAFETY: every call goes to the inner allocator as it came. What is counted beside it is a plain
// cell of the thread, whose access neither allocates nor panics.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count_allocation(size(layout));
        // SAFETY: the caller's promises are those that the inner allocator asks for.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count_allocation(size(layout));
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-size(layout));
        // SAFETY: as above.
        unsafe { self.0.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count_allocation(new_size.cast_signed() - size(layout));
        // SAFETY: as above.
        unsafe { self.0.realloc(at, layout, new_size) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_less_what_is_given_back_is_told() {
        let (_, taken) = taken_by(|| {
            count(300);
            count(-100);
        });
        assert_eq!(taken, 200);
        let (_, taken) = taken_by(|| count(-100));
        assert_eq!(taken, 0);
        let allocator = Counting(std::alloc::System);
        let layout = Layout::from_size_align(64, 8).unwrap();
        let before = allocations();
        let (_, taken) = taken_by(|| {
            // SAFETY: the layout has a size, and what is freed was allocated with it.
            unsafe {
                let at = allocator.alloc(layout);
                let at = allocator.realloc(at, layout, 96);
                let more = allocator.alloc_zeroed(layout);
                allocator.dealloc(at, Layout::from_size_align_unchecked(96, 8));
                allocator.dealloc(more, layout);
            }
        });
        assert_eq!((taken, allocations() - before), (0, 3));
    }
}
