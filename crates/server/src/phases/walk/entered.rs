//! Directories that walks have entered, so that others begin there.
//!
//! Nearly all requests are for names in a few directories. The walk from the root to a directory is
//! the same for each of them, while what it examined is: entries, links and `.htaccess` files, all
//! of which are facts of the mirror, and the configuration before it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};
use rt::ChangeSource;

use crate::engine::Engine;
use crate::engine::plan::Layer;
use crate::files::mirror::Fact;
use crate::phases::walk::gathered::Gathered;
use crate::request::{FileInfo, Request};

/// Most directories that a loop caches; at the limit the cache is cleared.
pub const ENTERED_LIMIT: usize = 4096;

/// The same for a thread with one connection, of which a server can have hundreds.
pub const ENTERED_LIMIT_OF_THREAD: usize = 256;

/// Most bytes of a directory's path; longer ones are not cached.
const PATH_BYTES_LIMIT: usize = 512;

/// Most facts on the way to a directory; with more it is not cached.
const FACTS_LIMIT: usize = 64;

/// Most directories that are looked up for a walk, the deepest first: names below a missing one are
/// not cached.
const LOOKED_UP_LIMIT: usize = 8;

/// What a walk has examined so far.
#[derive(Default)]
pub(super) struct Way {
    facts: Vec<Arc<Fact>>,
    links_matter: bool,
    /// It depends on more than facts.
    is_own: bool,
}

impl Way {
    /// Notes that a path is about to be examined, here and in the request's trace. Without a fact
    /// the walk is this request's own.
    pub fn examine(&mut self, request: &mut Request, path: &[u8], fact: Option<&Arc<Fact>>) {
        request.trace_fact(path, fact);
        match fact {
            Some(fact) => self.facts.push(fact.clone()),
            None => self.is_own = true,
        }
    }

    /// Notes that the presence of a symbolic link matters.
    pub fn note_links(&mut self, request: &mut Request) {
        self.links_matter = true;
        if let Some(trace) = &mut request.depends.trace {
            trace.links_matter = true;
        }
    }

    /// Notes that the walk depends on something that the request alone has read.
    pub fn make_own(&mut self) {
        self.is_own = true;
    }

    /// The number of facts so far; `None` if they are not all that the walk depends on.
    pub fn mark(&self) -> Option<usize> {
        (!self.is_own).then_some(self.facts.len())
    }
}

/// The state of a walk that has entered a directory.
pub(super) struct Entered {
    /// The configuration there.
    pub layer: Rc<Layer>,
    pub matching: Gathered,
    /// The directory's entry.
    pub found: FileInfo,
    /// The number of slashes in its path.
    pub depth: usize,
    facts: Box<[Arc<Fact>]>,
    links_matter: bool,
    /// The watch's stamp when the facts were last true: while it is the same, they are.
    stamp: Cell<u64>,
}

impl Entered {
    /// The state after the first `count` facts of a way that began in `begun`. `None` if there are
    /// too many.
    pub fn new(
        way: &Way,
        (begun, count): (Option<&Entered>, usize),
        (layer, matching): (&Rc<Layer>, &Gathered),
        (found, depth): (FileInfo, usize),
    ) -> Option<Entered> {
        let before = begun.map_or(&[][..], |begun| &begun.facts);
        let facts = [before, way.facts.get(..count)?].concat();
        (facts.len() <= FACTS_LIMIT).then(|| Entered {
            layer: layer.clone(),
            matching: matching.clone(),
            found,
            depth,
            facts: facts.into(),
            links_matter: way.links_matter,
            stamp: Cell::new(u64::MAX),
        })
    }

    /// Notes what it depends on, as the walk to it would.
    pub fn examine(&self, request: &mut Request, way: &mut Way) {
        way.links_matter = self.links_matter;
        if let Some(trace) = &mut request.depends.trace {
            trace.facts.extend_from_slice(&self.facts);
            trace.links_matter |= self.links_matter;
        }
    }

    /// Whether the way still leads here, as of the last drain.
    fn is_true(&self, engine: &Engine) -> bool {
        let ChangeSource::Watcher(watcher) = engine.handle.change_source() else { return false };
        let now = watcher.stamp();
        let holds = now == self.stamp.get() || self.facts.iter().all(|fact| fact.is_true(watcher));
        if holds {
            self.stamp.set(now);
        }
        holds
    }
}

/// A directory with its trailing slash, of a host, under the configuration before the walk.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    host: u32,
    before: u64,
    path: Box<[u8]>,
}

/// A borrowed [`Key`] for look-ups.
#[derive(Hash)]
struct Sought<'p> {
    host: u32,
    before: u64,
    path: &'p [u8],
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.host == key.host && self.before == key.before && *self.path == *key.path
    }
}

/// The directories of one loop.
pub struct EnteredCache {
    all: RefCell<HashMap<Key, Rc<Entered>>>,
    /// The [`PlanCache::generation`](crate::engine::plan::PlanCache::generation) of their
    /// configurations.
    generation: Cell<u64>,
    limit: usize,
}

impl EnteredCache {
    /// Returns an empty cache of at most `limit` directories.
    pub fn new(limit: usize) -> EnteredCache {
        EnteredCache { all: RefCell::default(), generation: Cell::new(0), limit }
    }

    /// The deepest known directory on the way to `full`, and the length of its path.
    pub(super) fn find(&self, request: &Request, full: &[u8]) -> Option<(usize, Rc<Entered>)> {
        let engine = &request.engine;
        self.follow(engine);
        let mut all = self.all.borrow_mut();
        if all.is_empty() {
            return None;
        }
        let mut end = full.len();
        for _ in 0..LOOKED_UP_LIMIT {
            end = full.get(..end)?.iter().rposition(|byte| *byte == b'/')? + 1;
            let (host, before) = (request.host.id, request.layer.id);
            let sought = Sought { host, before, path: full.get(..end)? };
            match all.get(&sought) {
                Some(entered) if entered.is_true(engine) => return Some((end, entered.clone())),
                Some(_) => drop(all.remove(&sought)),
                None => {}
            }
            end -= 1;
        }
        None
    }

    /// Caches the state of a walk in the directory at `path`.
    pub(super) fn keep(&self, request: &Request, before: &Layer, path: &[u8], entered: Entered) {
        self.follow(&request.engine);
        if path.len() > PATH_BYTES_LIMIT {
            return;
        }
        let mut all = self.all.borrow_mut();
        if all.len() >= self.limit {
            all.clear();
        }
        let key = Key { host: request.host.id, before: before.id, path: path.into() };
        all.insert(key, Rc::new(entered));
    }

    /// Clears the cache if configurations were removed since: nothing here keeps one alive.
    fn follow(&self, engine: &Engine) {
        let now = engine.plans.generation();
        if self.generation.replace(now) != now {
            self.all.borrow_mut().clear();
        }
    }
}
