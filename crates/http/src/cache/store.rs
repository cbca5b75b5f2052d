//! The cached responses of one loop, by host and path.

use std::cell::RefCell;
use std::hash::BuildHasher;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashMap};
use rt::ChangeSource;

use super::key::{Key, Sought};
use super::recent::Recent;
use super::response::{CONTENT_LIMIT, CachedResponse, Content, OPEN_LIMIT};
use super::shared::Shared;
use server::engine::Engine;
use server::files::validity::{Trace, Validity};
use server::request::Request;
use server::variant_key::VariantKeys;

/// Most responses in a loop's cache.
pub const RESPONSE_LIMIT: usize = 16 * 1024;

/// The longest path in the cache, bytes. A file's path can be spelled in any number of ways, and
/// long ones are hardly ever requested twice.
pub const PATH_LIMIT: usize = 512;

/// Most responses for one path.
const VARIANT_LIMIT: usize = 12;

/// Most paths that a response may depend on.
const DEPENDENCY_LIMIT: usize = 256;

/// Paths that a response depends on, with their state from before it is made.
pub struct Snapshot {
    paths: Vec<Vec<u8>>,
    validity: Validity,
}

/// What to put into the cache after a request's phases.
pub enum Fill {
    /// Nothing.
    None,
    /// The paths that its response depends on; if there is a mirror, the response itself.
    Paths,
    /// The response, if the paths are unchanged.
    Response(Snapshot),
}

/// The result of a look-up.
pub enum Lookup {
    /// A response.
    Hit(Rc<CachedResponse>),
    /// A response that does not suit the request, and whose place the request's own would take.
    Unsuitable,
    /// Nothing.
    Miss,
}

/// The responses of one path.
#[derive(Default)]
struct Entry {
    /// The properties of requests that the responses depend on.
    keys: VariantKeys,
    /// Responses, by the values of the variant keys.
    variants: Vec<(u64, Rc<CachedResponse>)>,
    /// Paths that a response depends on, by the values of the variant keys, if there is no mirror.
    examined: Vec<(u64, Vec<Vec<u8>>)>,
}

/// The limits of a cache.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    entries: usize,
    bytes: usize,
    open: usize,
}

impl Limits {
    /// For a loop with many connections.
    pub const LOOP: Limits =
        Limits { entries: RESPONSE_LIMIT, bytes: CONTENT_LIMIT, open: OPEN_LIMIT };
    /// For a thread with one connection, of which a server can have hundreds.
    pub const THREAD: Limits = Limits { entries: 512, bytes: 1024 * 1024, open: 16 };
}

/// The cache of one loop, in two generations. When the young one reaches half of a limit it becomes
/// the old one; a hit moves a path back. Paths that are requested once therefore do not evict those
/// that are requested often.
pub struct ResponseCache {
    generations: RefCell<Generations>,
    limits: Limits,
    hasher: DefaultHashBuilder,
    recent: RefCell<Recent>,
    /// For look-ups of shared responses.
    pub(super) shared: RefCell<Shared>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Key, Entry>,
    old: HashMap<Key, Entry>,
    /// The load of the young generation.
    load: Load,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    entries: usize,
    bytes: usize,
    open: usize,
}

impl ResponseCache {
    /// Returns an empty cache with these limits.
    pub fn new(limits: Limits) -> ResponseCache {
        ResponseCache {
            generations: RefCell::default(),
            limits,
            hasher: DefaultHashBuilder::default(),
            recent: RefCell::new(Recent::new(limits.entries)),
            shared: RefCell::default(),
        }
    }

    /// Looks up the response to a request for `path`: its 304, or the response without conditions.
    /// It is fresh as of the last drain.
    pub fn get(&self, request: &Request, path: &[u8], not_modified: bool) -> Lookup {
        let engine = &request.engine;
        match self.get_own(request, path, not_modified) {
            Lookup::Hit(found) if !found.is_fresh(&engine.files, engine.handle.change_source()) => {
                self.remove(request.host.id, path);
                Lookup::Miss
            }
            Lookup::Miss => self.get_shared(request, path, not_modified),
            found => found,
        }
    }

