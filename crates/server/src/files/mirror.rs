//! A mirror of the file system, kept true by the file watch.
//!
//! A request walks from the root to its file and stats each path on the way. The results are cached
//! as [`Fact`]s, one per path, for all loops of the process. Each depends on the directory above,
//! so a change to any directory or link on the way invalidates everything below. A request reads
//! facts after its loop has drained the watch ([`rt::Handle::drained`]), so the request after a
//! write sees the write.
//!
//! If the watch can't be trusted for a path (a network file system, a directory that the process
//! may not read, a file with several names, no watch at all), nothing is cached and every request
//! stats.

mod coded;
mod directory;
mod fact;
mod names;
mod shard;

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use hashbrown::DefaultHashBuilder;
use rt::Watcher;

use self::coded::MadeOfFiles;
use self::directory::Directory;
use self::fact::{Above, Stamp};
use self::names::Listings;
use self::shard::{Limits, Shard};
use super::path::{self, StatError};
use crate::files::{FileInfo, FileKind};

pub use self::coded::{CODED_BYTES_LIMIT, CodedContent, PARSED_BYTES_LIMIT, ParsedContent};
pub use self::fact::{Fact, Seen};
pub use self::names::LISTINGS_BYTES_LIMIT;

/// Most bytes of a process's facts, including their paths.
pub const FACTS_BYTES_LIMIT: usize = 32 * 1024 * 1024;
/// Most bytes of the file contents that a process caches.
pub const CONTENTS_BYTES_LIMIT: usize = 32 * 1024 * 1024;
/// Each limit for a process with one connection, of which a server can have hundreds.
pub const BYTES_LIMIT_OF_ONE: usize = 2 * 1024 * 1024;

/// The largest file whose content is cached, in bytes.
pub const CONTENT_BYTES_LIMIT: u64 = 32 * 1024;

/// The parts that are locked separately.
const SHARDS: usize = 64;
/// Most uncached directories on the way to a path. A client can name thousands below a missing one.
const UNKNOWN_MAX: usize = 64;
/// The longest path (PATH_MAX): the system's error for longer ones differs.
const PATH_BYTES_MAX: usize = 4095;

/// The facts of one process.
pub struct Files {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    facts_limit: AtomicUsize,
    contents_limit: AtomicUsize,
    coded: MadeOfFiles<CodedContent>,
    parsed: MadeOfFiles<ParsedContent>,
    listings: Listings,
}

impl Default for Files {
    fn default() -> Files {
        Files {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            facts_limit: AtomicUsize::new(FACTS_BYTES_LIMIT),
            contents_limit: AtomicUsize::new(CONTENTS_BYTES_LIMIT),
            coded: MadeOfFiles::new(CODED_BYTES_LIMIT),
            parsed: MadeOfFiles::new(PARSED_BYTES_LIMIT),
            listings: Listings::new(LISTINGS_BYTES_LIMIT),
        }
    }
}

impl Files {
    /// Sets the limits in bytes; `made` is that of coded contents, and of parsed ones. Call this
    /// before the process serves.
    pub fn limit(&self, facts: usize, contents: usize, made: usize) {
        self.facts_limit.store(facts, Ordering::Relaxed);
        self.contents_limit.store(contents, Ordering::Relaxed);
        self.coded.limit(made);
        self.parsed.limit(made);
    }

    /// The fact of `path`, which is absolute and without dot segments, as of the last drain. `None`
    /// if the watch can't be trusted for it.
    pub fn fact(&self, watcher: &Watcher, path: &[u8]) -> Option<Arc<Fact>> {
        self.fact_at(watcher, path, 0)
    }

    fn fact_at(&self, watcher: &Watcher, path: &[u8], unknown: usize) -> Option<Arc<Fact>> {
        let hash = self.hasher.hash_one(path);
        let known = self.shard(hash).fact(hash, path);
        match known {
            Some(fact) if fact.is_true(watcher) => Some(fact),
            known => self.make(watcher, path, hash, known, unknown),
        }
    }

    /// Whether `fact` is still true, as of the last drain.
    pub fn holds(&self, watcher: &Watcher, fact: &Arc<Fact>) -> bool {
        let is_it = |now: Arc<Fact>| Arc::ptr_eq(&now, fact);
        let is_known = || self.fact(watcher, &fact.path).is_some_and(is_it);
        fact.is_true(watcher) || is_known()
    }

    /// The content of a small regular file, with its metadata. `None` if the watch can't be trusted
    /// for it, or if it is not what its fact says.
    pub fn content(&self, watcher: &Watcher, path: &[u8]) -> Option<(FileInfo, Bytes)> {
        let hash = self.hasher.hash_one(path);
        let known = self.shard(hash).content(hash, path);
        let fact = match known {
            Some((fact, Some(content))) if fact.is_true(watcher) => {
                return Some((fact.stat().ok()?, content));
            }
            Some((fact, None)) if fact.is_true(watcher) => fact,
            known => self.make(watcher, path, hash, known.map(|(fact, _)| fact), 0)?,
        };
        let info = fact.stat().ok()?;
        if info.kind != FileKind::Regular || info.size > CONTENT_BYTES_LIMIT {
            return None;
        }
        let content = read(path, &info)?;
        self.shard(hash).keep_content(hash, &fact, &content, self.limits());
        Some((info, content))
    }

    /// The content of a fact's file in a coding, which is the caller's number for a function of the
    /// content alone.
    pub fn coded(&self, fact: &Arc<Fact>, coding: u64) -> Option<CodedContent> {
        self.coded.get(fact, coding)
    }

