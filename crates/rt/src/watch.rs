//! The file watch of a process: what was cached from the file system is valid while the
//! generations it was built from stand still.
//!
//! A directory entry is watched as a pair: "name X in directory D" moves only by events for X, or
//! by events that concern D as a whole, so that a log file written in D invalidates nobody. Who
//! caches a whole listing watches the directory, which every event in it moves.
//!
//! The order that makes a cache entry trustworthy: watch; read the generations; then stat, open and
//! read; keep the generations with the entry. Whoever uses it later drains ([`Watcher::drain`],
//! [`Handle::drained`]) and compares. Every component of the path needs its own pair, symbolic
//! links included: renaming a directory far up moves only the pair in its parent.
//!
//! What inotify can't see: writes through mmap, writes by another hard link in an unwatched
//! directory, a file system mounted over a directory.
//!
//! [`Handle::drained`]: crate::Handle::drained

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

use events::{Events, RECORD_BYTES_MAX};
use generations::Generations;
use table::Table;
pub(crate) use trust::is_watchable;

use crate::dir_notify::DirNotify;

/// Directories watched at most by default; the oldest go first. Linux allows a user some ten
/// thousand to a million, by memory.
const DIRECTORIES_DEFAULT: usize = 8192;
/// Bytes of events read at once.
const EVENT_BUFFER_BYTES: usize = 64 * 1024;
/// Reads of one drain at most: a whole queue of the usual length fits thrice. Beyond it, somebody
/// writes faster than events are applied, and everything counts as moved.
const READS_MAX: u32 = 256;

/// What tells a loop of changes in the file system.
#[derive(Clone, Copy)]
pub enum Witness<'h> {
    /// The watch of its process.
    Watcher(&'h Watcher),
    /// What its thread hears.
    DirNotify(&'h DirNotify),
    /// Nothing does: every use has to look.
    Nobody,
}

/// What a cached thing depends on: a directory, or a name in a directory. It keeps its meaning
/// until its generation moves; after that, ask for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchId(u32);

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
    /// user's instances are used up (128 by default), and everything has to be validated by stat.
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

    /// Watches a directory as a whole: every event in it, and of itself, moves the generation.
    ///
    /// `None` when its answers could not be trusted: network, overlay, FUSE and unknown file
    /// systems, not a directory, no permission, no watches left. Then every use has to stat.
    pub fn watch_dir(&self, path: &Path) -> Option<WatchId> {
        let mut state = self.lock();
        let directory = self.add(&mut state, path)?;
        self.finish(&mut state, |table| table.whole(directory))
    }

    /// Watches `name` in the directory `path`: the generation moves when the name is made,
    /// changed, removed or renamed, and by what concerns the directory itself. The name need not
    /// exist: so one waits for an `.htaccess`. `None`: as for [`watch_dir`](Self::watch_dir).
    pub fn watch_name(&self, path: &Path, name: &[u8]) -> Option<WatchId> {
        let mut state = self.lock();
        let directory = self.add(&mut state, path)?;
        self.finish(&mut state, |table| table.name(directory, name, &self.generations))
    }

    /// As [`watch_name`](Self::watch_name) for several names of one directory, appended to `ids`
    /// in the same order, at the price of one. False, and `ids` as it was, when not all can be.
    pub fn watch_names(&self, path: &Path, names: &[&[u8]], ids: &mut Vec<WatchId>) -> bool {
        let before = ids.len();
        let mut state = self.lock();
        let Some(directory) = self.add(&mut state, path) else { return false };
        for name in names {
            match self.finish(&mut state, |table| table.name(directory, name, &self.generations)) {
                Some(id) => ids.push(id),
                None => {
                    ids.truncate(before);
                    return false;
                }
            }
        }
        true
    }

    /// The generation of what `id` stands for, as of the last drain: one atomic load.
    #[inline]
    pub fn generation(&self, id: WatchId) -> u64 {
        self.generations.load(id.0)
    }

    /// A number that moves whenever any generation does: while it stands still, everything that
    /// was valid still is.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Acquire)
    }

    /// Applies all events that the kernel had queued before this call. One read(2), about 0.25 µs,
    /// when there are none.
    ///
    /// It ends however fast somebody writes into a watched directory: a read that left room in the
    /// buffer has emptied the queue, and what comes after it came after the call.
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

    /// One read: whether anything moved, and whether the queue may hold older events still.
    fn drain_once(&self, table: &mut Table, buffer: &mut [u8]) -> (bool, bool) {
        let count = match rustix::io::read(&self.fd, &mut *buffer) {
            Ok(count) => count,
            Err(Errno::AGAIN) => return (false, false),
            Err(Errno::INTR) => return (false, true),
            // An inotify descriptor has no other errors; should it have one, trust nothing.
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

    /// Directories and names that are watched now: for the status page and for tests.
    pub fn load(&self) -> (usize, usize) {
        self.lock().table.load()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        match self.state.lock() {
            Ok(state) => state,
            Err(poisoned) => {
                // Somebody panicked in the middle of a change: nothing cached is believed.
                self.generations.bump_all();
                self.stamp.fetch_add(1, Ordering::Release);
                PoisonError::into_inner(poisoned)
            }
        }
    }

    /// Adds the watch of a directory; the same inode always has the same descriptor.
    fn add(&self, state: &mut State, path: &Path) -> Option<i32> {
        if !is_watchable(path) {
            return None;
        }
        self.make_room(&mut state.table, false);
        let directory = match inotify::add_watch(&self.fd, path, EVENTS) {
            Err(Errno::NOSPC | Errno::NOMEM) => {
                self.make_room(&mut state.table, true);
                inotify::add_watch(&self.fd, path, EVENTS).ok()?
            }
            other => other.ok()?,
        };
        state.table.touch(directory);
        Some(directory)
    }

    /// Lets the oldest directories go when the limit is reached, or when the kernel's is.
    fn make_room(&self, table: &mut Table, needed: bool) {
        let mut moved = false;
        for directory in table.surplus(needed) {
            // Gone already when the directory was deleted.
            let _ = inotify::remove_watch(&self.fd, directory);
            moved |= table.forget(directory, &self.generations);
        }
        if moved {
            self.stamp.fetch_add(1, Ordering::Release);
        }
    }

    fn finish(
        &self,
        state: &mut State,
        place: impl Fn(&mut Table) -> Option<u32>,
    ) -> Option<WatchId> {
        let slot = place(&mut state.table).or_else(|| {
            self.make_room(&mut state.table, true);
            place(&mut state.table)
        })?;
        self.generations.ensure(slot);
        Some(WatchId(slot))
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
