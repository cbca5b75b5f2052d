//! The file watch of a process: a fact cached from the file system is valid for as long as the
//! generations it was derived from do not change.
//!
//! A directory entry is watched as a pair: "name X in directory D" advances only by events for X
//! and the few names that share its counter, or by events for D itself, so that a log file written
//! in D invalidates little. A cached listing depends on the whole directory, which every event in
//! it advances, or on its members, which advance when a name appears or vanishes.
//!
//! A cache entry is trustworthy if it is made in this order: watch; read the generations; stat,
//! open and read; store the generations with the entry. A later use drains ([`Watcher::drain`],
//! [`Handle::drained`]) and compares. Every component of the path needs its own pair, symbolic
//! links included: renaming a directory far up advances only the pair in its parent.
//!
//! inotify does not report writes through mmap, writes through another hard link in an unwatched
//! directory, and a file system mounted over a directory.
//!
//! [`Handle::drained`]: crate::Handle::drained

mod block;
mod events;
mod generations;
mod table;
mod trust;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use block::Block;
use events::{Events, RECORD_BYTES_MAX};
use generations::Generations;
use table::Table;
pub(crate) use trust::is_watchable;

use crate::dir_notify::DirNotify;

/// The default limit on watched directories; the least recently used are dropped first. Linux
/// allows each user between ten thousand and a million, depending on memory.
const DIRECTORIES_DEFAULT: usize = 8192;
/// Bytes of events read at once.
const EVENT_BUFFER_BYTES: usize = 64 * 1024;
/// Reads per drain at most: a whole queue of the usual length fits three times. Beyond it, events
/// arrive faster than they are applied, and everything is invalidated.
const READS_MAX: u32 = 256;

/// The source of file system changes for a loop.
#[derive(Clone, Copy)]
pub enum Witness<'h> {
    /// The watch of the process.
    Watcher(&'h Watcher),
    /// The directories that the thread watches by itself.
    DirNotify(&'h DirNotify),
    /// None: every use must stat.
    Nobody,
}

/// What a cached fact depends on: a directory, or a name in a directory. The id is valid until its
/// generation advances; then request a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchId(u32);

/// A watched directory. Names in it are watched without a system call or a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirWatch {
    block: Block,
    life: u64,
}

/// The watch of one process, shared by its loops.
pub struct Watcher {
    fd: OwnedFd,
    generations: Generations,
    stamp: AtomicU64,
    state: Mutex<State>,
}

struct State {
    table: Table,
    events: Box<[u8]>,
}

impl Watcher {
    /// A watch with the default limit. Errors: those of inotify_init1(2); EMFILE means that the
    /// user's instances are exhausted (128 by default), and everything must be validated by stat.
    pub fn new() -> io::Result<Self> {
        Self::with_limit(DIRECTORIES_DEFAULT)
    }

    /// A watch of at most `directories` directories.
    pub fn with_limit(directories: usize) -> io::Result<Self> {
        let fd = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let events = vec![0; EVENT_BUFFER_BYTES].into_boxed_slice();
        Ok(Self {
            fd,
            generations: Generations::new(),
            stamp: AtomicU64::new(0),
            state: Mutex::new(State { table: Table::new(directories.max(1)), events }),
        })
    }

    /// Watches a directory.
    ///
    /// `None` if its events can't be trusted: a network, overlay, FUSE or unknown file system, not
    /// a directory, no permission, or no watches left. Then every use must stat.
    pub fn watch(&self, path: &Path) -> Option<DirWatch> {
        self.watch_in(&mut self.lock(), path)
    }

    fn watch_in(&self, state: &mut State, path: &Path) -> Option<DirWatch> {
        if !is_watchable(path) {
            return None;
        }
        self.make_room(&mut state.table, false);
        let directory = match inotify::add_watch(&self.fd, path, EVENTS) {
            Err(Errno::NOSPC | Errno::NOMEM) => {
                self.make_room(&mut state.table, true);
                inotify::add_watch(&self.fd, path, EVENTS).ok()?
            }
            // The same inode always has the same descriptor.
            other => other.ok()?,
        };
        let block = state.table.touch(directory)?;
        self.generations.ensure(block);
        Some(DirWatch { block, life: self.generations.load(block.life()) })
    }

    /// The counter of `name` in a watched directory, and its generation, which advances when the
    /// name is created, changed, removed or renamed, and by events on the directory itself. The
    /// name need not exist, as for an `.htaccess`. `None` if the directory is no longer watched.
    pub fn name_in(&self, directory: DirWatch, name: &[u8]) -> Option<(WatchId, u64)> {
        self.depend_on(directory, directory.block.name(name))
    }

