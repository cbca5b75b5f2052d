//! Contents of cached responses, each stored once for all loops of the process. Otherwise the 128
//! threads of a worker process that cache the same file would hold it 128 times, and the
//! processor's cache would hold none of them for long.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Unused contents are removed after this many bytes of new ones.
const PURGE_BYTES: usize = 1024 * 1024;

/// The contents that loops of this process use.
#[derive(Default)]
pub struct Contents(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: HashSet<Bytes>,
    /// Bytes added since the last clean-up that are still in use.
    new_bytes: usize,
}

impl Contents {
    /// Returns the same bytes, from another loop if one has them. Compares all of them, so it is
    /// called once, when a response is cached.
    pub fn share(&self, content: Bytes) -> Bytes {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = known.all.get(&content) {
            return kept.clone();
        }
        known.new_bytes += content.len();
        if known.new_bytes >= PURGE_BYTES {
            known.new_bytes = 0;
            known.all.retain(|kept| !kept.is_unique());
        }
        known.all.insert(content.clone());
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_contents_are_one() {
        let contents = Contents::default();
        let first = contents.share(Bytes::from(vec![b'x'; 100]));
        let second = contents.share(Bytes::from(vec![b'x'; 100]));
        let other = contents.share(Bytes::from(vec![b'y'; 100]));
        assert_eq!(first.as_ptr(), second.as_ptr());
        assert_ne!(first.as_ptr(), other.as_ptr());
        assert_eq!(other, [b'y'; 100][..]);
    }

    #[test]
    fn what_nobody_uses_goes() {
        let contents = Contents::default();
        let used = contents.share(Bytes::from(vec![0; 100]));
        drop(contents.share(Bytes::from(vec![1; PURGE_BYTES - 100])));
        assert_eq!(contents.0.lock().unwrap().all.len(), 2);
        drop(contents.share(Bytes::from(vec![2; PURGE_BYTES])));
        let known = contents.0.lock().unwrap();
        assert!(known.all.contains(&used));
        assert!(!known.all.iter().any(|kept| kept.first() == Some(&1)));
    }
}
