//! The parsed `.htaccess` files of one loop.

use std::cell::RefCell;
use std::sync::Arc;

use hashbrown::HashMap;

use super::Key;
use crate::config::section::Section;
use crate::engine::plan::PlanCache;
use crate::request::FileInfo;

/// Most parsed `.htaccess` files that a loop caches; at the limit the cache is cleared.
pub const HTACCESS_LIMIT: usize = 4096;

/// Most bytes that a loop caches of `.htaccess` files, including texts and parsed sections; at the
/// limit the cache is cleared, and a single larger file is not cached.
pub const KEPT_BYTES_LIMIT: usize = 32 * 1024 * 1024;

/// The same for a thread with one connection, of which a server can have hundreds.
pub const KEPT_BYTES_LIMIT_OF_THREAD: usize = 4 * 1024 * 1024;

/// A file that was modified more recently than this (in µs) when it was read may change again
/// without a different time stamp: its text is compared.
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

/// A cached file.
#[derive(Clone)]
pub(super) struct Kept {
    /// Its metadata when it was read.
    info: FileInfo,
    /// Whether a file with these times can't have a different text.
    is_settled: bool,
    pub text: Arc<[u8]>,
    pub section: Arc<Section>,
    bytes: usize,
}

impl HtaccessCache {
    /// Returns an empty cache of at most `bytes_limit`.
    pub fn new(bytes_limit: usize) -> HtaccessCache {
        HtaccessCache { parsed: RefCell::default(), bytes_limit }
    }

    /// Most bytes of a file that is cached.
    pub fn bytes_limit(&self) -> usize {
        self.bytes_limit
    }

    /// The section of an unchanged file.
    pub(super) fn known(&self, key: &Key, info: &FileInfo) -> Option<Arc<Section>> {
        let parsed = self.parsed.borrow();
        let kept = parsed.kept.get(key).filter(|kept| kept.is_settled && kept.info == *info)?;
        Some(kept.section.clone())
    }

    /// The cached file, changed or not.
    pub(super) fn before(&self, key: &Key) -> Option<Kept> {
        self.parsed.borrow().kept.get(key).cloned()
    }

    /// Notes that a file read at `now_us` is unchanged.
    pub(super) fn confirm(&self, key: &Key, info: FileInfo, now_us: u64) {
        if let Some(kept) = self.parsed.borrow_mut().kept.get_mut(key) {
            kept.info = info;
            kept.is_settled = is_settled(&info, now_us);
        }
    }

    /// Caches a file that was parsed at `now_us` into this many `bytes`. The previous version is
    /// removed, with everything that `plans` has merged from it.
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

    /// Removes a file, with everything that `plans` has merged from it.
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
    use crate::config::core::AllowOverride;
    use crate::config::registry::Registry;
    use crate::config::section::Lifetime;

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
        let plans = PlanCache::new(Arc::new(Registry::new(Vec::new())), 0, usize::MAX);
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
        let plans = PlanCache::new(Arc::new(Registry::new(Vec::new())), 0, usize::MAX);
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
