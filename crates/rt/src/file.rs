//! Files to be served: read small from memory, and probed so that a file on a slow disk does not
//! stall the loop.

use std::io::{self, IoSliceMut};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::{Errno, ReadWriteFlags};

use crate::blocking::{BlockingPool, PoolError, Work};

/// One read of the pool while it brings a cold range into memory.
const WARM_READ_BYTES: usize = 64 * 1024;
/// The longest that a cold range waits for a place in the pool's queue.
const WARM_WAIT: Duration = Duration::from_secs(60);
/// The time between two attempts to get a place in a full queue.
const FULL_PAUSE: Duration = Duration::from_millis(20);

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

/// Brings a range of a cold file into memory, on a thread of the pool. While the pool's queue is
/// full it waits: the response has begun, and an error would break it off.
///
/// Errors: those of dup(2) and read(2); `TimedOut` when there is no thread or the disk does not
/// respond for [`WARM_WAIT`].
pub async fn warm(pool: &BlockingPool, file: impl AsFd, offset: u64, len: usize) -> io::Result<()> {
    let file = Arc::new(file.as_fd().try_clone_to_owned()?);
    let until = tokio::time::Instant::now() + WARM_WAIT;
    loop {
        let file = file.clone();
        match pool.run(Work::File, move || read_through(file, offset, len)).await {
            Ok(outcome) => return outcome,
            Err(PoolError::Panicked) => return Err(io::ErrorKind::Other.into()),
            Err(PoolError::TimedOut) => return Err(io::ErrorKind::TimedOut.into()),
            Err(PoolError::Full | PoolError::NoThread) => {
                if tokio::time::Instant::now() >= until {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                tokio::time::sleep(FULL_PAUSE).await;
            }
        }
    }
}

fn read_through(file: impl AsFd, offset: u64, len: usize) -> io::Result<()> {
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn sample(content: &[u8]) -> (std::path::PathBuf, File) {
        let unique = format!("rt-file-{}-{:p}", std::process::id(), content);
        let path = std::env::temp_dir().join(unique);
        let mut file = File::create(&path).unwrap();
        file.write_all(content).unwrap();
        (path.clone(), File::open(path).unwrap())
    }

    #[tokio::test]
    async fn a_cold_range_waits_while_the_queue_is_full() {
        let (path, file) = sample(b"hello");
        let limits = crate::BlockingLimits { threads: 1, queue: 1 };
        let pool = Arc::new(BlockingPool::new(limits));
        let (release, gate) = std::sync::mpsc::channel::<()>();
        let (running, waiting) = (pool.clone(), pool.clone());
        tokio::spawn(async move { running.run(Work::File, move || gate.recv()).await });
        while pool.load() != (1, 0) {
            tokio::task::yield_now().await;
        }
        tokio::spawn(async move { waiting.run(Work::File, || ()).await });
        while pool.load() != (1, 1) {
            tokio::task::yield_now().await;
        }
        assert_eq!(pool.run(Work::File, || ()).await, Err(PoolError::Full));
        let warming = tokio::spawn(async move { warm(&pool, &file, 0, 5).await });
        tokio::time::sleep(2 * FULL_PAUSE).await;
        assert!(!warming.is_finished());
        release.send(()).unwrap();
        warming.await.unwrap().unwrap();
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
