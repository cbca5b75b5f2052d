//! The file watch: a fact cached from the file system is valid for as long as the
//! generations it was derived from do not change.
//!
//! A directory entry is watched as a pair: "name X in directory D" advances only by events for X,
//! or for D itself, so that a log file written in D invalidates little. Where facts depend on two
//! names that share a counter, it advances by the events of all names that share it. A cached
//! listing depends on the whole directory, which every event in it advances, or on its members,
//! which advance when a name appears or vanishes.
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
mod memory;
mod table;
mod trust;

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::buffer::spare_capacity;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use block::{Block, NameHash};
pub use block::{NAME_CLASSES, class_of};
use events::{Events, RECORD_BYTES_MAX};
use generations::{GENERATION_WORDS, Generations};
use memory::Guard;
pub use memory::Memory as SharedMemory;
use table::{TABLE_WORDS, Table};
use trust::is_watchable;

/// The default limit on watched directories; the least recently used are dropped first. Linux
/// allows each user between ten thousand and a million, depending on memory.
const DIRECTORIES_DEFAULT: usize = 8192;
/// Bytes of events read at once.
const EVENT_BUFFER_BYTES: usize = 64 * 1024;
/// Reads per drain at most: a whole queue of the usual length fits three times. Beyond it, events
/// arrive faster than they are applied, and everything is invalidated.
const READS_MAX: u32 = 256;

/// Words of the watch's memory before the table, two cache lines apart: see [`Watcher::word`].
const HEAD_WORDS: usize = 32;
const STAMP: usize = 0;
const DRAINING: usize = 16;

/// The source of file system changes for a loop.
#[derive(Clone, Copy)]
pub enum ChangeSource<'h> {
    /// The file watch.
    Watcher(&'h Watcher),
    /// None: every use must stat.
    None,
}

/// What a cached fact depends on: a directory, or a name in a directory. The id is valid until its
/// generation advances; then request a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WatchId(u32);

impl WatchId {
    /// The id with a number, of this process or of another one that shares the watch.
    pub const fn numbered(number: u32) -> WatchId {
        WatchId(number)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0
    }
}

/// A watched directory. Names in it are watched without a system call or a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirWatch {
    block: Block,
    life: u64,
}

impl DirWatch {
    /// The counter that advances when the directory is no longer watched, with its generation.
    pub fn life(self) -> (WatchId, u64) {
        (WatchId(self.block.life()), self.life)
    }
}

/// The watch of one process, shared by its loops, or of several: a process that is forked from the
/// one that made a watch shares it. Whichever is about to respond reads the events and advances the
/// generations for all, so that a user needs one inotify instance for all of them.
///
/// A process that dies amid a change invalidates everything, and the next one goes on.
pub struct Watcher {
    fd: OwnedFd,
    memory: SharedMemory,
    /// The limit on watched directories.
    limit: usize,
    /// Receives events; used under the memory's lock alone.
    events: Mutex<Vec<u8>>,
}

impl Watcher {
    /// A watch with the default limit. Errors: those of inotify_init1(2) and mmap(2); EMFILE means
    /// that the user's instances are exhausted (128 by default), and everything must be validated
    /// by stat.
    pub fn new() -> io::Result<Self> {
        Self::with_limit(DIRECTORIES_DEFAULT)
    }

    /// A watch of at most `directories` directories.
    pub fn with_limit(directories: usize) -> io::Result<Self> {
        Ok(Self {
            fd: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            memory: SharedMemory::new(HEAD_WORDS + TABLE_WORDS + GENERATION_WORDS)?,
            limit: directories.max(1),
            events: Mutex::default(),
        })
    }

    /// Watches a directory.
    ///
    /// `None` if its events can't be trusted: a network, FUSE or unknown file system, not
    /// a directory, no permission, or no watches left. Then every use must stat.
    pub fn watch(&self, path: &Path) -> Option<DirWatch> {
        self.watch_in(&self.lock(), path)
    }

    fn watch_in(&self, held: &Guard<'_>, path: &Path) -> Option<DirWatch> {
        let directory = match inotify::add_watch(&self.fd, path, EVENTS) {
            Err(Errno::NOSPC | Errno::NOMEM) => {
                self.make_room(held, true);
                inotify::add_watch(&self.fd, path, EVENTS).ok()?
            }
            other => other.ok()?,
        };
        // The same inode always has the same descriptor.
        let block = self.table(held).touch(directory).or_else(|| {
            let block = is_watchable(path).then(|| {
                self.make_room(held, false);
                self.table(held).add(directory)
            });
            if block.flatten().is_none() {
                let _ = inotify::remove_watch(&self.fd, directory);
            }
            block.flatten()
        })?;
        Some(DirWatch { block, life: self.generations().load(block.life()) })
    }

