//! A mirror of the file system, kept true by the file watch.
//!
//! A request walks from the root to its file and stats each path on the way. The results are cached
//! as [`Fact`]s, one per path. Each depends on the fact of the directory above it, so a change to
//! any directory or link on the way invalidates everything below. A request reads facts after its
//! loop has drained the watch ([`rt::Handle::drained`]), so the request after a write sees the
//! write.
//!
//! If the watch can't be trusted for a path (a network file system, a directory that the process
//! may not read, a file with several names, no watch at all), nothing is cached and every request
//! stats.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use hashbrown::HashMap;
use rt::{DirWatch, WatchId, Watcher};

use crate::files::contents::Contents;
use crate::files::path::{self, Entry, StatError};
use crate::request::{FileInfo, FileKind};

/// The most bytes of a loop's mirror: names, facts and contents.
pub const FACTS_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The most for a thread with one connection, of which a server can have hundreds.
pub const FACTS_BYTES_LIMIT_OF_THREAD: usize = 2 * 1024 * 1024;

/// The largest file whose content is cached, in bytes.
pub const CONTENT_BYTES_LIMIT: u64 = 32 * 1024;

/// The facts of one loop.
pub struct Files {
    known: RefCell<Known>,
    /// The root directory, above every other fact.
    root: Rc<Fact>,
}

/// Facts by path, in two generations. When the young one reaches half the limit it becomes the old
/// one; a use moves a fact back. So paths that are used once do not evict those used often.
#[derive(Default)]
struct Known {
    young: HashMap<Box<[u8]>, Rc<Fact>>,
    old: HashMap<Box<[u8]>, Rc<Fact>>,
    /// Bytes of the young generation.
    bytes: usize,
    limit: usize,
}

/// What stands at a path.
pub struct Fact {
    above: Option<Rc<Fact>>,
    /// Its name in the directory above; `None` if there is no such directory.
    name: Cell<Option<(WatchId, u64)>>,
    /// If it is a symbolic link, every name that the link leads through.
    way: Vec<(WatchId, u64)>,
    /// The watcher's stamp when the fact was last verified: while it is unchanged, so is the fact.
    stamp: Cell<u64>,
    entry: Cell<Result<Entry, StatError>>,
    /// If the entry is a symbolic link, its target.
    target: Option<Result<FileInfo, StatError>>,
    /// If it is a directory, its watch.
    directory: Cell<Option<DirWatch>>,
    /// If it is a directory, its members: its times and its size change with them.
    members: Cell<Option<(WatchId, u64)>>,
    content: OnceCell<Bytes>,
}

impl Fact {
    /// The result of [`path::stat`], which follows a link.
    pub fn stat(&self) -> Result<FileInfo, StatError> {
        match self.target {
            Some(target) => target,
            None => self.entry.get().map(|entry| entry.info),
        }
    }

    /// The result of [`path::lstat`], which does not follow a link.
    pub fn lstat(&self) -> Result<Entry, StatError> {
        self.entry.get()
    }

    fn is_true(&self, watcher: &Watcher) -> bool {
        let now = watcher.stamp();
        if self.stamp.get() == now {
            return true;
        }
        let stands = |(id, seen): &(WatchId, u64)| watcher.generation(*id) == *seen;
        let (name, members) = (self.name.get(), self.members.get());
        let holds = name.iter().chain(&members).chain(&self.way).all(stands)
            && self.above.as_ref().is_none_or(|above| above.is_true(watcher));
        if holds {
            self.stamp.set(now);
        }
        holds
    }

    /// Whether a fact that failed verification is valid after another stat of the directories above
    /// it, or of the directory itself.
    fn holds_again(&self, watcher: &Watcher, path: &[u8]) -> bool {
        let (Some(above), Some((directory, _))) = (&self.above, path::split(path)) else {
            return false;
        };
        (above.is_true(watcher) || above.holds_again(watcher, directory))
            && (self.is_true(watcher) || self.is_same_directory(watcher, path))
    }

