//! Whether results from the file system are still valid: by the mirror ([`crate::files::mirror`]),
//! or by stat for each request if there is no watch.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use regular::looks;
use rt::ChangeSource;
use rustix::io::Errno;

use crate::files::mirror::{Fact, Files, Seen};
use crate::files::path;
use crate::files::{FileInfo, FileKind};

/// A file that changed more recently (in µs) may change again without a different time stamp, since
/// those are as coarse as the kernel's clock: it is not relied upon.
const SETTLED_US: u64 = 1_000_000;

/// The paths that a request has examined.
#[derive(Clone, Default)]
pub struct Trace {
    /// Facts of the mirror.
    pub(crate) facts: Vec<Arc<Fact>>,
    /// Paths that the mirror has no fact of.
    pub paths: Vec<Vec<u8>>,
    /// Whether the presence of a symbolic link mattered somewhere.
    pub links_matter: bool,
}

impl Trace {
    /// Adds the paths of another request.
    pub fn extend(&mut self, more: Trace) {
        self.facts.extend(more.facts);
        self.paths.extend(more.paths);
        self.links_matter |= more.links_matter;
    }
}

/// Paths, and how their validity is checked.
pub enum Validity {
    /// By the mirror's facts.
    Mirrored {
        /// Facts of directories above the others are left out: those depend on them.
        facts: Vec<Arc<Fact>>,
        /// The watcher's stamp when they were last true: while it is the same, they are.
        stamp: Cell<u64>,
    },
    /// By generations of the watch, which another process or thread has read.
    Shared {
        /// What it depends on.
        dependencies: Box<[Seen]>,
        /// As above.
        stamp: Cell<u64>,
    },
    /// By stat.
    Stat {
        /// The results for each path.
        snapshots: Vec<StatSnapshot>,
    },
}

impl Validity {
    /// The facts that a request used. `None` if the mirror had none for some path.
    pub fn from_facts(mut trace: Trace) -> Option<Validity> {
        if !trace.paths.is_empty() {
            return None;
        }
        let facts = &mut trace.facts;
        let mut at = 0;
        while let Some(fact) = facts.get(at) {
            let is_covered = |(index, other): (usize, &Arc<Fact>)| {
                other.is_below(fact) || (index < at && Arc::ptr_eq(other, fact))
            };
            if facts.iter().enumerate().any(is_covered) {
                facts.swap_remove(at);
            } else {
                at += 1;
            }
        }
        Some(Validity::Mirrored { facts: trace.facts, stamp: Cell::new(u64::MAX) })
    }

    /// The validity of a response that another process or thread has made.
    pub fn from_dependencies(dependencies: Box<[Seen]>) -> Validity {
        Validity::Shared { dependencies, stamp: Cell::new(u64::MAX) }
    }

    /// Everything that it depends on, for other processes and threads. `None` if that can't be
    /// expressed in generations of the watch.
    pub fn dependencies(&self) -> Option<Vec<Seen>> {
        let Validity::Mirrored { facts, .. } = self else { return None };
        let mut all = Vec::new();
        facts.iter().for_each(|fact| fact.add_dependencies(&mut all));
        all.sort_unstable_by_key(|(id, generation)| (id.number(), *generation));
        all.dedup();
        Some(all)
    }

    /// The validity of `paths`, if there is no mirror.
    pub fn from_paths(change_source: ChangeSource<'_>, paths: &[Vec<u8>]) -> Option<Validity> {
        match change_source {
            ChangeSource::Watcher(_) => None,
            ChangeSource::None => Validity::from_stats(paths),
        }
    }

    fn from_stats(paths: &[Vec<u8>]) -> Option<Validity> {
        let snapshots: Option<Vec<StatSnapshot>> =
            paths.iter().map(|path| StatSnapshot::at(path)).collect();
        Some(Validity::Stat { snapshots: snapshots? })
    }

    /// Whether nothing has changed: in the mirror, as of the last drain.
    pub fn is_fresh(&self, files: &Files, change_source: ChangeSource<'_>) -> bool {
        match (self, change_source) {
            (Validity::Mirrored { facts, stamp }, ChangeSource::Watcher(watcher)) => {
                let now = watcher.stamp();
                if now == stamp.get() {
                    return true;
                }
                let fresh = facts.iter().all(|fact| files.holds(watcher, fact));
                if fresh {
                    stamp.set(now);
                }
                fresh
            }
            (Validity::Shared { dependencies, stamp }, ChangeSource::Watcher(watcher)) => {
                let now = watcher.stamp();
                let stands = |(id, seen): &Seen| watcher.generation(*id) == *seen;
                let fresh = now == stamp.get() || dependencies.iter().all(stands);
                if fresh {
                    stamp.set(now);
                }
                fresh
            }
            (Validity::Stat { snapshots }, ChangeSource::None) => {
                snapshots.iter().all(StatSnapshot::is_unchanged)
            }
            _ => false,
        }
    }

    /// Whether it can be relied upon from now on; `now_us` is the time since the epoch.
    pub fn is_settled(&self, now_us: u64) -> bool {
        match self {
            Validity::Mirrored { .. } | Validity::Shared { .. } => true,
            Validity::Stat { snapshots } => {
                snapshots.iter().all(|snapshot| snapshot.is_settled(now_us))
            }
        }
    }

    /// Removes paths that `file`, which is one of them, covers: it is reached through the
    /// directories above it, and its stat would differ if one of them were replaced.
    pub fn narrow_to(&mut self, file: &[u8], links_matter: bool) {
        let Validity::Stat { snapshots } = self else { return };
        if links_matter || !snapshots.iter().any(|snapshot| snapshot.path.to_bytes() == file) {
            return;
        }
        snapshots.retain(|snapshot| !is_above(snapshot.path.to_bytes(), file));
        for snapshot in snapshots {
            // For anything but a link, both stats are the same.
            snapshot.entry = snapshot.target.take().unwrap_or(snapshot.entry);
            snapshot.follows = true;
        }
    }

