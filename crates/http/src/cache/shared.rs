//! Responses that all threads and processes of a generation share, as bytes.
//!
//! A response that one thread or process caches is also stored in a [`SharedCache`], from which the
//! others make their own [`CachedResponse`]. If variant keys distinguish the responses of a path, a
//! list of them has its place, and each response has a key of its own. The configuration of a
//! response is named by an id that is the same everywhere ([`server::plan::Layer::common_id`]): a
//! loop that has not merged it yet runs the phases once. The dependencies are generations of the
//! watch, which is shared as well.

use std::rc::Rc;
use std::sync::Arc;

use rt::{ChangeSource, SharedCache, WatchId};
use server::engine::Engine;
use server::plan::Place;
use server::request::Request;
use server::variant_key::{Inputs, VariantKeys};
use wire::Table;

use super::fields::{Reader, Writer};
use super::prepared;
use super::response::{CachedResponse, Content};
use super::store::{Lookup, PATH_LIMIT, ResponseCache};
use super::texts::{Text, Texts};
use crate::persistence::MadeBy;

/// Responses of one path that are stored beside each other.
#[derive(Clone, Copy)]
struct Kind {
    header_only: bool,
    not_modified: bool,
}

impl Kind {
    /// A response to a request without conditions.
    fn of(request: &Request) -> Kind {
        Kind { header_only: request.head.header_only, not_modified: false }
    }
}

/// Writes the key of a path's responses.
fn write_key(host: u32, path: &[u8], kind: Kind, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&host.to_ne_bytes());
    out.push(u8::from(kind.header_only) | u8::from(kind.not_modified) << 1);
    out.extend_from_slice(path);
    // No path is the beginning of another one's key and value.
    out.push(0);
}

/// Makes it the key of the response to `request`, by variant keys. They are part of it: their
/// values alone mean something else in another order.
fn add_variant(keys: &VariantKeys, request: &Request, key: &mut Vec<u8>) {
    const VARIANT: u8 = 4;
    if let Some(kind) = key.get_mut(size_of::<u32>()) {
        *kind |= VARIANT;
    }
    keys.addresses().for_each(|address| key.extend_from_slice(&address.to_ne_bytes()));
    key.extend_from_slice(&keys.of(request).to_ne_bytes());
}

/// The first number of a value.
#[derive(Clone, Copy)]
enum Is {
    Response,
    /// The variant keys of the responses.
    Keys,
}

/// What is found under a key: a response, or the variant keys that are part of its own key.
type Found = Result<CachedResponse, VariantKeys>;

impl CachedResponse {
    /// Stores the response for the others, unless it depends on state of this loop alone. Returns
    /// whether it did.
    fn share(&self, cache: &SharedCache, key: &[u8]) -> bool {
        let mut out = Writer(Vec::new());
        self.write(&mut out).is_some() && cache.put(key, &out.0)
    }

    fn write(&self, out: &mut Writer) -> Option<()> {
        let content = self.in_memory()?;
        let dependencies = self.validity.as_ref()?.dependencies()?;
        if !self.env.is_empty() || !self.redirected.is_empty() {
            return None;
        }
        out.number(Is::Response as u64);
        out.number(self.layer.common_id()?);
        out.number(dependencies.len() as u64);
        for (id, generation) in dependencies {
            out.number(id.number().into());
            out.number(generation);
        }
        out.number(self.status.into());
        out.number(self.inputs.bits().into());
        out.number(self.body_bytes);
        let is_by = |kind| self.made_by == Some(kind);
        let (by_handler, by_earlier) = (is_by(MadeBy::Handler), is_by(MadeBy::EarlierPhase));
        let facts = [self.chunked, self.has_early_hints, by_handler, by_earlier];
        out.number((0..).zip(facts).map(|(bit, is_so)| u64::from(is_so) << bit).sum());
        out.option(self.authority.as_ref(), Writer::authority);
        out.number(self.has_conditions.into());
        for modified in [self.modified, self.sent_modified] {
            out.option(modified, |out, modified| out.number(modified.cast_unsigned()));
        }
        out.file(&self.file);
        out.option(self.length_at.as_ref(), Writer::range);
        out.option(self.timed.as_ref(), Writer::timed);
        out.texts(&self.texts.with(Text::Content, content));
        Some(())
    }

    /// Makes a response of `from` for a request of this loop, without its block of texts, which has
    /// `length` bytes and ends as `from` does. `None` if its configuration is not merged here yet,
    /// or if it is no longer fresh.
    fn read(
        request: &Request,
        kind: Kind,
        mut from: Reader<'_>,
        length: usize,
        place: &mut Option<Place>,
    ) -> Option<CachedResponse> {
        let engine: &Engine = &request.engine;
        let ChangeSource::Watcher(watcher) = engine.handle.change_source() else { return None };
        let Place { layer, plan, .. } = find_place(request, from.number()?, place)?;
        for _ in 0..from.number()? {
            let (id, generation) = (WatchId::numbered(from.small()?), from.number()?);
            if watcher.generation(id) != generation {
                return None;
            }
        }
        let status = from.small()?;
        let inputs = Inputs::of_bits(from.small()?);
        let (body_bytes, facts) = (from.number()?, from.number()?);
        let authority = from.option(Reader::authority)?;
        let has_conditions = from.number()? != 0;
        let mut modified = || Some(from.option(Reader::number)?.map(u64::cast_signed));
        let (modified, sent_modified) = (modified()?, modified()?);
        let file = from.file()?;
        let (length_at, timed) = (from.option(Reader::range)?, from.option(Reader::timed)?);
        let offsets = from.offsets(length)?;
        let response = CachedResponse {
            plan: plan.clone(),
            layer: layer.clone(),
            file,
            env: Table::new(),
            redirected: Box::default(),
            status,
            length_at,
            timed,
            content: Content::Own,
            body_bytes,
            chunked: facts & 1 != 0,
            has_early_hints: facts & 2 != 0,
            made_by: match facts & 12 {
                0 => None,
                4 => Some(MadeBy::Handler),
                _ => Some(MadeBy::EarlierPhase),
            },
            sent_modified,
            has_conditions,
            modified,
            texts: Texts { block: Vec::new(), offsets },
            prepared: prepared::Place::of(request),
            header_only: kind.header_only,
            inputs,
            authority,
            validity: None,
        };
        response.is_for(request).then_some(response)
    }
}

