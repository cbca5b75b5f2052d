//! File system paths: canonical form, and the entries at them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use regular::looks;
use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use crate::files::{FileInfo, FileKind};

/// Why a path could not be looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatError {
    /// It does not exist.
    Missing,
    /// A component can't be searched.
    Denied,
    /// A symbolic link is not allowed by the options.
    SymlinkForbidden,
    /// Anything else.
    Other,
}

/// A directory entry, without following a link.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The metadata.
    pub info: FileInfo,
    /// Whether it is a symbolic link.
    pub is_symlink: bool,
}

/// Stats `path`, following links. A broken link differs from a missing file.
pub fn stat(path: &[u8]) -> Result<FileInfo, StatError> {
    looks::count_stat();
    match rustix::fs::stat(path).map(|stat| info(&stat)).map_err(stat_error) {
        Err(StatError::Missing) if lstat(path).is_ok_and(|entry| entry.is_symlink) => {
            Err(StatError::SymlinkForbidden)
        }
        known => known,
    }
}

/// Stats `path` without following the last link.
pub fn lstat(path: &[u8]) -> Result<Entry, StatError> {
    looks::count_stat();
    let stat = rustix::fs::lstat(path).map_err(stat_error)?;
    let is_symlink = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    Ok(Entry { info: info(&stat), is_symlink })
}

/// A path for the standard library.
pub fn as_path(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}

/// The metadata of `stat`.
pub fn info(stat: &Stat) -> FileInfo {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::Regular,
        FileType::Directory => FileKind::Directory,
        _ => FileKind::Other,
    };
    let time_us = |seconds: i64, nanoseconds: u64| {
        u64::try_from(seconds).unwrap_or(0) * 1_000_000 + nanoseconds / 1000
    };
    FileInfo {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        mtime_us: time_us(stat.st_mtime, stat.st_mtime_nsec),
        ctime_us: time_us(stat.st_ctime, stat.st_ctime_nsec),
        inode: stat.st_ino,
        device: stat.st_dev,
        mode: stat.st_mode & 0o7777,
        uid: stat.st_uid,
        gid: stat.st_gid,
        links: stat.st_nlink,
    }
}

fn stat_error(error: Errno) -> StatError {
    match error {
        Errno::NOENT | Errno::NOTDIR => StatError::Missing,
        Errno::ACCESS => StatError::Denied,
        _ => StatError::Other,
    }
}

/// A path's directory and the name in it; a trailing slash is ignored.
pub fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let path = path.strip_suffix(b"/").unwrap_or(path);
    let slash = path.iter().rposition(|byte| *byte == b'/')?;
    let directory = if slash == 0 { &b"/"[..] } else { path.get(..slash)? };
    Some((directory, path.get(slash + 1..)?))
}

/// Most symbolic links on a traced path: the kernel's limit.
const LINK_LIMIT: usize = 40;

/// Adds `path` to `trace`, and for a symbolic link every component of its target: a change of any
/// of them changes the result for `path`.
pub fn trace(path: &[u8], trace: &mut Vec<Vec<u8>>) {
    let mut waiting = vec![path.to_vec()];
    let mut links = 0;
    while let Some(path) = waiting.pop() {
        if trace.contains(&path) {
            continue;
        }
        let target = rustix::fs::readlink(path.as_slice(), Vec::new()).ok();
        trace.push(path.clone());
        links += usize::from(target.is_some());
        if let Some(target) = target
            && links <= LINK_LIMIT
        {
            waiting.extend(components_of_link(&path, target.as_bytes()));
        }
    }
}

/// Every prefix of a link's target, absolute.
fn components_of_link(link: &[u8], target: &[u8]) -> Vec<Vec<u8>> {
    let parent = link.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let whole = match target.first() {
        Some(b'/') => target.to_vec(),
        _ => [link.get(..parent).unwrap_or_default(), target].concat(),
    };
    // `..` after a link leads elsewhere than the text suggests; the kernel resolves it.
    let real = std::fs::canonicalize(as_path(&whole)).ok();
    let real = real.map(|path| path.into_os_string().into_encoded_bytes());
    let mut prefixes = Vec::new();
    for path in real.into_iter().chain([whole]) {
        let slashes = path.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'/');
        prefixes.extend(slashes.map(|(at, _)| path.get(..at).unwrap_or_default().to_vec()));
        prefixes.push(path);
    }
    prefixes
}

