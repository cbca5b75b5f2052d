//! Responses that all threads and processes of a generation share, as bytes.
//!
//! A response that one thread or process caches is also stored in a [`SharedCache`], from which the
//! others make their own [`CachedResponse`]. The configuration of a response is named by an id that
//! is the same everywhere ([`server::plan::Layer::common_id`]): a loop that has not merged it yet
//! runs the phases once. The dependencies are generations of the watch, which is shared as well.

use std::rc::Rc;
use std::sync::Arc;

use rt::{ChangeSource, SharedCache, WatchId};
use server::engine::Engine;
use server::plan::Place;
use server::request::{FileInfo, FileKind, Request};
use server::variant_key::Inputs;

use super::response::{Authority, CachedResponse, Content};
use super::store::{Lookup, PATH_LIMIT, ResponseCache};
use super::texts::{Places, TEXTS, Text, Texts};

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

/// Writes the key of a path's response.
fn write_key(host: u32, path: &[u8], kind: Kind, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&host.to_ne_bytes());
    out.push(u8::from(kind.header_only) | u8::from(kind.not_modified) << 1);
    out.extend_from_slice(path);
    // No path is the beginning of another one's key and value.
    out.push(0);
}

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
        if self.timed.is_some() {
            return None;
        }
        out.number(self.layer.common_id()?);
        out.number(dependencies.len() as u64);
        for (id, generation) in dependencies {
            out.number(id.number().into());
            out.number(generation);
        }
        out.number(self.status.into());
        out.number(self.inputs.bits().into());
        out.number(self.body_bytes);
        out.number(self.chunked.into());
        out.option(self.authority.as_ref(), Writer::authority);
        out.number(self.has_conditions.into());
        for modified in [self.modified, self.sent_modified] {
            out.option(modified, |out, modified| out.number(modified.cast_unsigned()));
        }
        out.file(&self.file);
        out.option(self.length_at.as_ref(), |out, at| {
            out.number(at.start as u64);
            out.number(at.end as u64);
        });
        out.texts(&self.texts.with(Text::Content, content));
        Some(())
    }

    /// Makes the response of a stored value for a request of this loop, without its block of texts:
    /// `value`, and `before` bytes in front of it. `None` if its configuration is not merged here
    /// yet, or if it is no longer fresh.
    fn read(
        request: &Request,
        kind: Kind,
        value: &[u8],
        before: usize,
        place: &mut Option<Place>,
    ) -> Option<CachedResponse> {
        let engine: &Engine = &request.engine;
        let ChangeSource::Watcher(watcher) = engine.handle.change_source() else { return None };
        let mut from = Reader(value);
        let Place { layer, plan, .. } = find_place(request, from.number()?, place)?;
        for _ in 0..from.number()? {
            let (id, generation) = (WatchId::numbered(from.small()?), from.number()?);
            if watcher.generation(id) != generation {
                return None;
            }
        }
        let status = from.small()?;
        let inputs = Inputs::of_bits(from.small()?);
        let (body_bytes, chunked) = (from.number()?, from.number()? != 0);
        let authority = from.option(Reader::authority)?;
        let has_conditions = from.number()? != 0;
        let mut modified = || Some(from.option(Reader::number)?.map(u64::cast_signed));
        let (modified, sent_modified) = (modified()?, modified()?);
        let file = from.file()?;
        let length_at = from.option(|from| Some(from.small()?..from.small()?))?;
        let places = from.places(before + value.len())?;
        let response = CachedResponse {
            plan: plan.clone(),
            layer: layer.clone(),
            file,
            status,
            length_at,
            timed: None,
            content: Content::Own,
            body_bytes,
            chunked,
            sent_modified,
            has_conditions,
            modified,
            texts: Texts { block: Vec::new(), places },
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
        let Shared { key, block, last, place } = &mut *self.shared.borrow_mut();
        write_key(request.host.id, path, kind, key);
        if let Some(last) = last.as_mut().and_then(Rc::get_mut) {
            *block = std::mem::take(&mut last.texts.block);
        }
        let read = |value: &[u8]| CachedResponse::read(request, kind, value, key.len(), place);
        let Some(mut response) = cache.get(key, block, read) else { return Lookup::Miss };
        response.texts.block = std::mem::take(block);
        let response = match last.as_mut().and_then(Rc::get_mut) {
            Some(place) => {
                *place = response;
                last.clone()
            }
            None => last.insert(Rc::new(response)).clone().into(),
        };
        match response {
            Some(response) if response.suits(request) => Lookup::Hit(response),
            _ => Lookup::Unsuitable,
        }
    }

    /// Stores a response for the others, unless variant keys distinguish it. Returns whether it
    /// did.
    pub(super) fn share(&self, request: &Request, path: &[u8], response: &CachedResponse) -> bool {
        let Some(cache) = request.engine.server.shared_responses.get() else { return false };
        let kind = Kind { not_modified: response.is_not_modified(), ..Kind::of(request) };
        let key = &mut self.shared.borrow_mut().key;
        write_key(request.host.id, path, kind, key);
        request.depends.variant_keys.is_empty() && response.share(cache, key)
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
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }

    fn option<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Writer, T)) {
        self.number(value.is_some().into());
        if let Some(value) = value {
            write(self, value);
        }
    }

    fn texts(&mut self, texts: &Texts) {
        let Places { present, ends, .. } = texts.places;
        self.number(present.into());
        ends.iter().for_each(|end| self.0.extend_from_slice(&end.to_ne_bytes()));
        self.0.extend_from_slice(texts.all());
    }

    fn file(&mut self, file: &FileInfo) {
        let FileInfo { kind, size, mtime_us, ctime_us, inode, device, mode, uid, gid, links } =
            *file;
        let kind = match kind {
            FileKind::None => 0,
            FileKind::Regular => 1,
            FileKind::Directory => 2,
            FileKind::Other => 3,
        };
        let small = [mode, uid, gid].map(u64::from);
        for number in [kind, size, mtime_us, ctime_us, inode, device, links].iter().chain(&small) {
            self.number(*number);
        }
    }

    fn authority(&mut self, authority: &Authority) {
        self.option(authority.name.as_deref(), Writer::text);
        self.option(authority.named_port, |out, port| out.number(port.into()));
        self.number(authority.port.into());
        self.number(authority.is_secure.into());
        let address = authority.address.map(|address| address.to_string().into_bytes());
        self.option(address.as_deref(), Writer::text);
    }
}

