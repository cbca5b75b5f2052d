//! Descriptors that stay open while a process executes another program, which takes them over by
//! their numbers.
#![expect(unsafe_code, reason = "descriptors by number")]

use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Leaves a descriptor to the program that this process executes.
pub(crate) fn keep_open(descriptor: BorrowedFd<'_>) -> io::Result<()> {
    Ok(fcntl_setfd(descriptor, fcntl_getfd(descriptor)? - FdFlags::CLOEXEC)?)
}

/// Takes over a descriptor that was left open, and sets it close-on-exec again; `None` if the
/// number is no open descriptor's.
///
/// # Safety
/// Nothing else in this process may own the descriptor.
pub(crate) unsafe fn take(number: RawFd) -> Option<OwnedFd> {
    if number < 0 {
        return None;
    }
    // SAFETY: borrowed only to check that it is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    fcntl_setfd(borrowed, FdFlags::CLOEXEC).ok()?;
    // SAFETY: it is open, and by the caller's promise has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsFd, IntoRawFd};

    use super::*;

    #[test]
    fn a_descriptor_that_stays_open_is_taken_over() {
        let file = File::open("/dev/null").unwrap();
        keep_open(file.as_fd()).unwrap();
        assert_eq!(fcntl_getfd(&file).unwrap(), FdFlags::empty());
        // SAFETY: the file has given it up.
        let taken = unsafe { take(file.into_raw_fd()) }.unwrap();
        assert_eq!(fcntl_getfd(&taken).unwrap(), FdFlags::CLOEXEC);
        for number in [-1, 1_000_000] {
            // SAFETY: these are no descriptors.
            assert!(unsafe { take(number) }.is_none());
        }
    }
}
