//! Files to be served: opened without the tricks a file name can play, read small from memory, and
//! probed so that a file on a slow disk does not stall the loop.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::{Errno, ReadWriteFlags};

use crate::blocking::{BlockingPool, PoolError};

/// One read of the pool while it brings a cold range into memory.
const WARM_READ_BYTES: usize = 64 * 1024;

/// Why a file can't be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// open(2) or fstat(2) failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory, a pipe, a device, a socket: its type.
    #[error("not a regular file")]
    NotRegular(FileType),
}

/// Opens a regular file for reading: close-on-exec, and without waiting for the other end when the
/// name is a named pipe or a device.
///
/// Errors: those of open(2), and `NotRegular` for everything but a regular file.
pub fn open_static(path: &Path) -> Result<(File, Stat), OpenError> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from)?;
    let stat = rustix::fs::fstat(&fd).map_err(io::Error::from)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok((File::from(fd), stat)),
        other => Err(OpenError::NotRegular(other)),
    }
}

/// Reads up to `len` bytes from the file's start. Shorter when the file has shrunk meanwhile.
///
/// It blocks on a cold file: use it after [`is_resident`] or on the pool.
pub fn read_small(file: impl AsFd, len: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::with_capacity(len);
    while content.len() < len {
        let offset = content.len() as u64;
        let spare = rustix::buffer::spare_capacity(&mut content);
        match rustix::io::pread(&file, spare, offset) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    content.truncate(len);
    Ok(content)
}

/// What a read that must not wait has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// So many bytes were in memory and have been read; 0 at the end of the file.
    Read(usize),
    /// The next byte is not in memory, or the file system can't tell (network, FUSE).
    Cold,
}

/// Reads from `offset` what is in memory: preadv2 with RWF_NOWAIT. Errors: those of preadv2(2)
/// that do not mean "would wait".
pub fn read_resident(file: impl AsFd, buffer: &mut [u8], offset: u64) -> io::Result<Probe> {
    loop {
        let mut parts = [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(&file, &mut parts, offset, ReadWriteFlags::NOWAIT) {
            Ok(count) => return Ok(Probe::Read(count)),
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS) => return Ok(Probe::Cold),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// True when the byte at `offset` is in memory, or lies behind the end of the file: reading there
/// does not wait. Errors: as for [`read_resident`].
pub fn is_resident(file: impl AsFd, offset: u64) -> io::Result<bool> {
    let mut byte = [0];
    Ok(read_resident(file, &mut byte, offset)? != Probe::Cold)
}

/// Brings a range of a cold file into memory, on a thread of the pool.
///
/// Errors: those of dup(2) and read(2); `WouldBlock` when the pool is full.
pub async fn warm(pool: &BlockingPool, file: impl AsFd, offset: u64, len: usize) -> io::Result<()> {
    let file = file.as_fd().try_clone_to_owned()?;
    let read = move || -> io::Result<()> {
        let mut buffer = Vec::with_capacity(len.min(WARM_READ_BYTES));
        let mut done = 0;
        while done < len {
            buffer.clear();
            let spare = rustix::buffer::spare_capacity(&mut buffer);
            match rustix::io::pread(&file, spare, offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    };
    match pool.run(read).await {
        Ok(outcome) => outcome,
        Err(PoolError::Full | PoolError::NoThread) => Err(io::ErrorKind::WouldBlock.into()),
        Err(PoolError::Panicked) => Err(io::ErrorKind::Other.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn sample(content: &[u8]) -> (std::path::PathBuf, File) {
        let unique = format!("rt-file-{}-{:p}", std::process::id(), content);
        let path = std::env::temp_dir().join(unique);
        let mut file = File::create(&path).unwrap();
        file.write_all(content).unwrap();
        (path.clone(), File::open(path).unwrap())
    }

    #[test]
    fn opens_regular_files_only() {
        let (path, _) = sample(b"x");
        let (_, stat) = open_static(&path).unwrap();
        assert_eq!(stat.st_size, 1);
        assert!(matches!(
            open_static(&std::env::temp_dir()),
            Err(OpenError::NotRegular(FileType::Directory))
        ));
        let pipe = path.with_extension("fifo");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        // A blocking open would wait for a writer here.
        assert!(matches!(open_static(&pipe), Err(OpenError::NotRegular(FileType::Fifo))));
        std::fs::remove_file(pipe).unwrap();
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn reads_what_is_there() {
        let (path, file) = sample(b"hello world");
        assert_eq!(read_small(&file, 5).unwrap(), b"hello");
        assert_eq!(read_small(&file, 50).unwrap(), b"hello world");
        let mut buffer = [0; 32];
        // Just written, so in memory, unless the file system can't tell.
        match read_resident(&file, &mut buffer, 6).unwrap() {
            Probe::Read(count) => assert_eq!(&buffer[..count], b"world"),
            Probe::Cold => {}
        }
        std::fs::remove_file(path).unwrap();
    }
}