    /// Stats a directory again after an event for its name or for a member. Most often it is the
    /// same one still, so that the facts below it stay valid. False if it is another, or none.
    fn is_same_directory(&self, watcher: &Watcher, path: &[u8]) -> bool {
        let identity = |entry: Entry| {
            let Entry { info, is_symlink } = entry;
            (info.kind == FileKind::Directory && !is_symlink).then_some((info.device, info.inode))
        };
        let (Some(above), Ok(before)) = (&self.above, self.entry.get()) else { return false };
        let Some(before) = identity(before).filter(|_| above.is_true(watcher)) else {
            return false;
        };
        let stamp = watcher.stamp();
        let Some((directory, name)) = path::split(path) else { return false };
        let Some(generation) = above.watch_name(watcher, directory, name) else { return false };
        let Some(members) = self.watch_members(watcher, path) else { return false };
        let entry = path::lstat(path);
        let same = entry.is_ok_and(|entry| identity(entry) == Some(before));
        if same {
            self.name.set(Some(generation));
            self.members.set(Some(members));
            self.entry.set(entry);
            self.stamp.set(stamp);
        }
        same
    }

    /// The counter of a name in this directory, with its generation.
    fn watch_name(&self, watcher: &Watcher, path: &[u8], name: &[u8]) -> Option<(WatchId, u64)> {
        self.watch(watcher, path, |directory| watcher.name_in(directory, name))
    }

    /// The counter of this directory's members, with its generation.
    fn watch_members(&self, watcher: &Watcher, path: &[u8]) -> Option<(WatchId, u64)> {
        self.watch(watcher, path, |directory| watcher.members_of(directory))
    }

    fn watch(
        &self,
        watcher: &Watcher,
        path: &[u8],
        counter: impl Fn(DirWatch) -> Option<(WatchId, u64)>,
    ) -> Option<(WatchId, u64)> {
        self.directory.get().and_then(&counter).or_else(|| {
            let directory = watcher.watch(path::as_path(path))?;
            self.directory.set(Some(directory));
            counter(directory)
        })
    }

    /// The fact of a directory once more, stat'ed after its members are watched.
    fn with_members(mut self, watcher: &Watcher, path: &[u8]) -> Option<Fact> {
        self.members.set(Some(self.watch_members(watcher, path)?));
        match &mut self.target {
            Some(target) => *target = path::stat(path),
            None => self.entry.set(path::lstat(path)),
        }
        let is_directory = |info: FileInfo| info.kind == FileKind::Directory;
        self.stat().is_ok_and(is_directory).then_some(self)
    }

    fn bytes(&self, path: &[u8]) -> usize {
        let way = self.way.len() * size_of::<(WatchId, u64)>();
        path.len() + size_of::<Fact>() + way + self.content.get().map_or(0, Bytes::len)
    }
}

impl Files {
    /// An empty mirror of at most `limit` bytes.
    pub fn new(limit: usize) -> Files {
        let root = Fact {
            above: None,
            name: Cell::new(None),
            way: Vec::new(),
            stamp: Cell::new(0),
            entry: Cell::new(Ok(Entry {
                info: FileInfo { kind: FileKind::Directory, ..FileInfo::default() },
                is_symlink: false,
            })),
            target: None,
            directory: Cell::new(None),
            members: Cell::new(None),
            content: OnceCell::new(),
        };
        Files { known: RefCell::new(Known { limit, ..Known::default() }), root: Rc::new(root) }
    }

    /// The fact of `path`, which is absolute and without dot segments, as of the last drain. `None`
    /// if the watch can't be trusted for it.
    pub fn fact(&self, watcher: &Watcher, path: &[u8]) -> Option<Rc<Fact>> {
        let known = self.known.borrow_mut().get(path);
        if let Some(fact) = known
            && (fact.is_true(watcher) || fact.holds_again(watcher, path))
        {
            return Some(fact);
        }
        let fact = Rc::new(self.make(watcher, path)?);
        self.known.borrow_mut().insert(path, fact.clone());
        Some(fact)
    }

    /// The content of a small regular file, with its metadata. `None` if it can't be cached.
    pub fn content(
        &self,
        watcher: &Watcher,
        path: &[u8],
        contents: &Contents,
    ) -> Option<(FileInfo, Bytes)> {
        let fact = self.fact(watcher, path)?;
        let info = fact.stat().ok()?;
        if let Some(content) = fact.content.get() {
            return Some((info, content.clone()));
        }
        if info.kind != FileKind::Regular || info.size > CONTENT_BYTES_LIMIT {
            return None;
        }
        let content = contents.share(read(path, &info)?);
        let content = fact.content.get_or_init(|| content).clone();
        self.known.borrow_mut().grow(content.len());
        Some((info, content))
    }

