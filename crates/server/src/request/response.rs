//! The response to a request, before it is framed.

use std::cell::RefCell;
use std::rc::Rc;

use wire::{MethodSet, Table};

use crate::api::filter::Attached;
use crate::request::body::Body;
use crate::request::expiry::Expiry;
use crate::request::passing::Passing;
use crate::request::tunnel::Tunnel;

/// Trailer fields that come with the end of a body.
pub type LateTrailers = Rc<RefCell<Table>>;

/// A response, as handlers and filters make it.
pub struct Response {
    /// The status.
    pub status: u16,
    /// The status line after the version, if it is not the standard one. Digits alone count only
    /// for the page of an error, which completes them.
    pub status_line: Option<Vec<u8>>,
    /// The header fields.
    pub headers_out: Table,
    /// Header fields that error responses contain as well (`err_headers_out`).
    pub err_headers_out: Table,
    /// The trailer fields, for the log: as in Apache, they are not sent.
    pub trailers_out: Table,
    /// Those of a body that another server sends, once it has ended.
    pub late_trailers: Option<LateTrailers>,
    /// The media type, without charset added by `AddDefaultCharset`.
    pub content_type: Option<Vec<u8>>,
    /// Content codings, outermost last.
    pub content_encoding: Option<Vec<u8>>,
    /// Languages of the content.
    pub content_languages: Vec<Vec<u8>>,
    /// The body.
    pub body: Body,
    /// What the connection becomes instead of sending this response.
    pub tunnel: Option<Box<Tunnel>>,
    /// The process that gets the connection after this response's head.
    pub passing: Option<Box<Passing>>,
    /// The modification time of the content, in microseconds since the epoch.
    pub mtime_us: Option<u64>,
    /// Body bytes sent (`%b`).
    pub bytes_sent: u64,
    /// What the fields say about when it expires.
    pub expiry: Option<Expiry>,
    /// Output filters, in stage order.
    pub filters: Vec<Attached>,
    /// Methods that handlers added to the `Allow` field.
    pub allowed: MethodSet,
    /// Whether the response must be chunked or end with the connection, since its length is
    /// unknown.
    pub chunked: bool,
    /// The response must not be cached (`no_cache`).
    pub no_cache: bool,
    /// Conditional fields are ignored (`no_local_copy`).
    pub no_local_copy: bool,
    /// `Date` and `Server` among the fields are those of another server, and stay (`proxyreq`).
    pub keeps_origin: bool,
    /// The body is the whole response, head included, and ends with the connection (`nph-`).
    pub is_raw: bool,
    /// When filters learn that the body has ended.
    pub end: BodyEnd,
    /// The body reads the rest of the request's: both are on their way at the same time.
    pub reads_request: bool,
    /// What the handler and the filters so far have announced of the body.
    pub announced: Announced,
    /// Whether a response 103 of the configuration precedes it over HTTP/2.
    pub has_early_hints: bool,
    /// Whether the connection becomes one of HTTP/2, which then responds.
    pub switching: Switching,
}

/// When filters learn that a body has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BodyEnd {
    /// With the body if its length is known, after it if it is chunked.
    #[default]
    ByFraming,
    /// With the body, however long that takes to arrive: filters can wait for what they need of it.
    WithBody,
    /// With the body, which a filter has gathered: in one piece for the next filters too.
    Gathered,
    /// After it.
    Apart,
}

/// Whether a request of HTTP/1.1 changes its connection to HTTP/2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switching {
    /// It does not ask for that.
    #[default]
    No,
    /// It asks, and its host allows that.
    Asked,
    /// It does: its directory allows that, too.
    Granted,
}

/// What a handler announces of a body before a filter sees any of it, as far as filters depend on
/// that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announced {
    /// Nothing but what a `Content-Length` among the fields says.
    #[default]
    Fields,
    /// Its length, as if it were among the fields.
    Length,
    /// That there is none, not even an empty file.
    End,
}

impl Default for Response {
    fn default() -> Response {
        Response {
            status: 200,
            status_line: None,
            headers_out: Table::new(),
            err_headers_out: Table::new(),
            trailers_out: Table::new(),
            late_trailers: None,
            content_type: None,
            content_encoding: None,
            content_languages: Vec::new(),
            body: Body::Empty,
            tunnel: None,
            passing: None,
            mtime_us: None,
            bytes_sent: 0,
            expiry: None,
            filters: Vec::new(),
            allowed: MethodSet::EMPTY,
            chunked: false,
            no_cache: false,
            no_local_copy: false,
            keeps_origin: false,
            is_raw: false,
            end: BodyEnd::ByFraming,
            reads_request: false,
            announced: Announced::Fields,
            has_early_hints: false,
            switching: Switching::No,
        }
    }
}

impl Response {
    /// `Date` or `Server` of another server, if they stay.
    pub fn of_origin(&self, name: &[u8]) -> Option<&[u8]> {
        if self.keeps_origin { self.headers_out.get(name) } else { None }
    }

    /// Whether a field is one of these.
    pub fn is_of_origin(&self, name: &[u8]) -> bool {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        self.keeps_origin && (is(b"Date") || is(b"Server"))
    }

    /// Withdraws the length that was announced, since a filter changes it.
    pub fn unset_length(&mut self) {
        self.headers_out.unset(b"Content-Length");
        if self.announced == Announced::Length {
            self.announced = Announced::Fields;
        }
    }

    /// Takes the trailer fields of a body that has ended.
    pub fn take_late_trailers(&mut self) {
        if let Some(late) = self.late_trailers.take() {
            self.trailers_out.extend(&late.borrow());
        }
    }

    /// Clears everything for the next request; tables keep their memory.
    pub(super) fn renew(&mut self) {
        #[rustfmt::skip]
        let Response {
            status, status_line, headers_out, err_headers_out, trailers_out, late_trailers,
            content_type, content_encoding, content_languages, body, tunnel, passing, mtime_us,
            bytes_sent, expiry, filters, allowed, chunked, no_cache, no_local_copy, keeps_origin,
            is_raw, end, reads_request, announced, has_early_hints, switching,
        } = self;
        for table in [headers_out, err_headers_out, trailers_out] {
            table.clear();
        }
        (*status, *status_line, *late_trailers) = (200, None, None);
        (*content_type, *content_encoding) = (None, None);
        content_languages.clear();
        (*body, *tunnel, *passing, *chunked) = (Body::Empty, None, None, false);
        (*mtime_us, *bytes_sent, *expiry) = (None, 0, None);
        filters.clear();
        *allowed = MethodSet::EMPTY;
        (*no_cache, *no_local_copy, *keeps_origin) = (false, false, false);
        (*is_raw, *reads_request) = (false, false);
        (*end, *announced) = (BodyEnd::ByFraming, Announced::Fields);
        (*has_early_hints, *switching) = (false, Switching::No);
    }
}