/// The configuration with this common id for the request's host. `last` is the one that was found
/// before, which most requests have.
fn find_place<'l>(request: &Request, id: u64, last: &'l mut Option<Place>) -> Option<&'l Place> {
    let is_it = |place: &Place| {
        place.layer.common_id() == Some(id) && Arc::ptr_eq(&place.host, &request.host)
    };
    if !last.as_ref().is_some_and(is_it) {
        let plans = &request.engine.plans;
        let layer = plans.common(id)?;
        let plan = plans.plan(&request.host, &layer);
        *last = Some(Place { host: request.host.clone(), layer, plan });
    }
    last.as_ref()
}

impl ResponseCache {
    /// The response that some thread or process has made.
    pub(super) fn get_shared(&self, request: &Request, path: &[u8], not_modified: bool) -> Lookup {
        let Some(cache) = request.engine.server.shared_responses.get() else {
            return Lookup::Miss;
        };
        if path.len() > PATH_LIMIT {
            return Lookup::Miss;
        }
        let kind = Kind { not_modified, ..Kind::of(request) };
        let shared = &mut *self.shared.borrow_mut();
        write_key(request.host.id, path, kind, &mut shared.key);
        shared.take_block();
        let found = match shared.find(cache, request, kind) {
            Some(Err(keys)) => {
                add_variant(&keys, request, &mut shared.key);
                shared.find(cache, request, kind)
            }
            found => found,
        };
        let Some(Ok(response)) = found else { return Lookup::Miss };
        let response = shared.put(response);
        if response.suits(request) { Lookup::Hit(response) } else { Lookup::Unsuitable }
    }

    /// Stores a response for the others. Returns whether it did.
    pub(super) fn share(&self, request: &Request, path: &[u8], response: &CachedResponse) -> bool {
        let Some(cache) = request.engine.server.shared_responses.get() else { return false };
        let kind = Kind { not_modified: response.is_not_modified(), ..Kind::of(request) };
        let shared = &mut *self.shared.borrow_mut();
        write_key(request.host.id, path, kind, &mut shared.key);
        let own = &request.depends.variant_keys;
        if own.is_empty() {
            return response.share(cache, &shared.key);
        }
        if shared.known.join(own).is_none() {
            return false;
        }
        // Keys are only added, since other responses may depend on those that are there.
        let mut keys = match shared.find(cache, request, kind) {
            Some(Err(keys)) => keys,
            _ => VariantKeys::default(),
        };
        if keys.join(own).is_none() {
            keys.clone_from(own);
        }
        let mut list = Writer(Vec::new());
        list.number(Is::Keys as u64);
        keys.addresses().for_each(|address| list.number(address));
        cache.put(&shared.key, &list.0);
        add_variant(&keys, request, &mut shared.key);
        response.share(cache, &shared.key)
    }

    /// Whether any thread or process received a request for the path recently; records this one.
    /// `None` if nothing is shared.
    pub(super) fn is_again_anywhere(&self, request: &Request, path: &[u8]) -> Option<bool> {
        let cache = request.engine.server.shared_responses.get()?;
        let key = &mut self.shared.borrow_mut().key;
        write_key(request.host.id, path, Kind::of(request), key);
        Some(cache.is_again(key))
    }
}

/// Memory for look-ups of shared responses. A thread serves one request at a time, so it makes them
/// all in the same place.
#[derive(Default)]
pub(super) struct Shared {
    key: Vec<u8>,
    block: Vec<u8>,
    /// The response of the last look-up; its memory is used again once the request is done.
    last: Option<Rc<CachedResponse>>,
    /// The configuration of the last one.
    place: Option<Place>,
    /// The variant keys that responses of this loop have depended on.
    known: VariantKeys,
}

impl Shared {
    /// Takes back the block of the last response, unless it is in use.
    fn take_block(&mut self) {
        if let Some(last) = self.last.as_mut().and_then(Rc::get_mut) {
            self.block = std::mem::take(&mut last.texts.block);
        }
    }

    /// What is under `key`; its texts are in `block`.
    fn find(&mut self, cache: &SharedCache, request: &Request, kind: Kind) -> Option<Found> {
        let Shared { key, block, place, known, .. } = self;
        cache.get(key, block, |value| {
            let mut from = Reader(value);
            if from.number()? == Is::Response as u64 {
                let length = key.len() + value.len();
                return CachedResponse::read(request, kind, from, length, place).map(Ok);
            }
            known.with_addresses(std::iter::from_fn(|| from.number())).map(Err)
        })
    }

    /// Puts a response with its block where the last one was.
    fn put(&mut self, mut response: CachedResponse) -> Rc<CachedResponse> {
        response.texts.block = std::mem::take(&mut self.block);
        if let Some(last) = &mut self.last
            && let Some(place) = Rc::get_mut(last)
        {
            *place = response;
            return last.clone();
        }
        self.last.insert(Rc::new(response)).clone()
    }
}