    /// Caches the content of a fact's file in a coding, if the fact is still true: call this after
    /// the content was read.
    pub fn keep_coded(
        &self,
        watcher: &Watcher,
        fact: Arc<Fact>,
        coding: u64,
        content: CodedContent,
    ) {
        watcher.drain();
        if self.holds(watcher, &fact) {
            self.coded.put(fact, coding, content);
        }
    }

    /// The parsed content of a fact's file; `parser` is the caller's number for its parser and
    /// everything besides the content that the result depends on.
    pub fn parsed(&self, fact: &Arc<Fact>, parser: u64) -> Option<ParsedContent> {
        self.parsed.get(fact, parser)
    }

    /// Caches the parsed content of a fact's file, as [`Files::keep_coded`] does.
    pub fn keep_parsed(
        &self,
        watcher: &Watcher,
        fact: Arc<Fact>,
        parser: u64,
        content: ParsedContent,
    ) {
        watcher.drain();
        if self.holds(watcher, &fact) {
            self.parsed.put(fact, parser, content);
        }
    }

    /// Creates a fact. `known` is the one that is no longer true.
    fn make(
        &self,
        watcher: &Watcher,
        path: &[u8],
        hash: u64,
        known: Option<Arc<Fact>>,
        unknown: usize,
    ) -> Option<Arc<Fact>> {
        if path.len() > PATH_BYTES_MAX || unknown > UNKNOWN_MAX {
            return None;
        }
        let stamp = watcher.stamp();
        let (above, name) = if path == b"/" {
            (None, &b""[..])
        } else {
            let (directory, name) = path::split(path)?;
            if path.ends_with(b"/") || matches!(name, b"." | b"..") {
                return None;
            }
            let parent = self.fact_at(watcher, directory, unknown + 1)?;
            match (&parent.directory, parent.stat()) {
                (Some(above), _) => (Some(above.clone()), name),
                // Nothing is below a missing name or a file.
                (None, Ok(_) | Err(StatError::Missing)) => {
                    return Some(Arc::new(Fact::below(path, parent, stamp)));
                }
                (None, Err(_)) => return None,
            }
        };
        if let Some(above) = &above
            && let Some(seen) = self.listings.lacks(above, watcher, name)
        {
            let above = Above::Directory(above.clone());
            return Some(Arc::new(Fact::missing(path, above, Some(seen), stamp)));
        }
        let known = known.and_then(|known| known.directory.clone());
        let fact = Arc::new(stat(watcher, path, above.as_ref().map(|above| (above, name)), known)?);
        if let (Some(above), Err(StatError::Missing)) = (&above, fact.entry) {
            self.listings.missed(above, watcher);
        }
        self.shard(hash).keep(hash, &fact, self.limits());
        Some(fact)
    }

    fn limits(&self) -> Limits {
        let share = |limit: &AtomicUsize| limit.load(Ordering::Relaxed) / SHARDS;
        Limits { facts: share(&self.facts_limit), contents: share(&self.contents_limit) }
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The tables use the lowest and the highest bits.
        let index = (hash >> 32) as usize % SHARDS;
        self.shards[index].lock().unwrap_or_else(|poisoned| {
            // A panic may have interrupted a change.
            let mut shard = poisoned.into_inner();
            *shard = Shard::default();
            self.shards[index].clear_poison();
            shard
        })
    }
}

/// Creates a fact in the order that makes it reliable: watch, read generations, stat. `place` is
/// the directory above and the name in it; `known` the directory that was at the path before.
fn stat(
    watcher: &Watcher,
    path: &[u8],
    place: Option<(&Arc<Directory>, &[u8])>,
    known: Option<Arc<Directory>>,
) -> Option<Fact> {
    let stamp = watcher.stamp();
    let above = place.map(|(above, _)| above);
    let name = match place {
        Some((above, name)) => Some(watcher.name_in(above.watch, name)?),
        None => None,
    };
    let entry = path::lstat(path);
    let is_symlink = entry.is_ok_and(|entry| entry.is_symlink);
    let mut fact = Fact {
        path: path.into(),
        above: above.map_or(Above::Nothing, |above| Above::Directory(above.clone())),
        name,
        way: if is_symlink { watch_way(watcher, path)? } else { Vec::new() },
        entry,
        target: is_symlink.then(|| path::stat(path)),
        directory: None,
        members: None,
        stamp: Stamp::new(stamp),
    };
    let found = fact.stat();
    if !found.is_ok_and(|info| info.kind == FileKind::Directory) {
        return is_watched_whole(&found).then_some(fact);
    }
    // Again, after its members are watched.
    let watch = watcher.watch(path::as_path(path))?;
    fact.members = Some(watcher.members_of(watch)?);
    if is_symlink {
        fact.target = Some(path::stat(path));
    } else {
        fact.entry = path::lstat(path);
    }
    let info = fact.stat().ok().filter(|info| is_same(info, &found))?;
    let is_it = |known: &Arc<Directory>| {
        known.watch == watch && known.is_in(above) && !is_symlink && known.is_true(watcher)
    };
    fact.directory = known.filter(is_it).or_else(|| {
        let way = is_symlink.then(|| fact.way.clone());
        let above = above.cloned();
        Some(Arc::new(Directory::new(path, above, (info, watch), name, way, stamp)))
    });
    Some(fact)
}

fn is_same(info: &FileInfo, before: &Result<FileInfo, StatError>) -> bool {
    let identity = |info: &FileInfo| (info.kind, info.device, info.inode);
    before.is_ok_and(|before| identity(&before) == identity(info))
}

/// Watches every name that a link leads through. `None` if one can't be watched, or changes
/// meanwhile.
fn watch_way(watcher: &Watcher, link: &[u8]) -> Option<Vec<Seen>> {
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

#[cfg(test)]
mod tests;
