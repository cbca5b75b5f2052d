//! Digests of files: SHA-1 for `FileETag Digest`, MD5 for `ContentDigest`.
//!
//! Apache hashes a file while its worker serves nothing else. Here the blocking pool hashes, in
//! slices of [`SLICE_BYTES`], so that files take turns and a large one does not delay other
//! requests. Each loop caches digests by the file's identity, and hashes a file once for all
//! waiting requests.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;

use base64::Engine as _;
use rt::{PoolError, Work};
use tokio::sync::OnceCell;

use crate::engine::Engine;
use crate::request::FileInfo;

/// Most files whose digests a loop caches; at the limit the cache is cleared.
const REMEMBERED_MAX: usize = 4096;
/// Bytes of a file that are hashed before another file's turn.
const SLICE_BYTES: u64 = 1024 * 1024;
/// Bytes of a file that are read at a time.
const READ_BYTES: usize = 64 * 1024;
/// A file that was modified more recently may change again without a different time stamp: its
/// digests are not cached.
const SETTLED_US: u64 = 1_000_000;

/// The requested digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// SHA-1, for the ETag.
    pub sha1: bool,
    /// MD5, for Content-MD5.
    pub md5: bool,
}

impl Wanted {
    /// Whether any digest is requested.
    pub fn is_any(self) -> bool {
        self.sha1 || self.md5
    }
}

/// The digests of a file in base 64; `None` for those not requested, or if the file can't be read
/// to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Digests {
    /// SHA-1.
    pub sha1: Option<String>,
    /// MD5.
    pub md5: Option<String>,
}

/// The digests that a loop caches.
#[derive(Default)]
pub struct DigestCache(RefCell<HashMap<Key, Rc<OnceCell<Digests>>>>);

/// A file's identity. If any of these differs, so may the content.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    device: u64,
    inode: u64,
    size: u64,
    mtime_us: u64,
    ctime_us: u64,
    wanted: Wanted,
}

/// The digests of an open file. Waits for the blocking pool, or for another request that is hashing
/// the same file.
///
/// # Errors
/// The pool fails, or takes too long.
pub async fn of_file(
    engine: &Engine,
    file: File,
    info: &FileInfo,
    now_us: u64,
    wanted: Wanted,
) -> Result<Digests, PoolError> {
    let file = Arc::new(file);
    if now_us.saturating_sub(info.mtime_us.max(info.ctime_us)) <= SETTLED_US {
        return hash(engine, &file, info.size, wanted).await;
    }
    let key = Key {
        device: info.device,
        inode: info.inode,
        size: info.size,
        mtime_us: info.mtime_us,
        ctime_us: info.ctime_us,
        wanted,
    };
    let cell = {
        let mut known = engine.digests.0.borrow_mut();
        if known.len() >= REMEMBERED_MAX && !known.contains_key(&key) {
            known.clear();
        }
        known.entry(key).or_default().clone()
    };
    // If the hashing request ends early, the next waiting one takes over.
    cell.get_or_try_init(|| hash(engine, &file, info.size, wanted)).await.cloned()
}

async fn hash(
    engine: &Engine,
    file: &Arc<File>,
    length: u64,
    wanted: Wanted,
) -> Result<Digests, PoolError> {
    let mut hashers = Hashers::new(wanted);
    let mut at = 0;
    while at < length {
        let file = file.clone();
        let end = length.min(at + SLICE_BYTES);
        let slice = move || hashers.read(&file, at..end).then_some(hashers);
        match engine.handle.blocking().run(Work::Digest, slice).await? {
            Some(fed) => hashers = fed,
            None => return Ok(Digests::default()),
        }
        at = end;
        engine.handle.give_turn().await;
    }
    Ok(hashers.finish())
}

#[derive(Clone)]
struct Hashers {
    sha1: Option<sha1::Sha1>,
    md5: Option<md5::Md5>,
}

impl Hashers {
    fn new(wanted: Wanted) -> Hashers {
        Hashers {
            sha1: wanted.sha1.then(sha1::Sha1::default),
            md5: wanted.md5.then(md5::Md5::default),
        }
    }

    /// Hashes a range of a file; returns false if the file can't be read or has become shorter.
    fn read(&mut self, file: &File, range: std::ops::Range<u64>) -> bool {
        use sha1::Digest;
        let mut buffer = vec![0; READ_BYTES];
        let mut at = range.start;
        while at < range.end {
            let most = usize::try_from(range.end - at).unwrap_or(READ_BYTES).min(READ_BYTES);
            let piece = match file.read_at(buffer.get_mut(..most).unwrap_or_default(), at) {
                Ok(0) => return false,
                Ok(count) => buffer.get(..count).unwrap_or_default(),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return false,
            };
            if let Some(sha1) = &mut self.sha1 {
                sha1.update(piece);
            }
            if let Some(md5) = &mut self.md5 {
                md5.update(piece);
            }
            at += piece.len() as u64;
        }
        true
    }

    fn finish(self) -> Digests {
        use sha1::Digest;
        let base64 = |digest: &[u8]| base64::engine::general_purpose::STANDARD.encode(digest);
        Digests {
            sha1: self.sha1.map(|sha1| base64(&sha1.finalize())),
            md5: self.md5.map(|md5| base64(&md5.finalize())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_hashed_in_one_pass() {
        let path = std::env::temp_dir().join(format!("tamarack-digest-{}", std::process::id()));
        std::fs::write(&path, vec![b'x'; READ_BYTES + 1]).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let mut hashers = Hashers::new(Wanted { sha1: true, md5: true });
        let length = READ_BYTES as u64 + 1;
        assert!(hashers.read(&file, 0..length - 1) && hashers.read(&file, length - 1..length));
        let whole = hashers.finish();
        // head -c 65537 /dev/zero | tr '\0' x | openssl sha1 -binary | base64
        assert_eq!(whole.sha1.as_deref(), Some("c+a1NKr8DfCr+L7UYtOHz1A813Y="));
        assert_eq!(whole.md5.as_deref(), Some("VYcVphyqnQzYO4Ow5/fbNA=="));
        assert!(!Hashers::new(Wanted::default()).read(&file, 0..length + 1));
        let none = Hashers::new(Wanted::default()).finish();
        assert_eq!(none, Digests::default());
    }
}
