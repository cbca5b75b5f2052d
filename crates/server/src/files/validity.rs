//! Whether results from the file system are still valid: by the mirror ([`crate::files::mirror`]),
//! or by stat for each request if there is no watch.

use std::cell::Cell;
use std::ffi::{CStr, CString};
use std::sync::Arc;

use rt::Witness;
use rustix::io::Errno;

use crate::files::mirror::{Fact, Files};
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
pub enum Basis {
    /// By the mirror's facts.
    Mirrored {
        /// Facts of directories above the others are left out: those depend on them.
        facts: Vec<Arc<Fact>>,
        /// The watcher's stamp when they were last true: while it is the same, they are.
        stamp: Cell<u64>,
    },
    /// By stat.
    Looked {
        /// The result for each path.
        looks: Vec<Look>,
    },
}

impl Basis {
    /// The facts that a request used. `None` if the mirror had none for some path.
    pub fn of_facts(mut trace: Trace) -> Option<Basis> {
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
        Some(Basis::Mirrored { facts: trace.facts, stamp: Cell::new(u64::MAX) })
    }

    /// Looks at `paths`, where there is no mirror.
    pub fn of(witness: Witness<'_>, paths: &[Vec<u8>]) -> Option<Basis> {
        match witness {
            Witness::Watcher(_) => None,
            Witness::Nobody => Basis::look_at(paths),
        }
    }

    fn look_at(paths: &[Vec<u8>]) -> Option<Basis> {
        let looks: Option<Vec<Look>> = paths.iter().map(|path| Look::at(path)).collect();
        Some(Basis::Looked { looks: looks? })
    }

    /// Whether nothing has changed: in the mirror, as of the last drain.
    pub fn is_fresh(&self, files: &Files, witness: Witness<'_>) -> bool {
        match (self, witness) {
            (Basis::Mirrored { facts, stamp }, Witness::Watcher(watcher)) => {
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
            (Basis::Looked { looks }, Witness::Nobody) => looks.iter().all(Look::is_unchanged),
            _ => false,
        }
    }

    /// Whether it can be relied upon from now on; `now_us` is the time since the epoch.
    pub fn is_settled(&self, now_us: u64) -> bool {
        match self {
            Basis::Mirrored { .. } => true,
            Basis::Looked { looks } => looks.iter().all(|look| look.is_settled(now_us)),
        }
    }

    /// Removes paths that `file`, which is one of them, covers: it is reached through the
    /// directories above it, and its stat would differ if one of them were replaced.
    pub fn leave_to(&mut self, file: &[u8], links_matter: bool) {
        let Basis::Looked { looks } = self else { return };
        if links_matter || !looks.iter().any(|look| look.path.to_bytes() == file) {
            return;
        }
        looks.retain(|look| !is_above(look.path.to_bytes(), file));
        for look in looks {
            // For anything but a link, both stats are the same.
            look.entry = look.target.take().unwrap_or(look.entry);
            look.follows = true;
        }
    }

    /// The bytes of memory.
    pub fn bytes(&self) -> usize {
        match self {
            Basis::Mirrored { facts, .. } => facts.len() * size_of::<Arc<Fact>>(),
            Basis::Looked { looks } => {
                looks.iter().map(|look| size_of::<Look>() + look.path.to_bytes().len()).sum()
            }
        }
    }
}

/// The stat results of a path.
pub struct Look {
    path: CString,
    /// Whether links are followed, so that only the target counts.
    follows: bool,
    entry: Found,
    /// The target, if the entry may be a link.
    target: Option<Found>,
}

type Found = Result<FileInfo, Errno>;

impl Look {
    /// Stats `path`, and a link there as well. Returns `None` for an invalid path.
    fn at(path: &[u8]) -> Option<Look> {
        let path = CString::new(path).ok()?;
        let entry = find(&path, false);
        let target = is_odd(&entry).then(|| find(&path, true));
        Some(Look { path, follows: false, entry, target })
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
        let basis = || Basis::of(Witness::Nobody, &paths).unwrap();
        let seen = basis();
        assert!(seen.is_fresh(&files(), Witness::Nobody));
        fs::write(folder.0.join("a/b/file"), "other").unwrap();
        assert!(!seen.is_fresh(&files(), Witness::Nobody));
        let seen = basis();
        fs::write(folder.0.join("a/b/.htaccess"), "").unwrap();
        assert!(!seen.is_fresh(&files(), Witness::Nobody));
        let seen = basis();
        fs::rename(folder.0.join("a/b"), folder.0.join("a/c")).unwrap();
        symlink("c", folder.0.join("a/b")).unwrap();
        assert!(!seen.is_fresh(&files(), Witness::Nobody));
    }

    #[test]
    fn a_file_speaks_for_the_way_to_it() {
        let folder = Folder::new("way");
        let paths = folder.paths(&["a", "a/b/", "a/b/.htaccess", "a/b/file"]);
        let mut basis = Basis::of(Witness::Nobody, &paths).unwrap();
        basis.leave_to(&paths[3], true);
        assert!(matches!(&basis, Basis::Looked { looks } if looks.len() == 4));
        basis.leave_to(&paths[3], false);
        assert!(matches!(&basis, Basis::Looked { looks } if looks.len() == 2));
        fs::write(folder.0.join("a/b/unrelated"), "").unwrap();
        assert!(basis.is_fresh(&files(), Witness::Nobody));
        fs::rename(folder.0.join("a"), folder.0.join("z")).unwrap();
        assert!(!basis.is_fresh(&files(), Witness::Nobody));
        fs::create_dir_all(folder.0.join("a/b")).unwrap();
        fs::write(folder.0.join("a/b/file"), "one").unwrap();
        assert!(!basis.is_fresh(&files(), Witness::Nobody), "another file of the same size");
    }

    #[test]
    fn what_has_just_changed_is_not_relied_upon() {
        let folder = Folder::new("settled");
        let paths = folder.paths(&["a/b/file"]);
        let basis = Basis::of(Witness::Nobody, &paths).unwrap();
        let changed = path::stat(&paths[0]).unwrap().ctime_us;
        assert!(!basis.is_settled(changed + SETTLED_US));
        assert!(basis.is_settled(changed + SETTLED_US + 1));
    }
}
