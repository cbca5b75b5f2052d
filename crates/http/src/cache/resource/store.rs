//! The representations of one loop, by host and path.

use std::cell::RefCell;
use std::hash::BuildHasher;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, Equivalent, HashMap};
use rt::Witness;

use super::{CONTENT_LIMIT, Content, OPEN_LIMIT, Resource};
use server::engine::Engine;
use server::files::validity::{Basis, Trace};
use server::request::Request;
use server::variant_key::VariantKeys;

/// The most resources that a loop keeps.
pub const RESOURCE_LIMIT: usize = 16 * 1024;

/// The longest path that is kept, bytes. Clients can spell one file's path in any number of ways,
/// and long ones are hardly ever asked for twice.
pub const TARGET_LIMIT: usize = 512;

/// The most responses that are kept for one path.
const VARIANT_LIMIT: usize = 12;

/// The most paths that a resource may depend on.
const DEPENDENCY_LIMIT: usize = 256;

/// Paths that are watched, or were seen, from before a response is made.
pub struct Armed {
    paths: Vec<Vec<u8>>,
    basis: Basis,
}

/// What a request that goes through the phases may teach.
pub enum Lesson {
    /// Nothing.
    None,
    /// What its response depends on; where there is a mirror, the response itself.
    Paths,
    /// The response itself.
    Answer(Armed),
}

/// What is kept for a request.
pub enum Lookup {
    /// This. It may not be true any more.
    Kept(Rc<Resource>),
    /// Something that does not suit the request: its response can't be kept beside it.
    Unfit,
    /// Nothing.
    Nothing,
}

/// What is known of a path.
#[derive(Default)]
struct Known {
    /// What its responses depend on.
    keys: VariantKeys,
    /// Responses, by what the variant keys were.
    variants: Vec<(u64, Rc<Resource>)>,
    /// Paths that a response has looked at, by what the variant keys were; where there is no mirror.
    armed: Vec<(u64, Vec<Vec<u8>>)>,
}

/// How much a loop keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    entries: usize,
    bytes: usize,
    open: usize,
}

impl Limits {
    /// For a loop with many connections.
    pub const LOOP: Limits =
        Limits { entries: RESOURCE_LIMIT, bytes: CONTENT_LIMIT, open: OPEN_LIMIT };
    /// For a thread with one connection, of which a server can have hundreds.
    pub const THREAD: Limits = Limits { entries: 512, bytes: 1024 * 1024, open: 16 };
}

/// The resources of one loop, in two generations. When the young one reaches half of a limit it
/// becomes the old one; a use moves a path back. So paths that are requested once do not evict
/// those that are requested often.
pub struct Resources {
    generations: RefCell<Generations>,
    limits: Limits,
    hasher: DefaultHashBuilder,
    /// Hashes of paths that were asked for a short while ago: only what is asked for again is kept.
    once: RefCell<Vec<u64>>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<Key, Known>,
    old: HashMap<Key, Known>,
    /// What the young ones take.
    load: Load,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    host: u32,
    path: Box<[u8]>,
}

/// A [`Key`] to look up with.
#[derive(Hash)]
struct Sought<'t> {
    host: u32,
    path: &'t [u8],
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.host == key.host && *self.path == *key.path
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    entries: usize,
    bytes: usize,
    open: usize,
}

impl Resources {
    /// None yet, and never more than `limits`.
    pub fn new(limits: Limits) -> Resources {
        Resources {
            generations: RefCell::default(),
            limits,
            hasher: DefaultHashBuilder::default(),
            once: RefCell::new(vec![0; limits.entries]),
        }
    }

    /// The response to a request for a path, if it is known: without conditions, or that it was not
    /// modified.
    pub fn get(&self, request: &Request, path: &[u8], not_modified: bool) -> Lookup {
        let mut generations = self.generations.borrow_mut();
        let sought = Sought { host: request.host.id, path };
        let Some(known) = generations.get(&sought, &self.limits) else { return Lookup::Nothing };
        let code = known.keys.of(request);
        let is_it = |(of, resource): &&(u64, Rc<Resource>)| {
            *of == code && resource.is_not_modified() == not_modified && resource.is_for(request)
        };
        match known.variants.iter().find(is_it) {
            Some((_, resource)) if resource.suits(request) => Lookup::Kept(resource.clone()),
            Some(_) => Lookup::Unfit,
            None => Lookup::Nothing,
        }
    }