    fn get_own(&self, request: &Request, path: &[u8], not_modified: bool) -> Lookup {
        let mut generations = self.generations.borrow_mut();
        let sought = Sought { host: request.host.id, path };
        let find = |entry: &Entry| entry.find(request, not_modified);
        generations.look_at(&sought, &self.limits, find).unwrap_or(Lookup::Miss)
    }

    /// Prepares to cache the response to a request before its phases run.
    pub fn begin_fill(
        &self,
        change_source: ChangeSource<'_>,
        request: &Request,
        path: &[u8],
    ) -> Fill {
        if path.len() > PATH_LIMIT {
            return Fill::None;
        }
        let sought = Sought { host: request.host.id, path };
        if let ChangeSource::Watcher(_) = change_source {
            let is_again = self.is_again_anywhere(request, path);
            let is_again = is_again.unwrap_or_else(|| self.is_again(&sought));
            return if is_again { Fill::Paths } else { Fill::None };
        }
        let mut generations = self.generations.borrow_mut();
        let examined = generations.look_at(&sought, &self.limits, |entry| {
            let code = entry.keys.of(request);
            entry.examined.iter().find(|(of, _)| *of == code).map(|(_, paths)| paths.clone())
        });
        match examined.flatten() {
            None => Fill::Paths,
            Some(paths) => match Validity::from_paths(change_source, &paths) {
                Some(validity) => Fill::Response(Snapshot { paths, validity }),
                None => Fill::Paths,
            },
        }
    }

    /// Whether the path was requested recently; notes that it was.
    pub(super) fn is_again(&self, sought: &Sought<'_>) -> bool {
        self.recent.borrow_mut().note(self.hasher.hash_one(sought))
    }

    /// Notes the paths that a response depends on.
    pub fn note_paths(&self, request: &Request, path: &[u8], looked_at: Vec<Vec<u8>>) {
        let mut paths = looked_at;
        paths.sort();
        paths.dedup();
        if paths.len() <= DEPENDENCY_LIMIT {
            let code = |keys: &VariantKeys| keys.of(request);
            self.insert(
                request.host.id,
                path,
                &request.depends.variant_keys,
                code,
                New::Paths(paths),
            );
        }
    }

    /// Caches a response, if its validity covers everything that it depends on and nothing has
    /// changed meanwhile.
    pub fn store(&self, fill: Fill, request: &Request, path: &[u8], response: CachedResponse) {
        let engine = &request.engine;
        // Without a trace it is unknown what the response depends on.
        let Some(trace) = request.depends.trace.clone() else { return };
        let validity = match fill {
            Fill::None => return,
            Fill::Paths => match Validity::from_facts(trace) {
                Some(validity) => validity,
                None => return,
            },
            Fill::Response(armed) => match armed.verified(engine, request, &trace) {
                Some(validity) => validity,
                None => return self.note_paths(request, path, trace.paths),
            },
        };
        if let ChangeSource::Watcher(watcher) = engine.handle.change_source() {
            watcher.drain();
        }
        if validity.is_fresh(&engine.files, engine.handle.change_source()) {
            let response = response.valid_while(validity);
            // What is shared is not kept here as well: in many threads and processes, copies of
            // their own would leave the processor's cache sooner.
            if self.share(request, path, &response) {
                return;
            }
            let code = |keys: &VariantKeys| keys.of(request);
            self.insert(
                request.host.id,
                path,
                &request.depends.variant_keys,
                code,
                New::Response(Rc::new(response)),
            );
        }
    }

    /// Removes a path of which a response is stale.
    fn remove(&self, host: u32, path: &[u8]) {
        let generations = &mut *self.generations.borrow_mut();
        let sought = Sought { host, path };
        if let Some(removed) = generations.young.remove(&sought) {
            generations.load.take_off(removed.weight(path));
        }
        generations.old.remove(&sought);
    }