    /// The bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Validity::Mirrored { facts, .. } => facts.len() * size_of::<Arc<Fact>>(),
            Validity::Shared { dependencies, .. } => size_of_val(&**dependencies),
            Validity::Stat { snapshots } => snapshots
                .iter()
                .map(|snapshot| size_of::<StatSnapshot>() + snapshot.path.to_bytes().len())
                .sum(),
        }
    }
}

/// The stat results of a path.
pub struct StatSnapshot {
    path: CString,
    /// Whether links are followed, so that only the target counts.
    follows: bool,
    entry: Found,
    /// The target, if the entry may be a link.
    target: Option<Found>,
}

type Found = Result<FileInfo, Errno>;

impl StatSnapshot {
    /// Stats `path`, and a link there as well. Returns `None` for an invalid path.
    fn at(path: &[u8]) -> Option<StatSnapshot> {
        let path = CString::new(path).ok()?;
        let entry = find(&path, false);
        let target = is_odd(&entry).then(|| find(&path, true));
        Some(StatSnapshot { path, follows: false, entry, target })
    }

    fn is_unchanged(&self) -> bool {
        find(&self.path, self.follows) == self.entry
            && self.target.is_none_or(|target| find(&self.path, true) == target)
    }

    fn is_settled(&self, now_us: u64) -> bool {
        let is_old = |found: &Found| {
            let changed = found.map_or(0, |info| info.mtime_us.max(info.ctime_us));
            now_us.saturating_sub(changed) > SETTLED_US
        };
        is_old(&self.entry) && self.target.as_ref().is_none_or(is_old)
    }
}

/// Stats with one system call.
fn find(path: &CStr, follows: bool) -> Found {
    looks::count_stat();
    let stat = if follows { rustix::fs::stat(path) } else { rustix::fs::lstat(path) };
    stat.map(|stat| path::info(&stat))
}

/// Whether it is neither a file nor a directory, and thus may be a link.
fn is_odd(found: &Found) -> bool {
    found.is_ok_and(|info| info.kind == FileKind::Other)
}

/// Whether `path` is a directory above `file`.
fn is_above(path: &[u8], file: &[u8]) -> bool {
    let Some(rest) = file.strip_prefix(path) else { return false };
    !rest.is_empty() && (path.ends_with(b"/") || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;

    struct Folder(PathBuf);

    fn files() -> Files {
        Files::default()
    }

    impl Folder {
        fn new(name: &str) -> Folder {
            let path =
                std::env::temp_dir().join(format!("freshness-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&path);
            fs::create_dir_all(path.join("a/b")).unwrap();
            fs::write(path.join("a/b/file"), "one").unwrap();
            Folder(path)
        }

        fn paths(&self, names: &[&str]) -> Vec<Vec<u8>> {
            names.iter().map(|name| self.0.join(name).as_os_str().as_bytes().to_vec()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn every_change_of_a_path_is_seen() {
        let folder = Folder::new("change");
        let paths = folder.paths(&["a", "a/b", "a/b/.htaccess", "a/b/file"]);
        let validity = || Validity::from_paths(ChangeSource::None, &paths).unwrap();
        let seen = validity();
        assert!(seen.is_fresh(&files(), ChangeSource::None));
        fs::write(folder.0.join("a/b/file"), "other").unwrap();
        assert!(!seen.is_fresh(&files(), ChangeSource::None));
        let seen = validity();
        fs::write(folder.0.join("a/b/.htaccess"), "").unwrap();
        assert!(!seen.is_fresh(&files(), ChangeSource::None));
        let seen = validity();
        fs::rename(folder.0.join("a/b"), folder.0.join("a/c")).unwrap();
        symlink("c", folder.0.join("a/b")).unwrap();
        assert!(!seen.is_fresh(&files(), ChangeSource::None));
    }

    #[test]
    fn a_file_speaks_for_the_way_to_it() {
        let folder = Folder::new("way");
        let paths = folder.paths(&["a", "a/b/", "a/b/.htaccess", "a/b/file"]);
        let mut validity = Validity::from_paths(ChangeSource::None, &paths).unwrap();
        validity.narrow_to(&paths[3], true);
        assert!(matches!(&validity, Validity::Stat { snapshots } if snapshots.len() == 4));
        validity.narrow_to(&paths[3], false);
        assert!(matches!(&validity, Validity::Stat { snapshots } if snapshots.len() == 2));
        fs::write(folder.0.join("a/b/unrelated"), "").unwrap();
        assert!(validity.is_fresh(&files(), ChangeSource::None));
        fs::rename(folder.0.join("a"), folder.0.join("z")).unwrap();
        assert!(!validity.is_fresh(&files(), ChangeSource::None));
        fs::create_dir_all(folder.0.join("a/b")).unwrap();
        fs::write(folder.0.join("a/b/file"), "one").unwrap();
        assert!(!validity.is_fresh(&files(), ChangeSource::None), "another file of the same size");
    }

    #[test]
    fn what_has_just_changed_is_not_relied_upon() {
        let folder = Folder::new("settled");
        let paths = folder.paths(&["a/b/file"]);
        let validity = Validity::from_paths(ChangeSource::None, &paths).unwrap();
        let changed = path::stat(&paths[0]).unwrap().ctime_us;
        assert!(!validity.is_settled(changed + SETTLED_US));
        assert!(validity.is_settled(changed + SETTLED_US + 1));
    }
}