    /// Prepares to keep the response to a request that is about to go through the phases.
    pub fn arm(&self, witness: Witness<'_>, request: &Request, path: &[u8]) -> Lesson {
        if path.len() > TARGET_LIMIT {
            return Lesson::None;
        }
        let sought = Sought { host: request.host.id, path };
        if let Witness::Watcher(_) = witness {
            return if self.is_again(&sought) { Lesson::Paths } else { Lesson::None };
        }
        let mut generations = self.generations.borrow_mut();
        let known = generations.get(&sought, &self.limits);
        let armed = known.and_then(|known| {
            let code = known.keys.of(request);
            known.armed.iter().find(|(of, _)| *of == code).map(|(_, paths)| paths)
        });
        match armed {
            None => Lesson::Paths,
            Some(paths) => match Basis::of(witness, paths) {
                Some(basis) => Lesson::Answer(Armed { paths: paths.clone(), basis }),
                None => Lesson::Paths,
            },
        }
    }

    /// Whether the path was asked for a short while ago. It is asked for now.
    fn is_again(&self, sought: &Sought<'_>) -> bool {
        let hash = self.hasher.hash_one(sought);
        let mut once = self.once.borrow_mut();
        let index = usize::try_from(hash).unwrap_or(0) % once.len().max(1);
        once.get_mut(index).is_some_and(|once| std::mem::replace(once, hash) == hash)
    }

    /// Notes which paths the response looked at.
    pub fn note(&self, request: &Request, path: &[u8], looked_at: Vec<Vec<u8>>) {
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
                New::Armed(paths),
            );
        }
    }

    /// Keeps a resource, if it looked at nothing but what the basis is of and nothing changed
    /// meanwhile.
    pub fn keep(&self, lesson: Lesson, request: &Request, path: &[u8], resource: Resource) {
        let engine = &request.engine;
        let trace = request.depends.trace.clone().unwrap_or_default();
        let basis = match lesson {
            Lesson::None => return,
            Lesson::Paths => match Basis::of_facts(trace) {
                Some(basis) => basis,
                None => return,
            },
            Lesson::Answer(armed) => match armed.verified(engine, request, &trace) {
                Some(basis) => basis,
                None => return self.note(request, path, trace.paths),
            },
        };
        if let Witness::Watcher(watcher) = engine.handle.witness() {
            watcher.drain();
        }
        if basis.is_fresh(&engine.files, engine.handle.witness()) {
            let resource = Rc::new(Resource { basis: Some(basis), ..resource });
            let code = |keys: &VariantKeys| keys.of(request);
            self.insert(
                request.host.id,
                path,
                &request.depends.variant_keys,
                code,
                New::Ready(resource),
            );
        }
    }

    /// Forgets a path of which a response has changed.
    pub fn forget(&self, host: u32, path: &[u8]) {
        let generations = &mut *self.generations.borrow_mut();
        let sought = Sought { host, path };
        if let Some(removed) = generations.young.remove(&sought) {
            generations.load.take_off(removed.weight(path));
        }
        generations.old.remove(&sought);
    }

    /// `code` says what the variant keys were in the request.
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
        let mut known = match generations.young.remove(&sought) {
            Some(known) => {
                generations.load.take_off(known.weight(path));
                known
            }
            None => generations.old.remove(&sought).unwrap_or_default(),
        };
        known.add(keys, code, new);
        generations.put(Key { host, path: path.into() }, known, &self.limits);
    }
}

/// What is to be kept.
enum New {
    Armed(Vec<Vec<u8>>),
    Ready(Rc<Resource>),
}

impl Armed {
    /// The basis of a response that was made meanwhile, if it looked at nothing else.
    fn verified(self, engine: &Engine, request: &Request, trace: &Trace) -> Option<Basis> {
        let Armed { paths, mut basis } = self;
        let is_known = trace.paths.iter().all(|path| paths.binary_search(path).is_ok());
        let is_fresh = is_known && basis.is_fresh(&engine.files, engine.handle.witness());
        basis.leave_to(&request.resource.filename, trace.links_matter);
        (is_fresh && basis.is_settled(engine.handle.clock().wall_us())).then_some(basis)
    }
}

impl Generations {
    fn get(&mut self, sought: &Sought<'_>, limits: &Limits) -> Option<&Known> {
        if !self.young.contains_key(sought)
            && let Some((key, known)) = self.old.remove_entry(sought)
        {
            self.put(key, known, limits);
        }
        self.young.get(sought)
    }

    fn put(&mut self, key: Key, known: Known, limits: &Limits) {
        let weight = known.weight(&key.path);
        if self.load.with(weight).is_over_half(limits) {
            self.old = std::mem::take(&mut self.young);
            self.load = Load::default();
        }
        self.load = self.load.with(weight);
        self.young.insert(key, known);
    }
}

