//! What a path is answered with: representations, made once by the phases and sent again without
//! them.
//!
//! A response is kept only if nothing but pure hooks took part in it
//! ([`server::hooks::HookDef::pure`]), and only while everything examined on its way is unchanged:
//! every path component, every place where an `.htaccess` could appear, and the file itself
//! ([`server::files::validity`]). It belongs to the host and the path: the query, and fields that
//! ask for a condition or a range, do not distinguish representations. A GET, a HEAD, a 304 and
//! a 206 of one path are all made from what is kept for it. If the responses depend on
//! [variant keys](server::variant key::VariantKey) of the request, each variant is kept by itself.

mod moving;
mod store;

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use bytes::Bytes;
use rt::Witness;
use wire::conditional::meets_conditions;
use wire::range::ByteRange;

use crate::respond::ReusableHead;
use server::body::FileSlice;
use server::files::mirror::Files;
use server::files::validity::Basis;
use server::plan::{Layer, Plan};
use server::request::{CachedHead, FileInfo, Request, Validity};
use server::variant_key::Inputs;

use moving::Moving;
pub use store::{Lesson, Limits, Lookup, RESOURCE_LIMIT, Resources, TARGET_LIMIT};

/// The most bytes that a loop keeps in memory: file content, heads, and the names of both.
pub const CONTENT_LIMIT: usize = 64 * 1024 * 1024;

/// The most files that a loop keeps open for resources that are not in memory.
pub const OPEN_LIMIT: usize = 512;

/// A file up to this size is kept in memory, bytes.
pub const IN_MEMORY_BYTES: u64 = 32 * 1024;

/// The longest content that was made from a file, by compression say, and is kept, bytes. It has
/// to be made before its first byte leaves.
pub const MADE_BYTES: usize = 256 * 1024;

/// The longest file whose content is made as a whole to be kept, bytes: others do not wait for it.
pub const MADE_FROM_BYTES: u64 = 1024 * 1024;

/// Where the content comes from.
#[derive(Clone)]
pub enum Content {
    /// Memory; with its chunks' heads where it leaves chunked.
    Memory(Bytes),
    /// An open file.
    File(FileSlice),
}

impl Content {
    /// Nothing.
    pub const EMPTY: Content = Content::Memory(Bytes::new());

    /// A range that lies within the content.
    pub fn part(&self, range: ByteRange) -> Option<Content> {
        match self {
            Content::Memory(bytes) => {
                let first = usize::try_from(range.first).ok()?;
                let end = first.checked_add(usize::try_from(range.len()).ok()?)?;
                (end <= bytes.len()).then(|| Content::Memory(bytes.slice(first..end)))
            }
            Content::File(slice) => Some(Content::File(FileSlice {
                file: slice.file.clone(),
                offset: slice.offset + range.first,
                length: range.len(),
            })),
        }
    }
}

/// By what a client reached the server: a response that names the server depends on it.
#[derive(Debug, PartialEq, Eq)]
struct Authority {
    name: Option<Box<[u8]>>,
    named_port: Option<u16>,
    port: u16,
    is_secure: bool,
}

