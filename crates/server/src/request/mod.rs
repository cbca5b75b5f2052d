//! A request and its response (`request_rec`).

pub mod body;
pub mod connection_info;
pub mod facet;
mod file;
mod filters;
mod head;
mod kept;
mod origin;
mod print;
pub mod read_policy;
mod renew;
pub mod request_body;
mod trace;
mod validity;

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use wire::{HeadFlags, Method, Table};

use crate::api::filter::Attached;
use crate::api::module::Module;
use crate::config::host::Host;
use crate::core::CoreDir;
use crate::engine::Engine;
use crate::engine::plan::{Layer, Place, Plan};
use crate::files::validity::Trace;
use crate::phases::matching::Matching;
use crate::phases::walk::IfWalks;
use crate::request::body::Body;
use crate::request::connection_info::ConnectionInfo;
use crate::request::facet::Facets;
use crate::request::request_body::BodyIn;

pub use crate::files::{FileInfo, FileKind};
pub use file::PathInfoUse;
pub use head::{Absolute, CLOSES_SILENTLY, KnownHost};
pub use origin::{Depth, MainRequest};
pub use validity::Validity;

/// A response that was sent without its fields being put into the request.
pub trait CachedHead {
    /// A field of the response, of those that were made for it and not for every response.
    fn field(&self, name: &[u8]) -> Option<&[u8]>;
}

/// A request.
pub struct Request {
    /// The loop that serves it.
    pub engine: Rc<Engine>,
    /// The connection it came on.
    pub connection: Rc<ConnectionInfo>,
    /// The (virtual) host.
    pub host: Arc<Host>,
    /// The merged configuration in force; initially the host's own.
    pub layer: Rc<Layer>,
    /// The plan of that configuration.
    pub plan: Rc<Plan>,
    /// The copy number of that configuration: Apache merges some again, and authorises under each.
    pub copy: u64,
    /// The merges of its `<If>` sections.
    pub if_walks: IfWalks,

    /// The request line as received, for logs.
    pub request_line: Vec<u8>,
    /// The method. HEAD is GET with [`Request::header_only`].
    pub method: Method,
    /// The method as received (`HEAD`, or an extension's name).
    pub method_name: Cow<'static, [u8]>,
    /// HEAD: no body is sent.
    pub header_only: bool,
    /// The protocol version in thousands: HTTP/1.1 is 1001.
    pub protocol: u16,
    /// HTTP/0.9: no head is sent.
    pub simple: bool,
    /// The target as received, with query.
    pub unparsed_uri: Vec<u8>,
    /// The path, unescaped and normalised.
    pub uri: Vec<u8>,
    /// [`Request::query`]
    pub(crate) args: Option<Vec<u8>>,
    /// The scheme and authority of an absolute-form target.
    pub absolute: Option<Box<Absolute>>,
    /// The requested host name, in lower case and without port, if it is valid.
    pub hostname: Option<Vec<u8>>,
    /// The port in the Host field or target.
    pub named_port: Option<u16>,
    /// The request's header fields.
    pub headers_in: Table,
    /// The request's trailer fields.
    pub trailers_in: Table,
    /// The request's body.
    pub body_in: BodyIn,
    /// When it was received, in microseconds since the epoch.
    pub time_us: u64,
    /// The client's address (mod_remoteip may change it).
    pub useragent_addr: std::net::SocketAddr,
    /// The response must not be cached (`no_cache`).
    pub no_cache: bool,
    /// Conditional fields are ignored (`no_local_copy`).
    pub no_local_copy: bool,

    /// The file the path was translated to.
    pub filename: Vec<u8>,
    /// The same, canonical, for matching directory sections.
    pub canonical_filename: Vec<u8>,
    /// The rest of the URI after the file.
    pub path_info: Vec<u8>,
    /// Whether path_info was used or is forbidden (`AcceptPathInfo`, `used_path_info`).
    pub used_path_info: PathInfoUse,
    /// The entry at `filename`.
    pub file: FileInfo,

