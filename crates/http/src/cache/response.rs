//! Cached responses: made once by the phases, and sent again without them.
//!
//! A response is cached only if nothing but pure hooks took part in it
//! ([`server::hooks::HookDef::pure`]), and only while everything examined on its way is unchanged:
//! every path component, every place where an `.htaccess` could appear, and the file itself
//! ([`server::files::validity`]). Its key is the host and the path: the query, and the fields of
//! conditions and ranges, do not distinguish responses. A GET, a HEAD, a 304 and a 206 of one path
//! are all made from the same entry. If the responses depend on
//! [variant keys](server::variant_key::VariantKey) of the request, each variant is cached.

use std::net::IpAddr;
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use rt::ChangeSource;
use wire::conditional::{Validators, meets_conditions};

use crate::persistence::MadeBy;
use crate::respond::ReusableHead;
use server::body::FileSlice;
use server::files::mirror::Files;
use server::files::validity::Validity;
use server::plan::{Layer, Plan};
use server::request::{CachedHead, FileInfo, Request};
use server::variant_key::Inputs;
use wire::Table;

use super::prepared;
use super::redirected::Redirected;
pub use super::store::{Fill, Limits, Lookup, PATH_LIMIT, RESPONSE_LIMIT, ResponseCache};
use super::texts::{TEXTS, Text, Texts};
use super::timed::TimedFields;

/// Most bytes of a loop's cache: content, heads, and names.
pub const CONTENT_LIMIT: usize = 64 * 1024 * 1024;

/// Most open files of a loop's cache, for content that is not in memory.
pub const OPEN_LIMIT: usize = 512;

/// The largest file whose content is cached in memory, bytes.
pub const IN_MEMORY_BYTES: u64 = 32 * 1024;

/// The longest content made from a file, for example by compression, that is cached, bytes. It is
/// made completely before its first byte is sent.
pub const MADE_BYTES: usize = 256 * 1024;

/// The largest file from which content is made completely, bytes, so that others need not wait.
pub const MADE_FROM_BYTES: u64 = 1024 * 1024;

/// Where the content comes from.
#[derive(Clone)]
pub enum Content {
    /// Memory; including the chunk heads if the response is chunked.
    Memory(Bytes),
    /// The same, among the response's own texts.
    Own,
    /// An open file.
    File(FileSlice),
}

impl Content {
    /// Nothing.
    pub const EMPTY: Content = Content::Memory(Bytes::new());
}

/// How a client addressed the server: a response that names the server depends on it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authority {
    pub name: Option<Box<[u8]>>,
    pub named_port: Option<u16>,
    pub port: u16,
    pub is_secure: bool,
    /// The server's address, if that counts.
    pub address: Option<IpAddr>,
}

impl Authority {
    fn of(request: &Request, inputs: Inputs) -> Authority {
        let address = request.connection.local.ip();
        Authority {
            address: inputs.any(Inputs::OWN_ADDRESS).then_some(address),
            name: request.hostname.as_deref().map(Into::into),
            named_port: request.named_port,
            port: request.connection.local.port(),
            is_secure: request.connection.tls.is_some(),
        }
    }

    fn is_of(&self, request: &Request) -> bool {
        self.name.as_deref() == request.hostname.as_deref()
            && self.named_port == request.named_port
            && self.port == request.connection.local.port()
            && self.is_secure == request.connection.tls.is_some()
            && self.address.is_none_or(|address| address == request.connection.local.ip())
    }
}

