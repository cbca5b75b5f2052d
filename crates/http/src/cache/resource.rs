//! Files that were answered before, ready to be answered again without a look at the file system.
//!
//! Only an answer that pure hooks alone took part in ([`server::hooks::HookDef::pure`]) is
//! kept, and only as long as nothing that was looked at on its way has changed: every path
//! component, every place where an `.htaccess` could appear, and the file itself are watched, or
//! looked at again where there is no watch ([`server::files::validity`]). A resource is armed first
//! (its paths are watched), and kept when the next request has found the same under watch. Where
//! the answers of a target depend on [facets](server::facet::Facet) of the request, each
//! variant is armed and kept by itself.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;
use hashbrown::{Equivalent, HashMap};
use rt::Witness;

use crate::cache::repeat::Repeats;
use crate::respond::ReusableHead;
use server::body::FileSlice;
use server::facet::Facets;
use server::files::validity::Basis;
use server::plan::{Layer, Plan};
use server::request::{FileInfo, Request};

/// The most resources that a loop keeps.
pub const RESOURCE_LIMIT: usize = 16 * 1024;

/// The longest target that is kept, bytes. Clients can spell one file's path in any number of ways,
/// and long ones are hardly ever asked for twice.
pub const TARGET_LIMIT: usize = 512;

/// The most bytes that a loop keeps in memory: file content, heads, and the names of both.
pub const CONTENT_LIMIT: usize = 64 * 1024 * 1024;

/// The most heads that a loop knows by their bytes.
pub const HEAD_LIMIT: usize = 512;

/// The most files that a loop keeps open for resources that are not in memory.
pub const OPEN_LIMIT: usize = 512;

/// A file up to this size is kept in memory, bytes.
pub const IN_MEMORY_BYTES: u64 = 32 * 1024;

/// The longest content that was made from a file, by compression say, and is kept, bytes. It has
/// to be made before its first byte leaves.
pub const MADE_BYTES: usize = 256 * 1024;

/// The longest file whose content is made as a whole to be kept, bytes: others do not wait for it.
pub const MADE_FROM_BYTES: u64 = 1024 * 1024;

/// The most answers that are kept for one target.
const VARIANT_LIMIT: usize = 8;

/// The most paths that a resource may depend on.
const DEPENDENCY_LIMIT: usize = 256;

/// Where the content comes from.
pub enum Content {
    /// Memory; with its chunks' heads where it leaves chunked.
    Memory(Bytes),
    /// An open file.
    File(FileSlice),
}

/// A file, with everything that its answer needs.
pub struct Resource {
    /// The merged configuration it is answered under.
    pub layer: Rc<Layer>,
    /// That configuration's plan.
    pub plan: Rc<Plan>,
    /// The file's name, for logs.
    pub filename: Vec<u8>,
    /// The path after redirects to an index file, for logs.
    pub uri: Vec<u8>,
    /// The media type, for logs.
    pub content_type: Option<Vec<u8>>,
    /// The handler, for logs.
    pub handler: Option<std::borrow::Cow<'static, [u8]>>,
    /// What stands there.
    pub file: FileInfo,
    /// Header lines before the connection's own, from behind `Date`.
    pub before: Vec<u8>,
    /// Header lines after the connection's own, and the empty line.
    pub after: Vec<u8>,
    /// The content.
    pub content: Content,
    /// Bytes of the body, for logs.
    pub body_bytes: u64,
    /// It leaves chunked, which HTTP/1.0 does not know.
    pub chunked: bool,
    /// What it depends on; there from when it is kept.
    basis: Option<Basis>,
}

impl Resource {
    /// Whether nothing that it depends on has changed: with a watch, as of the last drain.
    pub fn is_fresh(&self, witness: Witness<'_>) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.is_fresh(witness))
    }

    fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        let names = self.filename.len() + self.uri.len();
        let basis = self.basis.as_ref().map_or(0, Basis::bytes);
        // Its configuration may be one that no loop keeps any more.
        let layer = self.layer.foreign_bytes();
        content + self.before.len() + self.after.len() + names + basis + layer
    }
}

/// A resource in the making: its paths are watched (or were seen), from before it was looked at.
pub struct Armed {
    paths: Vec<Vec<u8>>,
    basis: Basis,
}

/// What a request that goes the long way may teach.
pub enum Lesson {
    /// Nothing: the answer is kept, though this request can't have it.
    None,
    /// What its answer depends on.
    Paths,
    /// The answer itself.
    Answer(Armed),
}

enum Kept {
    Armed(Vec<Vec<u8>>),
    Ready(Rc<Resource>),
}

/// What is known of a target.
#[derive(Default)]
struct Known {
    /// What its answers depend on.
    facets: Facets,
    /// Answers, by what the facets were.
    variants: Vec<(u64, Kept)>,
}

impl Known {
    fn variant(&self, request: &Request) -> Option<&Kept> {
        let code = self.facets.of(request);
        self.variants.iter().find(|(of, _)| *of == code).map(|(_, kept)| kept)
    }
}