    /// `code` returns the values of variant keys in the request.
    fn insert(
        &self,
        host: u32,
        path: &[u8],
        keys: &VariantKeys,
        code: impl Fn(&VariantKeys) -> u64,
        new: New,
    ) {
        let generations = &mut *self.generations.borrow_mut();
        let sought = Sought { host, path };
        let mut entry = match generations.young.remove(&sought) {
            Some(entry) => {
                generations.load.take_off(entry.weight(path));
                entry
            }
            None => generations.old.remove(&sought).unwrap_or_default(),
        };
        entry.add(keys, code, new);
        generations.put(Key { host, path: path.into() }, entry, &self.limits);
    }
}

/// A new part of an entry.
enum New {
    Paths(Vec<Vec<u8>>),
    Response(Rc<CachedResponse>),
}

impl Snapshot {
    /// The validity of a response that was made meanwhile, if it depends on nothing else.
    fn verified(self, engine: &Engine, request: &Request, trace: &Trace) -> Option<Validity> {
        let Snapshot { paths, mut validity } = self;
        let is_known = trace.paths.iter().all(|path| paths.binary_search(path).is_ok());
        let is_fresh = is_known && validity.is_fresh(&engine.files, engine.handle.change_source());
        validity.narrow_to(&request.resource.filename, trace.links_matter);
        (is_fresh && validity.is_settled(engine.handle.clock().wall_us())).then_some(validity)
    }
}

impl Generations {
    /// Looks at an entry, which becomes a young one.
    fn look_at<T>(
        &mut self,
        sought: &Sought<'_>,
        limits: &Limits,
        look: impl FnOnce(&Entry) -> T,
    ) -> Option<T> {
        if let Some(entry) = self.young.get(sought) {
            return Some(look(entry));
        }
        let (key, entry) = self.old.remove_entry(sought)?;
        self.put(key, entry, limits);
        self.young.get(sought).map(look)
    }

    fn put(&mut self, key: Key, entry: Entry, limits: &Limits) {
        let weight = entry.weight(&key.path);
        if self.load.with(weight).is_over_half(limits) {
            self.old = std::mem::take(&mut self.young);
            self.load = Load::default();
        }
        self.load = self.load.with(weight);
        self.young.insert(key, entry);
    }
}

impl Entry {
    fn find(&self, request: &Request, not_modified: bool) -> Lookup {
        let code = self.keys.of(request);
        let is_it = |(of, response): &&(u64, Rc<CachedResponse>)| {
            *of == code && response.is_not_modified() == not_modified && response.is_for(request)
        };
        match self.variants.iter().find(is_it) {
            Some((_, response)) if response.suits(request) => Lookup::Hit(response.clone()),
            Some(_) => Lookup::Unsuitable,
            None => Lookup::Miss,
        }
    }

    fn add(&mut self, keys: &VariantKeys, code: impl Fn(&VariantKeys) -> u64, new: New) {
        match self.keys.join(keys) {
            // The other responses were distinguished by too few variant keys.
            Some(true) => {
                self.variants.clear();
                self.examined.clear();
            }
            Some(false) => {}
            None => *self = Entry { keys: keys.clone(), ..Entry::default() },
        }
        let code = code(&self.keys);
        match new {
            New::Paths(paths) => {
                self.examined.retain(|(of, _)| *of != code);
                if self.examined.len() >= VARIANT_LIMIT {
                    self.examined.clear();
                }
                self.examined.push((code, paths));
            }
            New::Response(response) => {
                self.variants.retain(|(of, other)| *of != code || !other.is_like(&response));
                if self.variants.len() >= VARIANT_LIMIT {
                    self.variants.clear();
                }
                // Almost all paths have one.
                self.variants.reserve_exact(1);
                self.variants.push((code, response));
            }
        }
    }

    /// The load of this entry, for `path`.
    fn weight(&self, path: &[u8]) -> Load {
        let armed: usize =
            self.examined.iter().flat_map(|(_, paths)| paths.iter().map(Vec::len)).sum();
        let mut all = Load { entries: self.examined.len(), bytes: path.len() + armed, open: 0 };
        for (_, response) in &self.variants {
            let open = usize::from(matches!(response.content, Content::File(_)));
            all = all.with(Load { entries: 1, bytes: response.bytes(), open });
        }
        all
    }
}