/// A response, with everything needed to send it again.
pub struct CachedResponse {
    /// The merged configuration that it was made under.
    pub layer: Rc<Layer>,
    /// That configuration's plan.
    pub plan: Rc<Plan>,
    /// The entry at the file's name.
    pub file: FileInfo,
    /// The variables that the phases set, for logs.
    pub(super) env: Table,
    /// The requests that internal redirects replaced, for logs.
    pub(super) redirected: Box<[Redirected]>,
    /// The status.
    pub status: u16,
    /// The value of `Content-Length` within the lines before the connection's own.
    pub length_at: Option<Range<usize>>,
    /// The fields in those lines that depend on the time of the request.
    pub(super) timed: Option<TimedFields>,
    /// The content.
    pub content: Content,
    /// Bytes of the body, for logs.
    pub body_bytes: u64,
    /// Whether it is chunked, which HTTP/1.0 does not have.
    pub chunked: bool,
    /// The time of the last modification as it is sent, in seconds since the epoch, for `If-Range`.
    pub(super) sent_modified: Option<i64>,
    /// Whether the handler evaluated conditions, and with which such time.
    pub(super) has_conditions: bool,
    pub(super) modified: Option<i64>,
    pub(super) texts: Texts,
    pub(super) prepared: prepared::Place,
    /// What has made it, if the status does not tell.
    pub(crate) made_by: Option<MadeBy>,
    /// Whether early hints of its configuration precede it over HTTP/2.
    pub(crate) has_early_hints: bool,
    /// Whether it is for HEAD.
    pub(super) header_only: bool,
    /// The parts of the request that it depends on.
    pub(super) inputs: Inputs,
    pub(super) authority: Option<Authority>,
    /// The files that it depends on; set when it is cached.
    pub(super) validity: Option<Validity>,
}

impl CachedResponse {
    /// The response of `request`, whose body is `content`.
    ///
    /// # Errors
    /// [`NeedsPhases`] if its fields can't be made again for each request.
    pub fn new(
        request: &Request,
        head: ReusableHead,
        content: Content,
    ) -> Result<CachedResponse, NeedsPhases> {
        let inputs = request.depends.variant_keys.inputs();
        let names = Inputs::AUTHORITY.with(Inputs::OWN_ADDRESS);
        let body_bytes = match request.head.header_only {
            true => 0,
            false => request.response.body.length().unwrap_or_default(),
        };
        let (sent, evaluated) = (request.sent_validators(), request.depends.validators.as_ref());
        let tag = evaluated.and_then(|evaluated| evaluated.etag.as_deref());
        Ok(CachedResponse {
            layer: request.layer.clone(),
            plan: request.plan.clone(),
            texts: texts(request, &head, [sent.etag.as_deref(), tag]),
            prepared: prepared::Place::of(request),
            file: request.resource.file,
            env: request.own_variables(),
            redirected: Redirected::all_before(request),
            status: request.response.status,
            length_at: length_at(&head.before),
            timed: TimedFields::find(request, &head.before)?,
            body_bytes,
            chunked: head.chunked,
            content,
            sent_modified: sent.modified,
            has_conditions: evaluated.is_some(),
            modified: evaluated.and_then(|evaluated| evaluated.modified),
            made_by: request.kept::<MadeBy>().copied(),
            has_early_hints: request.response.has_early_hints,
            header_only: request.head.header_only,
            inputs,
            authority: inputs.any(names).then(|| Authority::of(request, inputs)),
            validity: None,
        })
    }

    /// The same, to be cached while `validity` holds.
    pub(super) fn valid_while(self, validity: Validity) -> CachedResponse {
        CachedResponse { validity: Some(validity), ..self }
    }

    /// Whether the files that it depends on are unchanged: with a watch, as of the last drain.
    pub fn is_fresh(&self, files: &Files, change_source: ChangeSource<'_>) -> bool {
        self.validity.as_ref().is_some_and(|validity| validity.is_fresh(files, change_source))
    }

    /// The status that the request's conditions result in, if any.
    pub fn condition(&self, request: &Request) -> Result<Option<u16>, NeedsPhases> {
        if !self.has_conditions {
            return Err(NeedsPhases);
        }
        let validators = request.validators(self.texts.find(Text::Tag), self.modified);
        Ok(meets_conditions(&request.head.headers_in, &validators).status())
    }