/// How much a loop keeps.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    entries: usize,
    bytes: usize,
    open: usize,
    heads: usize,
}

impl Limits {
    /// For a loop with many connections.
    pub const LOOP: Limits = Limits {
        entries: RESOURCE_LIMIT,
        bytes: CONTENT_LIMIT,
        open: OPEN_LIMIT,
        heads: HEAD_LIMIT,
    };
    /// For a thread with one connection, of which a server can have hundreds.
    pub const THREAD: Limits = Limits { entries: 512, bytes: 1024 * 1024, open: 16, heads: 16 };
}

/// The resources of one loop, by host and target.
pub struct Resources {
    kept: RefCell<HashMap<Key, Known>>,
    load: RefCell<Load>,
    limits: Limits,
    /// Heads that some of them were given to.
    pub(crate) repeats: Rc<Repeats>,
}

#[derive(PartialEq, Eq, Hash)]
struct Key {
    host: u32,
    target: Box<[u8]>,
}

/// A [`Key`] to look up with.
#[derive(Hash)]
struct Sought<'t> {
    host: u32,
    target: &'t [u8],
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.host == key.host && *self.target == *key.target
    }
}

#[derive(Default)]
struct Load {
    entries: usize,
    bytes: usize,
    open: usize,
}

impl Resources {
    /// None yet, and never more than `limits`.
    pub fn new(limits: Limits) -> Resources {
        let repeats = Rc::new(Repeats::new(limits.heads));
        Resources { kept: RefCell::default(), load: RefCell::default(), limits, repeats }
    }

    /// The answer to a request for a target, if it is known.
    pub fn get(&self, request: &Request, target: &[u8]) -> Option<Rc<Resource>> {
        let known = self.kept.borrow();
        match known.get(&Sought { host: request.host.id, target })?.variant(request)? {
            Kept::Ready(resource) if !resource.chunked || request.protocol >= 1001 => {
                Some(resource.clone())
            }
            _ => None,
        }
    }

    /// Begins to watch what the answer looked at before. To be called before the request looks
    /// again.
    pub fn arm(&self, witness: Witness<'_>, request: &Request) -> Lesson {
        let (host, target) = (request.host.id, request.original_target());
        let known = self.kept.borrow();
        let known = known.get(&Sought { host, target }).and_then(|known| known.variant(request));
        match known {
            None => Lesson::Paths,
            Some(Kept::Ready(_)) => Lesson::None,
            Some(Kept::Armed(paths)) => match Basis::of(witness, paths) {
                Some(basis) => Lesson::Answer(Armed { paths: paths.clone(), basis }),
                None => Lesson::Paths,
            },
        }
    }

    /// Notes which paths the answer looked at.
    pub fn note(&self, request: &Request, looked_at: Vec<Vec<u8>>) {
        let mut paths = looked_at;
        paths.sort();
        paths.dedup();
        if paths.len() <= DEPENDENCY_LIMIT {
            self.insert_for(request, Kept::Armed(paths));
        }
    }

    /// Keeps a resource, if it looked at nothing but what was armed and nothing moved meanwhile.
    pub fn keep(&self, witness: Witness<'_>, armed: Armed, request: &Request, resource: Resource) {
        if let Witness::Watcher(watcher) = witness {
            watcher.drain();
        }
        let Armed { paths, mut basis } = armed;
        let trace = request.trace.clone().unwrap_or_default();
        let is_known = trace.paths.iter().all(|path| paths.binary_search(path).is_ok());
        let is_fresh = is_known && basis.is_fresh(witness);
        basis.leave_to(&request.filename, trace.links_matter);
        let now_us = request.engine.handle.clock().wall_us();
        if !is_fresh || !basis.is_settled(now_us) {
            return self.note(request, trace.paths);
        }
        let resource = Resource { basis: Some(basis), ..resource };
        self.insert_for(request, Kept::Ready(Rc::new(resource)));
    }

    /// Forgets a target of which an answer has changed.
    pub fn forget(&self, host: u32, target: &[u8]) {
        if let Some(removed) = self.kept.borrow_mut().remove(&Sought { host, target }) {
            self.load.borrow_mut().take_off(removed.weight(target));
            for (_, kept) in &removed.variants {
                if let Kept::Ready(resource) = kept {
                    self.repeats.forget_answer(resource);
                }
            }
        }
    }

    fn insert_for(&self, request: &Request, kept: Kept) {
        let target = request.original_target();
        let code = |facets: &Facets| facets.of(request);
        self.insert(request.host.id, target, &request.facets, code, kept);
    }

