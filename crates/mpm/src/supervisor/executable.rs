//! The server's executable: its path, and the identity of the file there.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The path that the program was started by, unresolved: if it is a symbolic link, an upgrade
/// executes the link's target of that time.
pub(super) fn path() -> Option<PathBuf> {
    let own = std::fs::metadata("/proc/self/exe").ok()?;
    let is_own = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|file| (file.dev(), file.ino()) == (own.dev(), own.ino()))
    };
    let word = PathBuf::from(std::env::args_os().next()?);
    let named = match word.components().count() {
        0 => None,
        1 if !word.has_root() => {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&folders).map(|folder| folder.join(&word)).find(is_own)
        }
        _ => std::path::absolute(word).ok().filter(is_own),
    };
    named.or_else(|| std::env::current_exe().ok())
}

/// The identity of a file: device and inode, size, and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl Identity {
    /// The identity of the file at `path` now.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let file = std::fs::metadata(path)?;
        Ok(Self {
            file: (file.dev(), file.ino()),
            size: file.size(),
            changed: (file.mtime(), file.mtime_nsec()),
        })
    }
}