impl Authority {
    fn of(request: &Request) -> Authority {
        Authority {
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
    }
}

/// A representation, with everything that its responses need.
pub struct Resource {
    /// The merged configuration it is answered under.
    pub layer: Rc<Layer>,
    /// That configuration's plan.
    pub plan: Rc<Plan>,
    /// The file's name, for logs.
    pub filename: Vec<u8>,
    /// The path after redirects to an index file, for logs.
    pub uri: Vec<u8>,
    /// What follows the file's path, for logs.
    pub path_info: Vec<u8>,
    /// The media type, for logs.
    pub content_type: Option<Vec<u8>>,
    /// The handler, for logs.
    pub handler: Option<Cow<'static, [u8]>>,
    /// What stands there.
    pub file: FileInfo,
    /// The status.
    pub status: u16,
    /// Header lines before the connection's own, from behind `Date`.
    pub before: Vec<u8>,
    /// Header lines after the connection's own, and the empty line.
    pub after: Vec<u8>,
    /// Where the value of `Content-Length` stands in the lines before.
    pub length_at: Option<Range<usize>>,
    /// What of the lines before depends on the time of the request.
    moving: Option<Moving>,
    /// The content.
    pub content: Content,
    /// Bytes of the body, for logs.
    pub body_bytes: u64,
    /// It leaves chunked, which HTTP/1.0 does not know.
    pub chunked: bool,
    /// What `If-Range` is judged by: the fields as they are sent.
    pub sent: Validity,
    /// What the handler judged conditions by.
    judged: Option<Validity>,
    /// It is for HEAD.
    header_only: bool,
    /// What it depends on of the request.
    inputs: Inputs,
    authority: Option<Authority>,
    /// What it depends on; there from when it is kept.
    basis: Option<Basis>,
}

impl Resource {
    /// A resource from an answered request, whose body is `content`.
    ///
    /// # Errors
    /// [`Unfit`] where its fields can't be made again for each request.
    pub fn new(request: &Request, head: ReusableHead, content: Content) -> Result<Resource, Unfit> {
        let inputs = request.depends.variant_keys.inputs();
        let body_bytes = match &content {
            _ if request.head.header_only => 0,
            Content::Memory(_) | Content::File(_) => {
                request.response.body.length().unwrap_or_default()
            }
        };
        Ok(Resource {
            layer: request.layer.clone(),
            plan: request.plan.clone(),
            filename: request.resource.filename.clone(),
            uri: request.resource.uri.clone(),
            path_info: request.resource.path_info.clone(),
            content_type: request.response.content_type.clone(),
            handler: request.handler.clone().filter(|_| !request.handler_of_type),
            file: request.resource.file,
            status: request.response.status,
            length_at: length_at(&head.before),
            moving: Moving::find(request, &head.before)?,
            before: head.before,
            after: head.after,
            body_bytes,
            chunked: head.chunked,
            content,
            sent: request.sent_validity(),
            judged: request.depends.judged.clone(),
            header_only: request.head.header_only,
            inputs,
            authority: inputs.any(Inputs::AUTHORITY).then(|| Authority::of(request)),
            basis: None,
        })
    }

    /// Whether nothing that it depends on has changed: with a watch, as of the last drain.
    pub fn is_fresh(&self, files: &Files, witness: Witness<'_>) -> bool {
        self.basis.as_ref().is_some_and(|basis| basis.is_fresh(files, witness))
    }

    /// The status that the request's conditions come to, if any. `Err` where they can't be judged
    /// here.
    pub fn condition(&self, request: &Request) -> Result<Option<u16>, Unfit> {
        let judged = self.judged.as_ref().ok_or(Unfit)?;
        Ok(meets_conditions(&request.head.headers_in, &judged.validators(request)).status())
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

    /// Whether it is one for the request's method and authority.
    fn is_for(&self, request: &Request) -> bool {
        self.header_only == request.head.header_only
            && self.authority.as_ref().is_none_or(|authority| authority.is_of(request))
    }

    /// Whether it can be sent in response to a request that it is for.
    fn suits(&self, request: &Request) -> bool {
        (request.head.protocol >= 1001 || !self.chunked)
            && (request.own_query().is_none() || !self.inputs.any(Inputs::QUERY))
    }

    /// Whether `other` takes its place: a response to the same requests.
    fn is_like(&self, other: &Resource) -> bool {
        self.header_only == other.header_only
            && self.authority == other.authority
            && self.is_not_modified() == other.is_not_modified()
    }

    fn is_not_modified(&self) -> bool {
        self.status == 304
    }

    fn bytes(&self) -> usize {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len(),
            Content::File(_) => 0,
        };
        let names = self.filename.len() + self.uri.len() + self.path_info.len();
        let basis = self.basis.as_ref().map_or(0, Basis::bytes);
        let judged = self.judged.as_ref().map_or(0, Validity::bytes);
        // Its configuration may be one that no loop keeps any more.
        let layer = self.layer.foreign_bytes();
        let head = self.before.len() + self.after.len() + self.sent.bytes() + judged;
        content + head + names + basis + layer
    }
}

/// What is kept can't tell what a request gets: the phases have to.
pub struct Unfit;

fn length_at(lines: &[u8]) -> Option<Range<usize>> {
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

    #[test]
    fn a_part_never_reaches_over_its_content() {
        let content = Content::Memory(Bytes::from_static(b"hello"));
        let part = content.part(ByteRange { first: 1, last: 2 });
        assert!(matches!(part, Some(Content::Memory(bytes)) if &bytes[..] == b"el"));
        assert!(content.part(ByteRange { first: 4, last: 5 }).is_none());
        assert!(Content::EMPTY.part(ByteRange { first: 0, last: 0 }).is_none());
    }
}