    /// The counter of a whole directory: every event in it and on it advances the generation.
    pub fn whole_of(&self, directory: DirWatch) -> Option<(WatchId, u64)> {
        self.depend_on(directory, directory.block.whole())
    }

    /// The counter of a directory's members: it advances when a name appears or vanishes, and by
    /// events on the directory itself.
    pub fn members_of(&self, directory: DirWatch) -> Option<(WatchId, u64)> {
        self.depend_on(directory, directory.block.members())
    }

    fn depend_on(&self, directory: DirWatch, slot: u32) -> Option<(WatchId, u64)> {
        self.generations.depend_on(slot);
        let generation = self.generations.load(slot);
        // Read after the generation: both advance before the block becomes another directory's.
        let lives = self.generations.load(directory.block.life()) == directory.life;
        lives.then_some((WatchId(slot), generation))
    }

    /// [`watch`](Self::watch) and [`whole_of`](Self::whole_of).
    pub fn watch_dir(&self, path: &Path) -> Option<WatchId> {
        Some(self.whole_of(self.watch(path)?)?.0)
    }

    /// [`watch`](Self::watch) and [`name_in`](Self::name_in).
    pub fn watch_name(&self, path: &Path, name: &[u8]) -> Option<WatchId> {
        Some(self.name_in(self.watch(path)?, name)?.0)
    }

    /// The counter of a name with its generation, both read while no drain is under way: a fact
    /// that is verified by the [`stamp`](Self::stamp) afterwards is no older than the generation.
    pub fn watch_name_now(&self, path: &Path, name: &[u8]) -> Option<(WatchId, u64)> {
        let mut state = self.lock();
        let directory = self.watch_in(&mut state, path)?;
        self.name_in(directory, name)
    }

    /// The generation of `id` as of the last drain: one atomic load.
    #[inline]
    pub fn generation(&self, id: WatchId) -> u64 {
        self.generations.load(id.0)
    }

    /// A number that advances whenever any generation does: while it is unchanged, all cached facts
    /// stay valid.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Acquire)
    }

    /// Applies all events that the kernel queued before this call. One read(2), about 0.25 µs, if
    /// there are none.
    ///
    /// Terminates however fast events arrive: a read that leaves room in the buffer has emptied the
    /// queue, and later events follow the call.
    pub fn drain(&self) {
        let mut state = self.lock();
        let State { table, events } = &mut *state;
        let mut moved = false;
        for _ in 0..READS_MAX {
            let (all, more) = self.drain_once(table, events);
            moved |= all;
            if !more {
                return self.moved(moved);
            }
        }
        self.generations.bump_all();
        self.moved(true);
    }

    /// Reads once; returns whether anything advanced, and whether older events may remain queued.
    fn drain_once(&self, table: &mut Table, buffer: &mut [u8]) -> (bool, bool) {
        let count = match rustix::io::read(&self.fd, &mut *buffer) {
            Ok(count) => count,
            Err(Errno::AGAIN) => return (false, false),
            Err(Errno::INTR) => return (false, true),
            // No other error is documented for an inotify descriptor; if there is one, trust
            // nothing.
            Err(_) => {
                self.generations.bump_all();
                return (true, false);
            }
        };
        let mut moved = false;
        for event in Events(buffer.get(..count).unwrap_or_default()) {
            if event.kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.generations.bump_all();
                moved = true;
            } else {
                moved |= table.apply(event.directory, event.kinds, event.name, &self.generations);
            }
        }
        (moved, count + RECORD_BYTES_MAX > buffer.len())
    }

    fn moved(&self, moved: bool) {
        if moved {
            self.stamp.fetch_add(1, Ordering::Release);
        }
    }

    /// The number of watched directories.
    pub fn directories(&self) -> usize {
        self.lock().table.directories()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => {
                // A panic may have interrupted a change: invalidate everything.
                self.generations.bump_all();
                self.stamp.fetch_add(1, Ordering::Release);
                PoisonError::into_inner(poisoned)
            }
        }
    }

    /// Drops the least recently used directories if the limit, or the kernel's, is reached.
    fn make_room(&self, table: &mut Table, needed: bool) {
        let mut moved = false;
        for directory in table.surplus(needed) {
            // The watch is gone already if the directory was deleted.
            let _ = inotify::remove_watch(&self.fd, directory);
            moved |= table.forget(directory, &self.generations);
        }
        if moved {
            self.stamp.fetch_add(1, Ordering::Release);
        }
    }
}

const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::ONLYDIR);