struct Reader<'v>(&'v [u8]);

impl<'v> Reader<'v> {
    fn take(&mut self, count: usize) -> Option<&'v [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(size_of::<u64>())?.try_into().ok().map(u64::from_ne_bytes)
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    fn text(&mut self) -> Option<&'v [u8]> {
        let length = self.small()?;
        self.take(length)
    }

    #[expect(clippy::option_option, reason = "a value that is absent, and one that can't be read")]
    fn option<T>(&mut self, read: impl FnOnce(&mut Reader<'v>) -> Option<T>) -> Option<Option<T>> {
        match self.number()? {
            0 => Some(None),
            _ => read(self).map(Some),
        }
    }

    /// The places of texts, which end with a block of `length` bytes.
    fn places(&mut self, length: usize) -> Option<Places> {
        let present = self.small()?;
        let mut ends = [0; TEXTS];
        for end in &mut ends {
            *end = u32::from_ne_bytes(self.take(size_of::<u32>())?.try_into().ok()?);
        }
        Places::new(length - self.0.len(), ends, present)
    }

    fn file(&mut self) -> Option<FileInfo> {
        let kind = match self.number()? {
            0 => FileKind::None,
            1 => FileKind::Regular,
            2 => FileKind::Directory,
            _ => FileKind::Other,
        };
        let [size, mtime_us, ctime_us] = [self.number()?, self.number()?, self.number()?];
        let [inode, device, links] = [self.number()?, self.number()?, self.number()?];
        let [mode, uid, gid] = [self.small()?, self.small()?, self.small()?];
        Some(FileInfo { kind, size, mtime_us, ctime_us, inode, device, mode, uid, gid, links })
    }

    fn authority(&mut self) -> Option<Authority> {
        let name = self.option(Reader::text)?.map(Into::into);
        let named_port = self.option(Reader::small)?;
        let (port, is_secure) = (self.small()?, self.number()? != 0);
        let address = match self.option(Reader::text)? {
            Some(text) => Some(std::str::from_utf8(text).ok()?.parse().ok()?),
            None => None,
        };
        Some(Authority { name, named_port, port, is_secure, address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_behind_the_end() {
        let texts = Texts::of([Some(b"text"); TEXTS]).with(Text::Content, b"content");
        let file = FileInfo {
            kind: FileKind::Directory,
            size: 1,
            mtime_us: 2,
            ctime_us: 3,
            inode: 4,
            device: 5,
            mode: 6,
            uid: 7,
            gid: 8,
            links: 9,
        };
        let authority = Authority {
            name: Some((*b"a").into()),
            named_port: None,
            port: 80,
            is_secure: true,
            address: Some([127, 0, 0, 1].into()),
        };
        let mut out = Writer(Vec::new());
        out.file(&file);
        out.authority(&authority);
        let end = out.0.len();
        out.texts(&texts);
        let read = |bytes: &[u8]| {
            let mut from = Reader(bytes);
            let (file, authority) = (from.file()?, from.authority()?);
            let places = from.places(bytes.len())?;
            Some((file, authority, Texts { block: bytes.to_vec(), places }))
        };
        let (file_read, authority_read, texts_read) = read(&out.0).unwrap();
        assert!((file_read, authority_read) == (file, authority));
        assert_eq!(texts_read.get(Text::Content), b"content");
        assert_eq!(texts_read.all(), texts.all());
        for end in 0..=end {
            assert!(read(&out.0[..end]).is_none(), "{end}");
        }
        for end in end..out.0.len() {
            let cut = read(&out.0[..end]);
            assert!(cut.is_none_or(|(.., texts)| texts.get(Text::Handler).is_empty()), "{end}");
        }
        let mut long = Writer(Vec::new());
        long.number(u64::MAX);
        assert!(Reader(&long.0).text().is_none());
    }
}
