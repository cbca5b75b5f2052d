//! Responses that all threads and processes of a generation share, as bytes.
//!
//! A response that one thread or process caches is also stored in a [`SharedCache`], from which the
//! others make their own [`CachedResponse`]. The configuration of a response is named by an id that
//! is the same everywhere ([`server::plan::Layer::common_id`]): a loop that has not merged it yet
//! runs the phases once. The dependencies are generations of the watch, which is shared as well.

use std::rc::Rc;

use bytes::Bytes;
use rt::{SharedCache, WatchId};
use server::engine::Engine;
use server::files::mirror::Seen;
use server::files::validity::Validity;
use server::request::{FileInfo, FileKind, OwnValidators, Request};
use server::variant_key::Inputs;

use super::response::{Authority, CachedResponse, Content, length_at};
use super::store::{Lookup, PATH_LIMIT, ResponseCache, Sought};

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
    /// Stores the response for the others, unless it depends on state of this loop alone.
    fn share(&self, cache: &SharedCache, key: &[u8], now_s: u64) {
        let mut out = Writer(Vec::new());
        if self.write(&mut out).is_some() {
            cache.put(key, now_s, &out.0);
        }
    }

    fn write(&self, out: &mut Writer) -> Option<()> {
        let Content::Memory(content) = &self.content else { return None };
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
        for text in [&self.filename, &self.uri, &self.path_info, &self.before, &self.after] {
            out.text(text);
        }
        out.text(content);
        out.option(self.content_type.as_deref(), Writer::text);
        out.option(self.handler.as_deref(), Writer::text);
        out.validators(&self.sent);
        out.option(self.validators.as_ref(), Writer::validators);
        out.file(&self.file);
        out.option(self.authority.as_ref(), Writer::authority);
        Some(())
    }

    /// Makes the representation of a stored value for a request of this loop. `None` if its
    /// configuration is not merged here yet.
    fn read(request: &Request, kind: Kind, value: &[u8]) -> Option<CachedResponse> {
        let engine: &Engine = &request.engine;
        let mut from = Reader(value);
        let layer = engine.plans.common(from.number()?)?;
        let count = from.number()?;
        let seen = |_| Some((WatchId::numbered(from.small()?), from.number()?));
        let dependencies: Option<Box<[Seen]>> = (0..count).map(seen).collect();
        let validity = Validity::from_dependencies(dependencies?);
        if !validity.is_fresh(&engine.files, engine.handle.change_source()) {
            return None;
        }
        let status = from.small()?;
        let inputs = Inputs::of_bits(from.small()?);
        let (body_bytes, chunked) = (from.number()?, from.number()? != 0);
        let [filename, uri, path_info] = [from.text()?, from.text()?, from.text()?];
        let [before, after] = [from.text()?, from.text()?];
        let response = CachedResponse {
            filename: filename.into(),
            uri: uri.into(),
            path_info: path_info.into(),
            length_at: length_at(before),
            before: before.into(),
            after: after.into(),
            content: Content::Memory(Bytes::copy_from_slice(from.text()?)),
            content_type: from.option(Reader::text)?.map(Into::into),
            handler: from.option(Reader::text)?.map(|text| text.to_vec().into()),
            sent: from.validators()?,
            validators: from.option(Reader::validators)?,
            file: from.file()?,
            authority: from.option(Reader::authority)?,
            plan: engine.plans.plan(&request.host, &layer),
            layer,
            status,
            timed: None,
            body_bytes,
            chunked,
            header_only: kind.header_only,
            inputs,
            validity: Some(validity),
        };
        response.is_for(request).then_some(response)
    }
}

impl ResponseCache {
    /// The response that another thread or process has made. It is kept here as well if the path
    /// is requested often.
    pub(super) fn get_shared(&self, request: &Request, path: &[u8], not_modified: bool) -> Lookup {
        let Some(cache) = request.engine.server.shared_responses.get() else {
            return Lookup::Miss;
        };
        if path.len() > PATH_LIMIT {
            return Lookup::Miss;
        }
        let kind = Kind { not_modified, ..Kind::of(request) };
        let [key, buffer] = &mut *self.buffers.borrow_mut();
        write_key(request.host.id, path, kind, key);
        let read = |value: &[u8]| CachedResponse::read(request, kind, value).map(Rc::new);
        match cache.get(key, request.time_us / 1_000_000, buffer, read) {
            None => Lookup::Miss,
            Some(response) if !response.suits(request) => Lookup::Unsuitable,
            Some(response) => {
                if self.is_again(&Sought { host: request.host.id, path }) {
                    self.insert_only(request, path, response.clone());
                }
                Lookup::Hit(response)
            }
        }
    }

    /// Stores a response for the others, unless variant keys distinguish it.
    pub(super) fn share(&self, request: &Request, path: &[u8], response: &CachedResponse) {
        let Some(cache) = request.engine.server.shared_responses.get() else { return };
        if request.depends.variant_keys.is_empty() {
            let kind = Kind { not_modified: response.is_not_modified(), ..Kind::of(request) };
            let key = &mut self.buffers.borrow_mut()[0];
            write_key(request.host.id, path, kind, key);
            response.share(cache, key, request.time_us / 1_000_000);
        }
    }

    /// Whether any thread or process received a request for the path recently; records this one.
    /// `None` if nothing is shared.
    pub(super) fn is_again_anywhere(&self, request: &Request, path: &[u8]) -> Option<bool> {
        let cache = request.engine.server.shared_responses.get()?;
        let key = &mut self.buffers.borrow_mut()[0];
        write_key(request.host.id, path, Kind::of(request), key);
        Some(cache.is_again(key))
    }
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

    fn validators(&mut self, OwnValidators { etag, modified }: &OwnValidators) {
        self.option(etag.as_deref(), Writer::text);
        self.option(*modified, |out, modified| out.number(modified.cast_unsigned()));
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

    fn validators(&mut self) -> Option<OwnValidators> {
        let etag = self.option(Reader::text)?.map(Into::into);
        let modified = self.option(Reader::number)?.map(u64::cast_signed);
        Some(OwnValidators { etag, modified })
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
        let validators = OwnValidators { etag: Some((*b"\"1\"").into()), modified: Some(-5) };
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
        out.validators(&validators);
        out.file(&file);
        out.authority(&authority);
        let read = |bytes: &[u8]| {
            let mut from = Reader(bytes);
            Some((from.validators()?, from.file()?, from.authority()?))
        };
        assert!(read(&out.0) == Some((validators, file, authority)));
        for end in 0..out.0.len() {
            assert!(read(&out.0[..end]).is_none(), "{end}");
        }
        let mut long = Writer(Vec::new());
        long.number(u64::MAX);
        assert!(Reader(&long.0).text().is_none());
    }
}
