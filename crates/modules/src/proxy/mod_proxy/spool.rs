//! `ProxySpool`: what of a response waits for its client in an unnamed file. It is written on the
//! blocking pool, and sent by sendfile.

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};

use bytes::Bytes;
use rt::{BlockingPool, Work};
use rustix::fs::{CWD, Mode, OFlags};
use server::body::{Chunk, FileSlice};

/// Bytes that are gathered before they are written.
const WRITE_BYTES: usize = 128 * 1024;
/// The most that is sent at once, bytes: the backend is read again in between.
const SEND_BYTES: u64 = 1024 * 1024;

/// Bytes in the files of this process.
static SPOOLED: AtomicU64 = AtomicU64::new(0);

/// How much may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Of one response, bytes.
    pub each: u64,
    /// Of all responses of the process at the same time, bytes.
    pub total: u64,
}

/// Opens a file without a name, in the folder for temporary files.
pub fn unnamed_file() -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(CWD, std::env::temp_dir(), flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

/// A part of [`Limits::total`]; dropping it makes room for others.
#[derive(Debug)]
struct Reserved<'c> {
    counter: &'c AtomicU64,
    bytes: u64,
}

impl Reserved<'_> {
    /// Reserves `more` bytes, if there is room.
    fn grow(&mut self, more: u64, total: u64) -> bool {
        let sum = |now: u64| now.checked_add(more).filter(|sum| *sum <= total);
        let has_grown = self.counter.fetch_update(Relaxed, Relaxed, sum).is_ok();
        self.bytes += if has_grown { more } else { 0 };
        has_grown
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.counter.fetch_sub(self.bytes, Relaxed);
    }
}

/// The same open file, for those who write and for those who send.
struct Files {
    written: Arc<File>,
    sent: Rc<File>,
}

type Writing = Pin<Box<dyn Future<Output = io::Result<Arc<File>>>>>;

/// A file of a response, and what is about to be written to it.
pub struct Spool {
    limits: Limits,
    pool: Arc<BlockingPool>,
    reserved: Reserved<'static>,
    files: Option<Files>,
    /// Bytes that are in the file, and those of them that have been given.
    written: u64,
    given: u64,
    /// What is being written, to follow these.
    writing: Option<(Writing, Vec<Bytes>)>,
    /// What follows that.
    gathered: VecDeque<Bytes>,
    gathered_bytes: usize,
    /// The limit is reached.
    is_full: bool,
    /// The file can't be written.
    is_broken: bool,
}

impl Spool {
    /// A file that is opened when the first bytes are written.
    pub fn new(limits: Limits, pool: Arc<BlockingPool>) -> Spool {
        Spool {
            limits,
            pool,
            reserved: Reserved { counter: &SPOOLED, bytes: 0 },
            files: None,
            written: 0,
            given: 0,
            writing: None,
            gathered: VecDeque::new(),
            gathered_bytes: 0,
            is_full: false,
            is_broken: false,
        }
    }

    /// Whether all of it has been given.
    pub fn is_empty(&self) -> bool {
        self.given == self.written && self.writing.is_none() && self.gathered.is_empty()
    }

    /// Whether more may be pushed. What is gathered has room in the file, unless that fails.
    pub fn has_room(&mut self) -> bool {
        if self.is_full || self.is_broken || self.gathered_bytes >= WRITE_BYTES {
            return false;
        }
        let writing: usize =
            self.writing.iter().flat_map(|(_, pieces)| pieces).map(Bytes::len).sum();
        // A piece may reach beyond the size of one write.
        let needed = self.written + (writing + 2 * WRITE_BYTES) as u64;
        if needed > self.limits.each {
            self.is_full = true;
        } else if needed > self.reserved.bytes {
            let more = needed - self.reserved.bytes;
            // Other responses may end.
            return self.reserved.grow(more, self.limits.total);
        }
        !self.is_full
    }

    /// Adds bytes behind the others.
    pub fn push(&mut self, bytes: Bytes) {
        self.gathered_bytes += bytes.len();
        self.gathered.push_back(bytes);
    }

    /// Writes what has been gathered, if that is enough for a write.
    pub fn poll_write(&mut self, cx: &mut Context<'_>) {
        while self.poll_written(cx).is_ready()
            && self.gathered_bytes >= WRITE_BYTES
            && !self.is_broken
        {
            let pieces: Vec<Bytes> = self.gathered.drain(..).collect();
            self.gathered_bytes = 0;
            let file = self.files.as_ref().map(|files| files.written.clone());
            let (pool, copies, at) = (self.pool.clone(), pieces.clone(), self.written);
            let writing = async move {
                let written = pool.run(Work::File, move || write(file, &copies, at)).await;
                written.map_err(io::Error::other)?
            };
            self.writing = Some((Box::pin(writing), pieces));
        }
    }

    /// Waits for the end of a write.
    fn poll_written(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some((writing, _)) = &mut self.writing else { return Poll::Ready(()) };
        let Poll::Ready(outcome) = writing.as_mut().poll(cx) else { return Poll::Pending };
        let pieces = self.writing.take().map(|(_, pieces)| pieces).unwrap_or_default();
        let length: usize = pieces.iter().map(Bytes::len).sum();
        match outcome.and_then(|file| self.keep(file)) {
            Ok(()) => self.written += length as u64,
            Err(_) => {
                // It stays in memory.
                self.is_broken = true;
                self.gathered_bytes += length;
                pieces.into_iter().rev().for_each(|piece| self.gathered.push_front(piece));
            }
        }
        Poll::Ready(())
    }

    fn keep(&mut self, file: Arc<File>) -> io::Result<()> {
        if self.files.is_none() {
            let sent = Rc::new(file.try_clone()?);
            self.files = Some(Files { written: file, sent });
        }
        Ok(())
    }

    /// The next piece; `None` if there is none.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Chunk>> {
        loop {
            if let Some(files) = self.files.as_ref().filter(|_| self.given < self.written) {
                let (file, offset) = (files.sent.clone(), self.given);
                let length = (self.written - self.given).min(SEND_BYTES);
                self.given += length;
                return Poll::Ready(Some(Chunk::File(FileSlice { file, offset, length })));
            }
            if self.writing.is_none() {
                let piece = self.gathered.pop_front();
                self.gathered_bytes -= piece.as_ref().map_or(0, Bytes::len);
                return Poll::Ready(piece.map(Chunk::Bytes));
            }
            if self.poll_written(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

/// Writes pieces to the file, or to a new one, at an offset.
fn write(file: Option<Arc<File>>, pieces: &[Bytes], mut at: u64) -> io::Result<Arc<File>> {
    let file = match file {
        Some(file) => file,
        None => Arc::new(unnamed_file()?),
    };
    for piece in pieces {
        file.write_all_at(piece, at)?;
        at += piece.len() as u64;
    }
    Ok(file)
}

#[cfg(test)]
mod tests;