    /// Whether the same conditions result in the same status for `other`.
    pub fn has_validators_of(&self, other: &CachedResponse) -> bool {
        self.has_conditions
            && other.has_conditions
            && self.modified == other.modified
            && self.texts.find(Text::Tag) == other.texts.find(Text::Tag)
    }

    /// The validators that were sent, for `If-Range`.
    pub fn sent_validators(&self, request: &Request) -> Validators<'_> {
        request.validators(self.texts.find(Text::SentTag), self.sent_modified)
    }

    /// The content, if it is in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        match &self.content {
            Content::Memory(bytes) => Some(bytes),
            Content::Own => Some(self.texts.get(Text::Content)),
            Content::File(_) => None,
        }
    }

    /// Header lines after the connection's own, and the empty line.
    pub fn after(&self) -> &[u8] {
        self.texts.get(Text::After)
    }

    /// Whether ranges may be cut from it.
    pub fn has_ranges(&self) -> bool {
        self.status == 200
            && !self.chunked
            && !self.header_only
            && self.length_at.is_some()
            && !self.inputs.any(Inputs::RANGE)
            && self.field(b"Content-Range").is_none()
    }

    /// Whether it is for the request's method and authority.
    pub(super) fn is_for(&self, request: &Request) -> bool {
        self.header_only == request.head.header_only
            && self.authority.as_ref().is_none_or(|authority| authority.is_of(request))
    }

    /// Whether it can be sent in response to `request`, which it is for.
    pub(super) fn suits(&self, request: &Request) -> bool {
        (request.head.protocol >= 1001 || !self.chunked)
            && (request.own_query().is_none() || !self.inputs.any(Inputs::QUERY))
    }

    /// Whether `other` is a response to the same requests.
    pub(super) fn is_like(&self, other: &CachedResponse) -> bool {
        self.header_only == other.header_only
            && self.authority == other.authority
            && self.is_not_modified() == other.is_not_modified()
    }

    pub(super) fn is_not_modified(&self) -> bool {
        self.status == 304
    }

    pub(super) fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::Own | Content::File(_) => 0,
        };
        let validity = self.validity.as_ref().map_or(0, Validity::bytes);
        // Its configuration may no longer be in any loop's cache.
        let layer = self.layer.foreign_bytes();
        let redirected: usize = self.redirected.iter().map(Redirected::bytes).sum();
        let env = self.env.capacity_bytes();
        let texts = self.texts.block.len() + self.prepared_bytes();
        content + texts + env + redirected + validity + layer
    }
}

fn texts(request: &Request, head: &ReusableHead, [sent_tag, tag]: [Option<&[u8]>; 2]) -> Texts {
    let resource = &request.resource;
    let handler = request.handler.as_deref().filter(|_| !request.handler_of_type);
    let mut texts = [None; TEXTS];
    let mut set = |text: Text, value| texts[text as usize] = value;
    set(Text::Before, Some(&*head.before));
    set(Text::After, Some(&head.after));
    set(Text::SentTag, sent_tag);
    set(Text::Tag, tag);
    set(Text::Filename, Some(&resource.filename));
    set(Text::Uri, Some(&resource.uri));
    set(Text::PathInfo, Some(&resource.path_info));
    set(Text::ContentType, request.response.content_type.as_deref());
    set(Text::Handler, handler);
    Texts::of(texts)
}

/// The cached response does not determine the response to this request: the phases have to run.
pub struct NeedsPhases;

pub(super) fn length_at(lines: &[u8]) -> Option<Range<usize>> {
    const FIELD: &[u8] = b"\r\nContent-Length: ";
    let start = lines.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let digits = lines.get(start..)?.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Some(start..start + digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_found_among_the_lines() {
        let lines = b"\r\nServer: x\r\nContent-Length: 1024\r\nETag: \"1\"\r\n";
        assert_eq!(length_at(lines).map(|at| &lines[at]), Some(&b"1024"[..]));
        assert_eq!(length_at(b"\r\nServer: Content-Length: 3\r\n"), None);
    }
}
