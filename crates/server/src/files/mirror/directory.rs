//! A directory that facts depend on: its path leads to the same one.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rt::{DirWatch, WatchId, Watcher};

use super::fact::{Seen, Stamp};
use super::names::Names;
use crate::files::path::{self, Entry};
use crate::files::{FileInfo, FileKind};

/// A watched directory at a path. Unlike its fact it stays true when the directory's times, owner
/// or mode change.
pub(super) struct Directory {
    pub path: Box<[u8]>,
    above: Option<Arc<Directory>>,
    /// Device and inode.
    pub identity: (u64, u64),
    pub watch: DirWatch,
    /// Its name in the directory above, and the name's generation at the last check.
    name: Option<(WatchId, AtomicU64)>,
    /// If its path is a symbolic link, every name that the link leads through.
    way: Option<Vec<Seen>>,
    stamp: Stamp,
    /// The names in it.
    pub names: Names,
}

impl Directory {
    /// Returns the directory of a new fact. `way` is set if it is reached through a link.
    pub fn new(
        path: &[u8],
        above: Option<Arc<Directory>>,
        (info, watch): (FileInfo, DirWatch),
        name: Option<Seen>,
        way: Option<Vec<Seen>>,
        stamp: u64,
    ) -> Directory {
        Directory {
            path: path.into(),
            above,
            identity: (info.device, info.inode),
            watch,
            name: name.map(|(id, generation)| (id, AtomicU64::new(generation))),
            way,
            stamp: Stamp::new(stamp),
            names: Names::default(),
        }
    }

    /// Whether its path still leads to it, as of the last drain. After an event for its name it is
    /// checked again: usually it is the same one.
    pub fn is_true(&self, watcher: &Watcher) -> bool {
        self.stamp.is_true(watcher, || {
            let stands = |(id, seen): &Seen| watcher.generation(*id) == *seen;
            watcher.is_watched(self.watch)
                && self.above.as_ref().is_none_or(|above| above.is_true(watcher))
                && self.way.iter().flatten().all(stands)
                && (self.has_its_name(watcher) || self.is_there_again(watcher))
        })
    }

    fn has_its_name(&self, watcher: &Watcher) -> bool {
        let Some((id, seen)) = &self.name else { return true };
        watcher.generation(*id) == seen.load(Ordering::Acquire)
    }

    /// Stats its path. The watch is checked as well: if two directories changed places and back
    /// meanwhile, this could be the other one's.
    fn is_there_again(&self, watcher: &Watcher) -> bool {
        let Some((id, seen)) = &self.name else { return false };
        let generation = watcher.generation(*id);
        let is_same = self.way.is_none()
            && path::lstat(&self.path).is_ok_and(|entry| self.is_it(entry))
            && watcher.watch(path::as_path(&self.path)) == Some(self.watch);
        if is_same {
            seen.store(generation, Ordering::Release);
        }
        is_same
    }

    fn is_it(&self, Entry { info, is_symlink }: Entry) -> bool {
        let identity = (info.device, info.inode);
        info.kind == FileKind::Directory && !is_symlink && identity == self.identity
    }

    /// Adds everything that it depends on, with the generations at which it was true.
    pub fn add_dependencies(&self, all: &mut Vec<Seen>) {
        let name = self.name.as_ref();
        all.extend(name.map(|(id, seen)| (*id, seen.load(Ordering::Acquire))));
        all.extend(self.way.iter().flatten());
        all.push(self.watch.life());
        if let Some(above) = &self.above {
            above.add_dependencies(all);
        }
    }

    /// Whether it is `other`, or below it.
    pub fn is_or_is_below(&self, other: &Arc<Directory>) -> bool {
        let mut directory = Some(self);
        while let Some(this) = directory {
            if std::ptr::eq(this, Arc::as_ptr(other)) {
                return true;
            }
            directory = this.above.as_deref();
        }
        false
    }

    /// Whether it is in `above`.
    pub fn is_in(&self, above: Option<&Arc<Directory>>) -> bool {
        match (&self.above, above) {
            (Some(own), Some(above)) => Arc::ptr_eq(own, above),
            (None, None) => true,
            _ => false,
        }
    }

    /// The bytes of memory, without a listing of its names.
    pub fn bytes(&self) -> usize {
        let way = self.way.as_ref().map_or(0, |way| way.len() * size_of::<Seen>());
        size_of::<Directory>() + self.path.len() + way
    }
}
