//! The parsed `.htaccess` files of one loop.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::Key;
use crate::config::section::Section;
use crate::plan::PlanCache;
use crate::request::FileInfo;

/// The most parsed `.htaccess` files that a loop keeps; at the limit it starts over.
pub const HTACCESS_LIMIT: usize = 4096;

/// The most bytes that a loop keeps for `.htaccess` files, texts and what they were parsed into;
/// at the limit it starts over, and what is larger by itself is not kept.
pub const KEPT_BYTES_LIMIT: usize = 32 * 1024 * 1024;

/// The same for a thread with one connection, of which a server can have hundreds.
pub const KEPT_BYTES_LIMIT_OF_THREAD: usize = 4 * 1024 * 1024;

/// A file whose modification is younger than this when it is read may change again without a trace
/// in its time stamp, µs: its text is compared.
const SETTLED_US: u64 = 1_000_000;

/// The parsed `.htaccess` files of one loop.
pub struct HtaccessCache {
    parsed: RefCell<Parsed>,
    bytes_limit: usize,
}

#[derive(Default)]
struct Parsed {
    kept: HashMap<Key, Kept>,
    bytes: usize,
}

/// What is kept of a file.
#[derive(Clone)]
pub(super) struct Kept {
    /// What stood there when it was read.
    info: FileInfo,
    /// A file of these times says the same from now on.
    is_settled: bool,
    pub text: Arc<[u8]>,
    pub section: Arc<Section>,
    bytes: usize,
}

impl HtaccessCache {
    /// None yet, and never more than `bytes_limit`.
    pub fn new(bytes_limit: usize) -> HtaccessCache {
        HtaccessCache { parsed: RefCell::default(), bytes_limit }
    }

    /// The most bytes that a file may take to be kept.
    pub fn bytes_limit(&self) -> usize {
        self.bytes_limit
    }

    /// The section of a file that has not changed.
    pub(super) fn known(&self, key: &Key, info: &FileInfo) -> Option<Arc<Section>> {
        let parsed = self.parsed.borrow();
        let kept = parsed.kept.get(key).filter(|kept| kept.is_settled && kept.info == *info)?;
        Some(kept.section.clone())
    }

    /// What is kept of a file, changed or not.
    pub(super) fn before(&self, key: &Key) -> Option<Kept> {
        self.parsed.borrow().kept.get(key).cloned()
    }

    /// Notes that a file that was read at `now_us` says what it said before.
    pub(super) fn confirm(&self, key: &Key, info: FileInfo, now_us: u64) {
        if let Some(kept) = self.parsed.borrow_mut().kept.get_mut(key) {
            kept.info = info;
            kept.is_settled = is_settled(&info, now_us);
        }
    }

    /// Keeps what was parsed at `now_us` into so many `bytes`. What was kept of the file goes, with
    /// all that `plans` has merged from it.
    pub(super) fn keep(
        &self,
        plans: &PlanCache,
        key: Key,
        info: FileInfo,
        (text, section, bytes): (Arc<[u8]>, Arc<Section>, usize),
        now_us: u64,
    ) {
        let bytes = bytes + text.len() + key.file.len() + size_of::<Key>() + size_of::<Kept>();
        let mut parsed = self.parsed.borrow_mut();
        parsed.forget(plans, &key);
        if parsed.kept.len() >= HTACCESS_LIMIT || parsed.bytes + bytes > self.bytes_limit {
            parsed.kept.clear();
            parsed.bytes = 0;
            plans.forget_all();
        }
        parsed.bytes += bytes;
        let is_settled = is_settled(&info, now_us);
        parsed.kept.insert(key, Kept { info, is_settled, text, section, bytes });
    }

    /// Forgets a file, with all that `plans` has merged from it.
    pub(super) fn forget(&self, plans: &PlanCache, key: &Key) {
        self.parsed.borrow_mut().forget(plans, key);
    }
}

impl Parsed {
    fn forget(&mut self, plans: &PlanCache, key: &Key) {
        if let Some(old) = self.kept.remove(key) {
            self.bytes -= old.bytes;
            plans.forget_section(old.section.id);
        }
    }
}

fn is_settled(info: &FileInfo, now_us: u64) -> bool {
    now_us.saturating_sub(info.mtime_us.max(info.ctime_us)) > SETTLED_US
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::registry::Registry;
    use crate::config::section::Lifetime;
    use crate::core::AllowOverride;

    fn key(name: &str) -> Key {
        let allow = AllowOverride::default();
        Key { host: 0, file: name.as_bytes().to_vec(), allow, list: None }
    }

    fn keep(cache: &HtaccessCache, plans: &PlanCache, name: &str, bytes: usize, mtime_us: u64) {
        let registry = Registry::new(Vec::new());
        let section = Section::of_htaccess(registry.empty_dir(), Lifetime::Kept);
        let info = FileInfo { mtime_us, ..FileInfo::default() };
        cache.keep(plans, key(name), info, (Arc::from(&b"x"[..]), section, bytes), 5_000_000);
    }

    #[test]
    fn what_is_kept_has_a_limit_in_bytes() {
        let plans = PlanCache::new(Arc::new(Registry::new(Vec::new())), usize::MAX);
        let cache = HtaccessCache::new(10_000);
        keep(&cache, &plans, "a", 4000, 0);
        keep(&cache, &plans, "a", 4000, 0);
        keep(&cache, &plans, "b", 4000, 0);
        assert_eq!(cache.parsed.borrow().kept.len(), 2);
        keep(&cache, &plans, "c", 4000, 0);
        assert_eq!(cache.parsed.borrow().kept.len(), 1);
        cache.forget(&plans, &key("c"));
        assert_eq!(cache.parsed.borrow().bytes, 0);
    }

    #[test]
    fn a_time_in_the_future_is_not_relied_upon() {
        let plans = PlanCache::new(Arc::new(Registry::new(Vec::new())), usize::MAX);
        let cache = HtaccessCache::new(10_000);
        let future = FileInfo { mtime_us: 9_000_000, ..FileInfo::default() };
        keep(&cache, &plans, "a", 0, future.mtime_us);
        assert!(cache.known(&key("a"), &future).is_none());
        assert!(cache.before(&key("a")).is_some());
        cache.confirm(&key("a"), future, 9_500_000);
        assert!(cache.known(&key("a"), &future).is_none());
        cache.confirm(&key("a"), future, 10_500_000);
        assert!(cache.known(&key("a"), &future).is_some());
    }
}