    /// Makes a fact, in the order that makes it trustworthy: watch, read generations, stat.
    fn make(&self, watcher: &Watcher, path: &[u8]) -> Option<Fact> {
        let (directory, name) = path::split(path)?;
        if path.ends_with(b"/") || matches!(name, b"." | b"..") {
            return None;
        }
        let stamp = watcher.stamp();
        let above = match directory {
            b"/" => self.root.clone(),
            _ => self.fact(watcher, directory)?,
        };
        let fact = |name, way, entry, target| Fact {
            above: Some(above.clone()),
            name: Cell::new(name),
            way,
            stamp: Cell::new(stamp),
            entry: Cell::new(entry),
            target,
            directory: Cell::new(None),
            members: Cell::new(None),
            content: OnceCell::new(),
        };
        match above.stat() {
            Ok(info) if info.kind == FileKind::Directory => {}
            // Nothing is below a missing name or a file.
            Ok(_) | Err(StatError::Missing) => {
                return Some(fact(None, Vec::new(), Err(StatError::Missing), None));
            }
            Err(_) => return None,
        }
        let name = above.watch_name(watcher, directory, name)?;
        let entry = path::lstat(path);
        let fact = if entry.is_ok_and(|entry| entry.is_symlink) {
            let way = watch_way(watcher, path)?;
            fact(Some(name), way, entry, Some(path::stat(path)))
        } else {
            fact(Some(name), Vec::new(), entry, None)
        };
        match fact.stat() {
            Ok(info) if info.kind == FileKind::Directory => fact.with_members(watcher, path),
            found => is_watched_whole(&found).then_some(fact),
        }
    }
}

/// Watches every name that a link leads through. `None` if one can't be watched, or changes
/// meanwhile.
fn watch_way(watcher: &Watcher, link: &[u8]) -> Option<Vec<(WatchId, u64)>> {
    let trace = || {
        let mut paths = Vec::new();
        path::trace(link, &mut paths);
        paths
    };
    let paths = trace();
    let watch = |path: &Vec<u8>| {
        let (directory, name) = path::split(path)?;
        watcher.name_in(watcher.watch(path::as_path(directory))?, name)
    };
    let way: Option<Vec<_>> = paths.iter().skip(1).map(watch).collect();
    if trace() == paths { way } else { None }
}

/// Whether the watch reports every change: one through another hard link is not reported.
fn is_watched_whole(found: &Result<FileInfo, StatError>) -> bool {
    match found {
        Ok(info) => info.kind != FileKind::Regular || info.links <= 1,
        Err(StatError::Missing | StatError::SymlinkForbidden) => true,
        Err(StatError::Denied | StatError::Other) => false,
    }
}

/// Reads a file whose metadata is still `info`.
fn read(path: &[u8], info: &FileInfo) -> Option<Bytes> {
    use std::os::unix::fs::FileExt;
    let (file, stat) = regular::open_with_stat(path::as_path(path)).ok()?;
    if path::info(&stat) != *info {
        return None;
    }
    let mut bytes = vec![0; usize::try_from(info.size).ok()?];
    file.read_exact_at(&mut bytes, 0).ok()?;
    Some(bytes.into())
}

impl Known {
    fn get(&mut self, path: &[u8]) -> Option<Rc<Fact>> {
        if let Some(fact) = self.young.get(path) {
            return Some(fact.clone());
        }
        let (path, fact) = self.old.remove_entry(path)?;
        self.grow(fact.bytes(&path));
        self.young.insert(path, fact.clone());
        Some(fact)
    }

    fn insert(&mut self, path: &[u8], fact: Rc<Fact>) {
        self.grow(fact.bytes(path));
        self.young.insert(path.into(), fact);
    }

    fn grow(&mut self, bytes: usize) {
        if self.bytes + bytes > self.limit / 2 {
            self.old = std::mem::take(&mut self.young);
            self.bytes = 0;
        }
        self.bytes += bytes;
    }
}

#[cfg(test)]
mod tests;