/// The path without `.`, `..` and double slashes; `None` if it is not absolute, leaves the root, or
/// contains a NUL byte. A trailing slash stays.
pub fn canonical(path: &[u8]) -> Option<Vec<u8>> {
    if is_plain(path) { Some(path.to_vec()) } else { simplified(path) }
}

/// As [`canonical`], without a copy if there is nothing to do.
pub fn into_canonical(path: Vec<u8>) -> Option<Vec<u8>> {
    if is_plain(&path) { Some(path) } else { simplified(&path) }
}

fn simplified(path: &[u8]) -> Option<Vec<u8>> {
    if path.first() != Some(&b'/') || path.contains(&0) {
        return None;
    }
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    for segment in path.split(|byte| *byte == b'/').filter(|s| !s.is_empty()) {
        match segment {
            b"." => {}
            b".." => out.truncate(out.iter().rposition(|byte| *byte == b'/')?),
            _ => {
                out.push(b'/');
                out.extend_from_slice(segment);
            }
        }
    }
    let is_directory = path.ends_with(b"/") || path.ends_with(b"/.") || path.ends_with(b"/..");
    if is_directory || out.is_empty() {
        out.push(b'/');
    }
    Some(out)
}

/// The path of a file's name, relative to `root` unless it is absolute, in canonical form
/// (`ap_server_root_relative`); `None` if there is none, or it could be too long.
pub fn below_root(root: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    if !can_join(root, name) {
        return None;
    }
    if name.first() == Some(&b'/') {
        return canonical(name);
    }
    into_canonical([root, b"/", name].concat())
}

/// Whether Apache joins the two: not if the result could be too long, even if `added` is absolute
/// and replaces `root` (`apr_filepath_merge`).
pub fn can_join(root: &[u8], added: &[u8]) -> bool {
    /// The system's limit without the characters that APR leaves room for.
    const ROOM: usize = 4096 - 4;
    root.len() + added.len() <= ROOM
}

/// Whether [`canonical`] leaves the path as it is.
pub fn is_canonical(path: &[u8]) -> bool {
    is_plain(path) || canonical(path).as_deref() == Some(path)
}

/// Whether the path is absolute, without NUL bytes, and no segment is empty or begins with a dot:
/// nearly all are. Without branches, many bytes are examined at once.
fn is_plain(path: &[u8]) -> bool {
    let (Some((b'/', after)), Some(last)) = (path.split_first(), path.last()) else { return false };
    let is_odd =
        |byte: u8, next: u8| (byte == 0) | ((byte == b'/') & ((next == b'/') | (next == b'.')));
    let pairs = path.iter().zip(after);
    *last != 0 && !pairs.fold(false, |any, (byte, next)| any | is_odd(*byte, *next))
}

#[cfg(test)]
mod tests {
    use super::{canonical, is_canonical};

    #[test]
    fn dots_and_doubled_slashes_go() {
        assert_eq!(canonical(b"/a//b/./c").as_deref(), Some(&b"/a/b/c"[..]));
        assert_eq!(canonical(b"/a/../b/").as_deref(), Some(&b"/b/"[..]));
        assert_eq!(canonical(b"/..").as_deref(), None);
        assert_eq!(canonical(b"/").as_deref(), Some(&b"/"[..]));
        assert_eq!(canonical(b"a"), None);
        assert_eq!(canonical(b"/a\0b"), None);
    }

    #[test]
    fn a_canonical_path_stays() {
        for path in [&b"/"[..], b"/a", b"/a/", b"/a.b/c", b"/.a", b"/a/..b/", b"/a/.b"] {
            assert!(is_canonical(path) && canonical(path).as_deref() == Some(path), "{path:?}");
        }
        for path in [&b""[..], b"a", b"//", b"/.", b"/a/.", b"/a//b", b"/a/../b", b"/a\0", b"."] {
            assert!(!is_canonical(path), "{path:?}");
        }
    }
}