impl Load {
    fn with(self, more: Load) -> Load {
        Load {
            entries: self.entries + more.entries,
            bytes: self.bytes + more.bytes,
            open: self.open + more.open,
        }
    }

    fn take_off(&mut self, less: Load) {
        self.entries = self.entries.saturating_sub(less.entries);
        self.bytes = self.bytes.saturating_sub(less.bytes);
        self.open = self.open.saturating_sub(less.open);
    }

    fn is_over_half(self, limits: &Limits) -> bool {
        self.entries > limits.entries / 2
            || self.bytes > limits.bytes / 2
            || self.open > limits.open / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(cache: &ResponseCache, target: &[u8], paths: &[&[u8]]) {
        insert(cache, target, &VariantKeys::default(), 0, paths);
    }

    fn insert(
        cache: &ResponseCache,
        target: &[u8],
        keys: &VariantKeys,
        code: u64,
        paths: &[&[u8]],
    ) {
        let armed = New::Paths(paths.iter().map(|path| path.to_vec()).collect());
        cache.insert(0, target, keys, |_| code, armed);
    }

    fn load(cache: &ResponseCache) -> Load {
        cache.generations.borrow().load
    }

    #[test]
    fn what_is_kept_is_counted_with_its_names() {
        let cache = ResponseCache::new(Limits::LOOP);
        note(&cache, b"/a", &[b"/srv/a", b"/srv"]);
        assert_eq!(load(&cache), Load { entries: 1, bytes: 2 + 6 + 4, open: 0 });
        note(&cache, b"/a", &[b"/srv"]);
        assert_eq!(load(&cache), Load { entries: 1, bytes: 2 + 4, open: 0 });
        cache.remove(0, b"/a");
        assert_eq!(load(&cache), Load::default());
    }

    #[test]
    fn responses_are_kept_apart_by_their_variant_keys() {
        let cache = ResponseCache::new(Limits::LOOP);
        let mut keys = VariantKeys::default();
        insert(&cache, b"/a", &keys, 0, &[b"/srv"]);
        assert_eq!(load(&cache).entries, 1);
        // A response that was cached without the variant key is removed.
        keys.join(&VariantKeys::one(&TAKES_GZIP)).unwrap();
        insert(&cache, b"/a", &keys, 1, &[b"/srv"]);
        assert_eq!(load(&cache).entries, 1);
        insert(&cache, b"/a", &VariantKeys::default(), 0, &[b"/srv"]);
        assert_eq!(load(&cache).entries, 2);
        for code in 0..100 {
            insert(&cache, b"/a", &keys, code, &[b"/srv"]);
        }
        assert!(load(&cache).entries <= VARIANT_LIMIT);
        cache.remove(0, b"/a");
        assert_eq!(load(&cache), Load::default());
    }

    #[test]
    fn what_is_asked_for_again_outlives_what_is_asked_for_once() {
        let cache = ResponseCache::new(Limits::THREAD);
        for number in 0..Limits::THREAD.entries * 4 {
            note(&cache, format!("/{number}").as_bytes(), &[]);
            let sought = Sought { host: 0, path: b"/0" };
            let mut generations = cache.generations.borrow_mut();
            assert!(generations.look_at(&sought, &cache.limits, |_| ()).is_some());
            assert!(generations.young.len() + generations.old.len() <= Limits::THREAD.entries);
        }
    }

    #[test]
    fn only_a_path_that_comes_again_is_worth_keeping() {
        let cache = ResponseCache::new(Limits::LOOP);
        let again = |host, path| cache.is_again(&Sought { host, path });
        assert!(!again(0, b"/a"));
        assert!(again(0, b"/a"));
        assert!(!again(1, b"/a"));
        assert!(!again(0, b"/b"));
    }

    static TAKES_GZIP: server::variant_key::VariantKey =
        server::variant_key::VariantKey { name: "gzip", of: |_| 0 };
}
