//! Contents of answers that are kept, each once for all loops of the process. The 128 threads of a
//! worker process that each keep the same file would have it in memory 128 times, and the
//! processor's cache would hold none of them for long.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;

/// Contents that nobody uses any more go when so many bytes of new ones have come.
const PURGE_BYTES: usize = 1024 * 1024;

/// The contents that loops of this process have.
#[derive(Default)]
pub struct Contents(Mutex<Known>);

#[derive(Default)]
struct Known {
    all: HashSet<Bytes>,
    /// Bytes that came since it was looked last which are still used.
    new_bytes: usize,
}

impl Contents {
    /// The same bytes, from another loop where one has them already. Compares all of them, so it is
    /// for what is kept, once.
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