    /// The authenticated user.
    pub user: Option<Vec<u8>>,
    /// The authentication type, such as `Basic`.
    pub auth_type: Option<Cow<'static, str>>,
    /// The handler that is to respond (`SetHandler`, `AddHandler`, internal ones).
    pub handler: Option<Cow<'static, [u8]>>,
    /// Whether the handler's name is the media type, since there was no other: logs do not show it.
    pub handler_of_type: bool,
    /// The media type, without charset added by `AddDefaultCharset`.
    pub content_type: Option<Vec<u8>>,
    /// Content codings, outermost last.
    pub content_encoding: Option<Vec<u8>>,
    /// Languages of the content.
    pub content_languages: Vec<Vec<u8>>,
    /// Variables (`subprocess_env`).
    pub env: Table,
    /// Notes from one module to another.
    pub notes: Table,

    /// The status of the response.
    pub status: u16,
    /// The status line after the version, if it is not the standard one.
    pub status_line: Option<Vec<u8>>,
    /// The response's header fields.
    pub headers_out: Table,
    /// Header fields that error responses contain as well (`err_headers_out`).
    pub err_headers_out: Table,
    /// The response's trailer fields.
    pub trailers_out: Table,
    /// The response's body.
    pub body: Body,
    /// The modification time of the content, in microseconds since the epoch.
    pub mtime_us: Option<u64>,
    /// Body bytes sent (`%b`).
    pub bytes_sent: u64,
    /// Output filters, in stage order.
    pub filters: Vec<Attached>,
    /// Methods that handlers added to the `Allow` field.
    pub allowed: wire::method::MethodSet,
    /// Whether the response must be chunked or end with the connection, since its length is
    /// unknown.
    pub chunked: bool,

    /// The request that was internally redirected to this one.
    pub prev: Option<Box<Request>>,
    /// Properties of the main request, in a subrequest.
    pub main: Option<Box<MainRequest>>,
    /// Whether only pure hooks have taken part so far.
    pub pure: bool,
    /// The facets that they used.
    pub facets: Facets,
    /// Paths that were examined, if the response may be cached.
    pub trace: Option<Trace>,
    /// Whether this is a subrequest for a file instead of a URI: the name phases are skipped.
    pub file_lookup: bool,
    /// Internal redirects and subrequests on the way to this one.
    pub depth: Depth,
    /// Regular expressions that took long.
    pub matching: Matching,
    /// Values that modules store in the request.
    pub(crate) extensions: Vec<(TypeId, Box<dyn Any>)>,
    /// Facts about the fields, from the parser.
    pub flags: HeadFlags,
    /// What conditions were judged by, where the response may be kept.
    pub judged: Option<Validity>,
    /// The cached response that it was given.
    pub(crate) given: Option<Rc<dyn CachedHead>>,
    /// [`Request::log_id`]
    pub(crate) log_mark: std::cell::OnceCell<[u8; 12]>,
}

impl Request {
    /// Returns an empty request for a place.
    pub fn blank(engine: Rc<Engine>, connection: Rc<ConnectionInfo>, place: Place) -> Request {
        Request {
            host: place.host.clone(),
            useragent_addr: connection.peer,
            time_us: engine.handle.clock().wall_us(),
            engine,
            connection,
            layer: place.layer,
            plan: place.plan,
            copy: 0,
            if_walks: None,
            request_line: Vec::new(),
            method: Method::GET,
            method_name: Cow::Borrowed(b"GET"),
            header_only: false,
            protocol: 1001,
            simple: false,
            unparsed_uri: Vec::new(),
            uri: Vec::new(),
            args: None,
            absolute: None,
            hostname: None,
            named_port: None,
            headers_in: Table::new(),
            trailers_in: Table::new(),
            body_in: BodyIn::default(),
            no_cache: false,
            no_local_copy: false,
            filename: Vec::new(),
            canonical_filename: Vec::new(),
            path_info: Vec::new(),
            used_path_info: PathInfoUse::Default,
            file: FileInfo::default(),
            user: None,
            auth_type: None,
            handler: None,
            handler_of_type: false,
            content_type: None,
            content_encoding: None,
            content_languages: Vec::new(),
            env: Table::new(),
            notes: Table::new(),
            status: 200,
            status_line: None,
            headers_out: Table::new(),
            err_headers_out: Table::new(),
            trailers_out: Table::new(),
            body: Body::Empty,
            mtime_us: None,
            bytes_sent: 0,
            filters: Vec::new(),
            allowed: wire::MethodSet::EMPTY,
            chunked: false,
            prev: None,
            main: None,
            pure: true,
            facets: Facets::default(),
            trace: None,
            file_lookup: false,
            depth: Depth::default(),
            matching: Matching::default(),
            extensions: Vec::new(),
            flags: HeadFlags::NONE,
            judged: None,
            given: None,
            log_mark: std::cell::OnceCell::new(),
        }
    }