    /// `code` says what the facets were in the request.
    fn insert(
        &self,
        host: u32,
        target: &[u8],
        facets: &Facets,
        code: impl Fn(&Facets) -> u64,
        kept: Kept,
    ) {
        if target.len() > TARGET_LIMIT {
            return;
        }
        let full = {
            let (load, limits) = (self.load.borrow(), &self.limits);
            load.entries >= limits.entries || load.bytes >= limits.bytes || load.open >= limits.open
        };
        if full {
            self.kept.borrow_mut().clear();
            self.repeats.clear();
            *self.load.borrow_mut() = Load::default();
        }
        let mut all = self.kept.borrow_mut();
        let known = all.entry(Key { host, target: target.into() }).or_default();
        let mut load = self.load.borrow_mut();
        load.take_off(known.weight(target));
        match known.facets.join(facets) {
            // The others are told apart by too little, now that it is known what counts.
            Some(true) => known.variants.clear(),
            Some(false) => {}
            None => *known = Known { facets: facets.clone(), variants: Vec::new() },
        }
        let code = code(&known.facets);
        known.variants.retain(|(of, _)| *of != code);
        if known.variants.len() >= VARIANT_LIMIT {
            known.variants.clear();
        }
        known.variants.push((code, kept));
        load.put_on(known.weight(target));
    }
}

impl Known {
    /// What all that is kept for `target` takes; nothing where that is nothing.
    fn weight(&self, target: &[u8]) -> Load {
        let mut all = Load::default();
        for (_, kept) in &self.variants {
            all.put_on(kept.weight(target));
        }
        all
    }
}

impl Kept {
    /// What an answer for `target` takes.
    fn weight(&self, target: &[u8]) -> Load {
        let (bytes, open) = match self {
            Kept::Ready(resource) => {
                let is_open = matches!(resource.content, Content::File(_));
                (resource.bytes(), usize::from(is_open))
            }
            Kept::Armed(paths) => (paths.iter().map(Vec::len).sum(), 0),
        };
        Load { entries: 1, bytes: bytes + target.len(), open }
    }
}

impl Load {
    fn put_on(&mut self, more: Load) {
        self.entries += more.entries;
        self.bytes += more.bytes;
        self.open += more.open;
    }

    fn take_off(&mut self, less: Load) {
        self.entries = self.entries.saturating_sub(less.entries);
        self.bytes = self.bytes.saturating_sub(less.bytes);
        self.open = self.open.saturating_sub(less.open);
    }
}

impl Resource {
    /// A resource from an answered request, whose body is `content`.
    pub fn new(request: &Request, head: ReusableHead, content: Content) -> Resource {
        Resource {
            layer: request.layer.clone(),
            plan: request.plan.clone(),
            filename: request.filename.clone(),
            uri: request.uri.clone(),
            content_type: request.content_type.clone(),
            handler: request.handler.clone().filter(|_| !request.handler_of_type),
            file: request.file,
            before: head.before,
            after: head.after,
            body_bytes: request.body.length().unwrap_or_default(),
            chunked: head.chunked,
            content,
            basis: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(resources: &Resources, target: &[u8], paths: &[&[u8]]) {
        let kept = Kept::Armed(paths.iter().map(|path| path.to_vec()).collect());
        resources.insert(0, target, &Facets::default(), |_| 0, kept);
    }

    #[test]
    fn what_is_kept_is_counted_with_its_names() {
        let resources = Resources::new(Limits::LOOP);
        note(&resources, b"/a", &[b"/srv/a", b"/srv"]);
        assert_eq!(resources.load.borrow().bytes, 2 + 6 + 4);
        note(&resources, b"/a", &[b"/srv"]);
        assert_eq!(resources.load.borrow().bytes, 2 + 4);
        assert_eq!(resources.load.borrow().entries, 1);
        resources.forget(0, b"/a");
        assert_eq!(resources.load.borrow().bytes, 0);
    }

    #[test]
    fn a_long_spelling_of_a_path_is_not_kept() {
        let resources = Resources::new(Limits::LOOP);
        note(&resources, &[b'/'; TARGET_LIMIT + 1], &[]);
        assert!(resources.kept.borrow().is_empty());
        note(&resources, &[b'/'; TARGET_LIMIT], &[]);
        assert_eq!(resources.kept.borrow().len(), 1);
    }

    #[test]
    fn answers_are_kept_apart_by_what_their_facets_were() {
        let resources = Resources::new(Limits::LOOP);
        let armed = || Kept::Armed(vec![b"/srv".to_vec()]);
        let mut facets = Facets::default();
        resources.insert(0, b"/a", &facets, |_| 0, armed());
        assert_eq!(resources.load.borrow().entries, 1);
        // What was kept without the facet says nothing any more.
        facets.join(&Facets::one(&TAKES_GZIP)).unwrap();
        resources.insert(0, b"/a", &facets, |_| 1, armed());
        assert_eq!(resources.load.borrow().entries, 1);
        resources.insert(0, b"/a", &Facets::default(), |_| 0, armed());
        assert_eq!(resources.load.borrow().entries, 2);
        for code in 0..100 {
            resources.insert(0, b"/a", &facets, |_| code, armed());
        }
        assert!(resources.load.borrow().entries <= VARIANT_LIMIT);
        resources.forget(0, b"/a");
        assert_eq!((resources.load.borrow().entries, resources.load.borrow().bytes), (0, 0));
    }

    static TAKES_GZIP: server::facet::Facet = server::facet::Facet { name: "gzip", of: |_| 0 };
}