impl Known {
    fn add(&mut self, keys: &VariantKeys, code: impl Fn(&VariantKeys) -> u64, new: New) {
        match self.keys.join(keys) {
            // More variant keys count now: the others were distinguished by too few.
            Some(true) => {
                self.variants.clear();
                self.armed.clear();
            }
            Some(false) => {}
            None => *self = Known { keys: keys.clone(), ..Known::default() },
        }
        let code = code(&self.keys);
        match new {
            New::Armed(paths) => {
                self.armed.retain(|(of, _)| *of != code);
                if self.armed.len() >= VARIANT_LIMIT {
                    self.armed.clear();
                }
                self.armed.push((code, paths));
            }
            New::Ready(resource) => {
                self.variants.retain(|(of, other)| *of != code || !other.is_like(&resource));
                if self.variants.len() >= VARIANT_LIMIT {
                    self.variants.clear();
                }
                self.variants.push((code, resource));
            }
        }
    }

    /// What all that is kept for `path` takes.
    fn weight(&self, path: &[u8]) -> Load {
        let armed: usize =
            self.armed.iter().flat_map(|(_, paths)| paths.iter().map(Vec::len)).sum();
        let mut all = Load { entries: self.armed.len(), bytes: path.len() + armed, open: 0 };
        for (_, resource) in &self.variants {
            let open = usize::from(matches!(resource.content, Content::File(_)));
            all = all.with(Load { entries: 1, bytes: resource.bytes(), open });
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

    fn note(resources: &Resources, target: &[u8], paths: &[&[u8]]) {
        insert(resources, target, &VariantKeys::default(), 0, paths);
    }

    fn insert(
        resources: &Resources,
        target: &[u8],
        keys: &VariantKeys,
        code: u64,
        paths: &[&[u8]],
    ) {
        let armed = New::Armed(paths.iter().map(|path| path.to_vec()).collect());
        resources.insert(0, target, keys, |_| code, armed);
    }

    fn load(resources: &Resources) -> Load {
        resources.generations.borrow().load
    }

    #[test]
    fn what_is_kept_is_counted_with_its_names() {
        let resources = Resources::new(Limits::LOOP);
        note(&resources, b"/a", &[b"/srv/a", b"/srv"]);
        assert_eq!(load(&resources), Load { entries: 1, bytes: 2 + 6 + 4, open: 0 });
        note(&resources, b"/a", &[b"/srv"]);
        assert_eq!(load(&resources), Load { entries: 1, bytes: 2 + 4, open: 0 });
        resources.forget(0, b"/a");
        assert_eq!(load(&resources), Load::default());
    }

    #[test]
    fn responses_are_kept_apart_by_their_variant_keys() {
        let resources = Resources::new(Limits::LOOP);
        let mut keys = VariantKeys::default();
        insert(&resources, b"/a", &keys, 0, &[b"/srv"]);
        assert_eq!(load(&resources).entries, 1);
        // What was kept without the variant key says nothing any more.
        keys.join(&VariantKeys::one(&TAKES_GZIP)).unwrap();
        insert(&resources, b"/a", &keys, 1, &[b"/srv"]);
        assert_eq!(load(&resources).entries, 1);
        insert(&resources, b"/a", &VariantKeys::default(), 0, &[b"/srv"]);
        assert_eq!(load(&resources).entries, 2);
        for code in 0..100 {
            insert(&resources, b"/a", &keys, code, &[b"/srv"]);
        }
        assert!(load(&resources).entries <= VARIANT_LIMIT);
        resources.forget(0, b"/a");
        assert_eq!(load(&resources), Load::default());
    }

    #[test]
    fn what_is_asked_for_again_outlives_what_is_asked_for_once() {
        let resources = Resources::new(Limits::THREAD);
        for number in 0..Limits::THREAD.entries * 4 {
            note(&resources, format!("/{number}").as_bytes(), &[]);
            let sought = Sought { host: 0, path: b"/0" };
            let mut generations = resources.generations.borrow_mut();
            assert!(generations.get(&sought, &resources.limits).is_some());
            assert!(generations.young.len() + generations.old.len() <= Limits::THREAD.entries);
        }
    }

    #[test]
    fn only_a_path_that_comes_again_is_worth_keeping() {
        let resources = Resources::new(Limits::LOOP);
        let again = |host, path| resources.is_again(&Sought { host, path });
        assert!(!again(0, b"/a"));
        assert!(again(0, b"/a"));
        assert!(!again(1, b"/a"));
        assert!(!again(0, b"/b"));
    }

    static TAKES_GZIP: server::variant_key::VariantKey =
        server::variant_key::VariantKey { name: "gzip", of: |_| 0 };
}