    /// Begins an empty request on `connection`, under the configuration of `place`.
    #[inline]
    pub fn begin(&mut self, connection: &Rc<ConnectionInfo>, place: &Place) {
        if !Rc::ptr_eq(&self.connection, connection) {
            self.connection = connection.clone();
        }
        self.useragent_addr = connection.peer;
        self.time_us = self.engine.handle.clock().wall_us();
        self.enter(place);
    }

    /// Switches to another configuration and its host.
    #[inline]
    fn enter(&mut self, place: &Place) {
        self.copy = 0;
        if Rc::ptr_eq(&self.plan, &place.plan) {
            return;
        }
        self.layer = place.layer.clone();
        self.plan = place.plan.clone();
        if !Arc::ptr_eq(&self.host, &place.host) {
            self.host = place.host.clone();
        }
    }

    /// Whether nothing in the request could change its response.
    pub fn is_untouched(&self) -> bool {
        self.env.is_empty()
            && self.notes.is_empty()
            && self.headers_out.is_empty()
            && self.err_headers_out.is_empty()
            && !self.no_cache
            && !self.matching.has_undecided()
    }

    /// Notes that a cached response was sent, for the log: its fields are not among the request's.
    pub fn give(&mut self, response: Rc<dyn CachedHead>) {
        self.given = Some(response);
    }

    /// A field of the response, for the log.
    pub fn field_out(&self, name: &[u8]) -> Option<&[u8]> {
        let made = self.headers_out.get(name).or_else(|| self.err_headers_out.get(name));
        made.or_else(|| self.given.as_ref()?.field(name))
    }

    /// Sets the variables of every TLS connection.
    pub fn tell_tls(&mut self) {
        let Some(tls) = &self.connection.tls else { return };
        self.env.set(b"HTTPS", b"on");
        if let Some(name) = &tls.server_name {
            self.env.set(b"SSL_TLS_SNI", name.as_bytes());
        }
    }

    /// Whether the variables are only those of [`Request::tell_tls`].
    pub fn has_plain_env(&self) -> bool {
        self.env.iter().all(|(name, _)| matches!(name, b"HTTPS" | b"SSL_TLS_SNI"))
    }

    /// A module's directory configuration as merged for this request.
    pub fn dir_of<M: Module>(&self) -> Option<&M::Dir> {
        let slot = self.engine.server.registry.slot_of::<M>()?;
        self.plan.dir.get::<M::Dir>(slot)
    }

    /// A module's server configuration of the request's host.
    pub fn server_of<M: Module>(&self) -> Option<&M::Server> {
        let slot = self.engine.server.registry.slot_of::<M>()?;
        self.host.server.get::<M::Server>(slot)
    }

    /// The core's directory configuration of a layer.
    pub fn core_of<'l>(&self, layer: &'l Layer) -> &'l CoreDir {
        let slot = self.engine.server.registry.core;
        let Some(core) = layer.dir.get(slot) else { unreachable!("core is always active") };
        core
    }
}
