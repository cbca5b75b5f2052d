//! The entry at a path, and its dependencies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::{WatchId, Watcher};

use super::directory::Directory;
use crate::files::FileInfo;
use crate::files::path::{Entry, StatError};

/// A name's counter in the watch, and its generation.
pub type Seen = (WatchId, u64);

/// The entry at a path. It is immutable; if it is no longer true, it is replaced.
pub struct Fact {
    pub(super) path: Box<[u8]>,
    pub(super) above: Above,
    /// Its name in the directory above; `None` if there is no such directory.
    pub(super) name: Option<Seen>,
    /// If it is a symbolic link, every name that the link leads through.
    pub(super) way: Vec<Seen>,
    pub(super) entry: Result<Entry, StatError>,
    /// If the entry is a symbolic link, its target.
    pub(super) target: Option<Result<FileInfo, StatError>>,
    /// If it is a directory, links followed.
    pub(super) directory: Option<Arc<Directory>>,
    /// If it is a directory, its members: its times and its size change with them.
    pub(super) members: Option<Seen>,
    pub(super) stamp: Stamp,
}

/// What a fact depends on.
pub(super) enum Above {
    /// Nothing, for the root.
    Nothing,
    /// The directory that it is in.
    Directory(Arc<Directory>),
    /// A fact above it that is missing or not a directory.
    NoDirectory(Arc<Fact>),
}

/// The watch's stamp when something was last found true: it holds as long as the stamp is
/// unchanged.
pub(super) struct Stamp(AtomicU64);

impl Stamp {
    pub fn new(stamp: u64) -> Stamp {
        Stamp(AtomicU64::new(stamp))
    }

    /// Whether it is still true; if the stamp has changed, `holds` decides.
    pub fn is_true(&self, watcher: &Watcher, holds: impl FnOnce() -> bool) -> bool {
        // Read before anything that `holds` reads, so that it never promises too much.
        let now = watcher.stamp();
        if self.0.load(Ordering::Acquire) == now {
            return true;
        }
        let holds = holds();
        if holds {
            self.0.store(now, Ordering::Release);
        }
        holds
    }
}

impl Fact {
    /// The fact of a path below one that is not a directory: it is missing.
    pub(super) fn below(path: &[u8], fact: Arc<Fact>, stamp: u64) -> Fact {
        let fact = match &fact.above {
            Above::NoDirectory(topmost) => topmost.clone(),
            Above::Nothing | Above::Directory(_) => fact,
        };
        Fact::missing(path, Above::NoDirectory(fact), None, stamp)
    }

    /// The fact of a missing path.
    pub(super) fn missing(path: &[u8], above: Above, name: Option<Seen>, stamp: u64) -> Fact {
        Fact {
            path: path.into(),
            above,
            name,
            way: Vec::new(),
            entry: Err(StatError::Missing),
            target: None,
            directory: None,
            members: None,
            stamp: Stamp::new(stamp),
        }
    }

    /// The result of [`stat`](crate::files::path::stat), which follows a link.
    pub fn stat(&self) -> Result<FileInfo, StatError> {
        match self.target {
            Some(target) => target,
            None => self.entry.map(|entry| entry.info),
        }
    }

    /// The result of [`lstat`](crate::files::path::lstat), which does not follow a link.
    pub fn lstat(&self) -> Result<Entry, StatError> {
        self.entry
    }

    /// Whether it is about this path.
    pub(crate) fn is_of(&self, path: &[u8]) -> bool {
        *self.path == *path
    }

    /// Whether `other` is above this one, so that this one depends on it.
    pub fn is_below(&self, other: &Arc<Fact>) -> bool {
        match &self.above {
            Above::Nothing => false,
            Above::Directory(above) => {
                other.directory.as_ref().is_some_and(|other| above.is_or_is_below(other))
            }
            Above::NoDirectory(fact) => Arc::ptr_eq(fact, other) || fact.is_below(other),
        }
    }

    /// Whether it is still true, as of the last drain. A directory above may be checked again.
    pub fn is_true(&self, watcher: &Watcher) -> bool {
        self.stamp.is_true(watcher, || {
            let stands = |(id, seen): &Seen| watcher.generation(*id) == *seen;
            let is_watched = |directory: &Arc<Directory>| watcher.is_watched(directory.watch);
            self.name.iter().chain(&self.members).chain(&self.way).all(stands)
                && self.directory.as_ref().is_none_or(is_watched)
                && match &self.above {
                    Above::Nothing => true,
                    Above::Directory(above) => above.is_true(watcher),
                    Above::NoDirectory(fact) => fact.is_true(watcher),
                }
        })
    }

    /// Adds everything that it depends on, with the generations at which it was true.
    pub(crate) fn add_dependencies(&self, all: &mut Vec<Seen>) {
        all.extend(self.name.iter().chain(&self.members).chain(&self.way));
        all.extend(self.directory.as_ref().map(|directory| directory.watch.life()));
        match &self.above {
            Above::Nothing => {}
            Above::Directory(above) => above.add_dependencies(all),
            Above::NoDirectory(fact) => fact.add_dependencies(all),
        }
    }

    /// The bytes of memory, including those of its directory.
    pub(super) fn bytes(&self) -> usize {
        let directory = self.directory.as_ref().map_or(0, |directory| directory.bytes());
        let way = self.way.len() * size_of::<Seen>();
        size_of::<Fact>() + self.path.len() + way + directory
    }
}
