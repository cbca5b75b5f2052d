//! Secrets that the running executable knows and its successor can read nowhere (keys whose pass
//! phrase was typed), passed from one to the other (`-k upgrade`).
//!
//! They go through a pipe: the kernel keeps a pipe's bytes in memory that is never written to disk,
//! delivers them to one reader once, and frees them when the pipe is closed.

use std::fmt;
use std::hint::black_box;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// The limit on what is handed over: what an ordinary user may have in a pipe.
pub const SECRET_BYTES_MAX: usize = 1 << 20;

/// Bytes that are overwritten when dropped.
#[derive(Default, PartialEq, Eq)]
pub struct Secrets(Vec<u8>);

impl Secrets {
    /// Takes over `bytes`, whose buffer should not have been reallocated while it was filled.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Creates a pipe with the secrets and a closed write end; close-on-exec.
    ///
    /// Errors: those of pipe(2), and `FileTooLarge` if they don't fit into a pipe.
    pub(crate) fn into_pipe(self) -> io::Result<OwnedFd> {
        let (to_read, to_write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        if self.0.len() > SECRET_BYTES_MAX {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        // The default size is enough for some twenty keys.
        let _ = fcntl_setpipe_size(&to_write, self.0.len().max(1));
        let mut rest = self.0.as_slice();
        while !rest.is_empty() {
            match rustix::io::write(&to_write, rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::FileTooLarge.into()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(to_read)
    }

    /// Reads a pipe's content; empty for anything but a pipe.
    pub(crate) fn from_pipe(pipe: BorrowedFd<'_>) -> Self {
        let count = rustix::io::ioctl_fionread(pipe).unwrap_or(0);
        let count = usize::try_from(count).unwrap_or(0).min(SECRET_BYTES_MAX);
        // Allocated at full size: a buffer that grows leaves copies of its first bytes behind.
        let mut secrets = Self(vec![0; count]);
        let mut filled = 0;
        while let Some(rest) = secrets.0.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match rustix::io::read(pipe.as_fd(), rest) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        secrets.0.truncate(filled);
        secrets
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Secrets({} bytes)", self.0.len())
    }
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.0.fill(0);
        // Keeps the compiler from eliminating the writes.
        black_box(&mut self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_gives_them_once() {
        for count in [0, 1, 3000, 200_000] {
            let bytes: Vec<u8> = (0..count).map(|at| at as u8).collect();
            let pipe = Secrets::new(bytes.clone()).into_pipe().unwrap();
            assert_eq!(Secrets::from_pipe(pipe.as_fd()).as_bytes(), bytes);
            assert!(Secrets::from_pipe(pipe.as_fd()).is_empty());
        }
        let null = std::fs::File::open("/dev/null").unwrap();
        assert!(Secrets::from_pipe(null.as_fd()).is_empty());
    }

    #[test]
    fn what_a_pipe_does_not_take_is_an_error() {
        assert!(Secrets::new(vec![1; SECRET_BYTES_MAX + 1]).into_pipe().is_err());
    }

    #[test]
    fn debug_output_hides_them() {
        assert_eq!(format!("{:?}", Secrets::new(b"key".to_vec())), "Secrets(3 bytes)");
    }
}