    /// The counter of `name` in a watched directory, and its generation, which advances when the
    /// name is created, changed, removed or renamed, and by events on the directory itself. The
    /// name need not exist, as for an `.htaccess`. `None` if the directory is no longer watched.
    pub fn name_in(&self, directory: DirWatch, name: &[u8]) -> Option<(WatchId, u64)> {
        let name = NameHash::of(name);
        let slot = directory.block.name(name);
        self.generations().depend_on_name(slot, name);
        self.generation_in(directory, slot)
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

    /// The generations of all names in a directory, by their class ([`class_of`]): a name that a
    /// listing made afterwards lacks is missing for as long as that of its class is unchanged.
    pub fn classes_of(&self, directory: DirWatch) -> Option<[u64; NAME_CLASSES]> {
        let mut all = [0; NAME_CLASSES];
        for (class, generation) in all.iter_mut().enumerate() {
            let slot = directory.block.class(class)?;
            self.generations().depend_on_name(slot, NameHash::ALL);
            *generation = self.generation_in(directory, slot)?.1;
        }
        Some(all)
    }

    fn depend_on(&self, directory: DirWatch, slot: u32) -> Option<(WatchId, u64)> {
        self.generations().depend_on(slot);
        self.generation_in(directory, slot)
    }

    /// The generation of a counter that a fact depends on.
    fn generation_in(&self, directory: DirWatch, slot: u32) -> Option<(WatchId, u64)> {
        let generation = self.generations().load(slot);
        self.is_watched(directory).then_some((WatchId(slot), generation))
    }

    /// Whether the directory is watched still. To be asked after a generation is read: both advance
    /// before the counters become another directory's.
    #[inline]
    pub fn is_watched(&self, directory: DirWatch) -> bool {
        self.generations().load(directory.block.life()) == directory.life
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
        let held = self.lock();
        let directory = self.watch_in(&held, path)?;
        self.name_in(directory, name)
    }

    /// The generation of `id` as of the last drain: one atomic load.
    #[inline]
    pub fn generation(&self, id: WatchId) -> u64 {
        self.generations().load(id.0)
    }

    /// A number that advances whenever any generation does: while it is unchanged, all cached facts
    /// stay valid.
    #[inline]
    pub fn stamp(&self) -> u64 {
        self.word(STAMP).load(Ordering::Acquire)
    }

    /// Applies all events that the kernel queued before this call. One ioctl(2), about 0.2 µs, if
    /// there are none.
    ///
    /// Terminates however fast events arrive: a read that leaves room in the buffer has emptied the
    /// queue, and later events follow the call.
    pub fn drain(&self) {
        // In this order: events that are no longer queued were read by a drain that was marked
        // before it read them, and is until they are applied.
        if self.has_no_events() && self.word(DRAINING).load(Ordering::SeqCst) == 0 {
            return;
        }
        let held = self.lock();
        // The drain that this one waited for may have read everything, and has applied it.
        if !self.has_no_events() {
            self.word(DRAINING).store(1, Ordering::SeqCst);
            self.drain_queue(&held);
        }
        // Also after a process that died while it drained.
        self.word(DRAINING).store(0, Ordering::SeqCst);
    }

    fn has_no_events(&self) -> bool {
        matches!(rustix::io::ioctl_fionread(&self.fd), Ok(0))
    }

    fn drain_queue(&self, held: &Guard<'_>) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut moved = false;
        for _ in 0..READS_MAX {
            let (all, more) = self.drain_once(held, &mut events);
            moved |= all;
            if !more {
                return self.moved(moved);
            }
        }
        self.bump_all(held);
    }

    /// Reads once; returns whether anything advanced, and whether older events may remain queued.
    fn drain_once(&self, held: &Guard<'_>, buffer: &mut Vec<u8>) -> (bool, bool) {
        buffer.clear();
        buffer.reserve_exact(EVENT_BUFFER_BYTES);
        let count = match rustix::io::read(&self.fd, spare_capacity(buffer)) {
            Ok(count) => count,
            Err(Errno::AGAIN) => return (false, false),
            Err(Errno::INTR) => return (false, true),
            // No other error is documented for an inotify descriptor; if there is one, trust
            // nothing.
            Err(_) => {
                self.bump_all(held);
                return (true, false);
            }
        };
        let mut moved = false;
        for event in Events(buffer) {
            if event.kinds.contains(ReadFlags::QUEUE_OVERFLOW) {
                self.bump_all(held);
                moved = true;
            } else {
                moved |= self.table(held).apply(
                    event.directory,
                    event.kinds,
                    event.name,
                    self.generations(),
                );
            }
        }
        (moved, count + RECORD_BYTES_MAX > EVENT_BUFFER_BYTES)
    }

    fn bump_all(&self, held: &Guard<'_>) {
        self.generations().bump_all(self.table(held).blocks());
        self.moved(true);
    }

    fn moved(&self, moved: bool) {
        if moved {
            self.word(STAMP).fetch_add(1, Ordering::Release);
        }
    }

    /// The number of watched directories.
    pub fn directories(&self) -> usize {
        self.table(&self.lock()).directories()
    }

    fn lock(&self) -> Guard<'_> {
        let (held, is_broken) = self.memory.lock();
        if is_broken {
            // A change was interrupted: start over.
            for directory in self.table(&held).reset(self.generations()) {
                let _ = inotify::remove_watch(&self.fd, directory);
            }
            self.moved(true);
        }
        held
    }

    /// Drops the least recently used directories if the limit, or the kernel's, is reached.
    fn make_room(&self, held: &Guard<'_>, needed: bool) {
        let table = self.table(held);
        let mut moved = false;
        for directory in table.surplus(needed) {
            // The watch is gone already if the directory was deleted.
            let _ = inotify::remove_watch(&self.fd, directory);
            moved |= table.forget(directory, self.generations());
        }
        self.moved(moved);
    }

    /// The table, for the holder of the lock.
    fn table<'m>(&'m self, _: &'m Guard<'_>) -> Table<'m> {
        let words = self.memory.words().get(HEAD_WORDS..HEAD_WORDS + TABLE_WORDS);
        Table::new(words.unwrap_or_default(), self.limit)
    }

    #[inline]
    fn generations(&self) -> Generations<'_> {
        Generations::new(self.memory.words().get(HEAD_WORDS + TABLE_WORDS..).unwrap_or_default())
    }

    /// A word of the head.
    #[inline]
    fn word(&self, index: usize) -> &AtomicU64 {
        &self.memory.words()[index]
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

#[cfg(test)]
mod tests;
