//! A request and its response (`request_rec`).

mod allow;
pub mod body;
mod coded;
pub mod connection_info;
mod dependencies;
mod document_root;
pub mod dump;
pub mod etag;
mod expiry;
mod file;
pub(crate) mod filters;
mod head;
pub mod http2;
mod keep_alive;
mod kept;
mod media_type;
mod origin;
pub mod passing;
mod print;
pub mod read_policy;
mod renew;
pub mod request_body;
mod resource;
mod response;
mod shared_fields;
mod shown_line;
mod trace;
mod traffic;
pub mod tunnel;
mod validators;
pub mod variant_key;

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use wire::{HeadFlags, Table};

use crate::api::module::Module;
use crate::config::core::CoreDir;
use crate::config::host::Host;
use crate::engine::Engine;
use crate::engine::plan::{Layer, Place, Plan};
use crate::phases::matching::Matching;
use crate::phases::walk::IfWalks;
use crate::request::connection_info::{ConnectionInfo, KeepAlive};
use crate::request::request_body::BodyIn;

pub use crate::files::{FileInfo, FileKind};
pub use coded::{FileCoding, FileParse};
pub use dependencies::Dependencies;
pub use expiry::{Expiry, ExpiryTime};
pub use file::PathInfoUse;
pub use head::{Absolute, CLOSES_SILENTLY, Head, KnownHost, SNI_ALONE, Unhosted};
pub(crate) use origin::SentCredentials;
pub use origin::{Depth, LentSession, LookupSession, MainRequest, ParentSession, SharedLogin};
pub use resource::{Proxied, Resource};
pub use response::{Announced, BodyEnd, LateTrailers, Response, Switching};
pub use traffic::Traffic;
pub use validators::OwnValidators;

/// Notes that pure hooks do not read: those of mod_remoteip and mod_log_forensic.
const NOTES_FOR_LOGS: [&[u8]; 2] = [b"remoteip-proxy-ip-list", b"forensic-id"];

/// The variable of mod_unique_id, which every request has if the module is loaded.
pub const UNIQUE_ID: &[u8] = b"UNIQUE_ID";

/// A response that was sent without its fields being put into the request.
pub trait CachedHead {
    /// A field of the response, of those that are the same for every client, except `Server`.
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

    /// What the client sent.
    pub head: Head,
    /// The request's body.
    pub body_in: BodyIn,
    /// When the request was received, in microseconds since the epoch.
    pub time_us: u64,
    /// The client's address (mod_remoteip may change it).
    pub useragent_addr: std::net::SocketAddr,
    /// The requested host name, in lower case and without port, if it is valid.
    pub hostname: Option<Vec<u8>>,
    /// The port in the Host field or target.
    pub named_port: Option<u16>,

    /// The target, and what it was translated to.
    pub resource: Resource,
    /// The authenticated user.
    pub user: Option<Vec<u8>>,
    /// The authentication type, such as `Basic`.
    pub auth_type: Option<Cow<'static, str>>,
    /// The handler that is to respond (`SetHandler`, `AddHandler`, internal ones).
    pub handler: Option<Cow<'static, [u8]>>,
    /// Whether the handler's name is the media type, since there was no other: logs do not show it.
    pub handler_of_type: bool,
    /// Whether a handler was asked for the response, whatever it answered.
    pub reached_handler: bool,
    /// Variables (`subprocess_env`).
    pub env: Table,
    /// Notes from one module to another.
    pub notes: Table,

    /// The response.
    pub response: Response,
    /// What the response depends on.
    pub depends: Dependencies,
    /// Bytes on the wire.
    pub traffic: Traffic,

    /// The request that was internally redirected to this one.
    pub prev: Option<Box<Request>>,
    /// The last of the requests to this one's error document, if it failed as well: for logs.
    pub failed: Option<Box<Request>>,
    /// Properties of the main request, in a subrequest.
    pub main: Option<Box<MainRequest>>,
    /// Whether this is a subrequest for a file instead of a URI: the name phases are skipped.
    pub file_lookup: bool,
    /// Whether this is a subrequest that begins with the quick handlers.
    pub quick_lookup: bool,
    /// Internal redirects and subrequests on the way to this one.
    pub depth: Depth,
    /// Regular expressions that took long.
    pub matching: Matching,
    /// Values that modules store in the request.
    pub(crate) extensions: Vec<(TypeId, Box<dyn Any>)>,
    /// The cached response that it was given.
    pub(crate) given: Option<Rc<dyn CachedHead>>,
    /// [`Request::log_id`]
    pub(crate) log_mark: std::cell::OnceCell<Box<[u8]>>,
    /// Memory for the request that the next internal redirect makes.
    pub(crate) spare: Option<Box<Request>>,
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
            head: Head::default(),
            body_in: BodyIn::default(),
            hostname: None,
            named_port: None,
            resource: Resource::default(),
            user: None,
            auth_type: None,
            handler: None,
            handler_of_type: false,
            reached_handler: false,
            env: Table::new(),
            notes: Table::new(),
            response: Response::default(),
            depends: Dependencies::default(),
            traffic: Traffic::default(),
            prev: None,
            failed: None,
            main: None,
            file_lookup: false,
            quick_lookup: false,
            depth: Depth::default(),
            matching: Matching::default(),
            extensions: Vec::new(),
            given: None,
            log_mark: std::cell::OnceCell::new(),
            spare: None,
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
        self.env.iter().all(|(name, _)| name == UNIQUE_ID)
            && self.notes.iter().all(|(name, _)| NOTES_FOR_LOGS.contains(&name))
            && self.response.headers_out.is_empty()
            && self.response.err_headers_out.is_empty()
            && !self.response.no_cache
            && !self.matching.has_undecided()
    }

    /// Notes that a cached response was sent, for the log: its fields are not among the request's.
    pub fn give(&mut self, response: Rc<dyn CachedHead>) {
        self.given = Some(response);
    }

    /// A field of the response, for the log.
    pub fn field_out(&self, name: &[u8]) -> Option<&[u8]> {
        let made =
            self.response.headers_out.get(name).or_else(|| self.response.err_headers_out.get(name));
        made.or_else(|| self.given.as_ref()?.field(name))
    }

    /// A field of the response that was sent, for the log, including those that are made when the
    /// head is written.
    pub fn field_sent(&self, name: &[u8]) -> Option<Cow<'_, [u8]>> {
        let own = self.response.headers_out.get(name);
        if let Some(value) = own.or_else(|| self.given.as_ref()?.field(name)) {
            return Some(value.into());
        }
        match name.to_ascii_lowercase().as_slice() {
            b"connection" if self.head.simple => None,
            b"connection" => match self.connection.keepalive.get() {
                KeepAlive::Open if self.head.flags.has(HeadFlags::KEEP_ALIVE) => {
                    Some(b"Keep-Alive".into())
                }
                KeepAlive::Close => Some(b"close".into()),
                KeepAlive::Open | KeepAlive::Unknown => None,
            },
            b"keep-alive" => {
                let is_open = self.connection.keepalive.get() == KeepAlive::Open;
                let is_told =
                    is_open && self.head.flags.has(HeadFlags::KEEP_ALIVE) && !self.head.simple;
                let answered = self.connection.keepalives.get().saturating_sub(1);
                is_told.then(|| {
                    let mut terms = Vec::new();
                    self.keep_alive_terms(answered, &mut terms);
                    terms.into()
                })
            }
            b"transfer-encoding" => self.response.chunked.then(|| b"chunked".into()),
            b"content-encoding" => self.response.content_encoding.as_deref().map(Into::into),
            b"content-language" => {
                let languages = &self.response.content_languages;
                (!languages.is_empty()).then(|| languages.join(&b","[..]).into())
            }
            _ => None,
        }
    }

    /// Sets the variables of every TLS connection.
    pub fn tell_tls(&mut self) {
        let Some(tls) = &self.connection.tls else { return };
        self.env.set(b"HTTPS", b"on");
        if let Some(name) = &tls.server_name {
            self.env.set(b"SSL_TLS_SNI", name.as_bytes());
        }
    }

    /// Sets the variables of HTTP/2.
    pub fn tell_http2(&mut self) {
        let Some(stream) = self.connection.stream else { return };
        let mut digits = itoa::Buffer::new();
        let pushing = self.connection.pushing.get();
        let accepted: &[u8] = if pushing.is_accepted { b"on" } else { b"off" };
        let (pushed, on): (&[u8], _) = match pushing.by {
            Some(by) => (b"PUSHED", digits.format(by.get()).as_bytes()),
            None => (b"", &b""[..]),
        };
        self.env.set(b"HTTP2", b"on");
        self.env.set(b"H2PUSH", accepted);
        self.env.set(b"H2_PUSH", accepted);
        self.env.set(b"H2_PUSHED", pushed);
        self.env.set(b"H2_PUSHED_ON", on);
        self.env.set(b"H2_STREAM_ID", digits.format(stream.get()).as_bytes());
        let tag = format!("{}-{}-{stream}", std::process::id(), self.connection.id);
        self.env.set(b"H2_STREAM_TAG", tag.as_bytes());
    }

    /// The variables, except those of [`Request::tell_tls`], [`UNIQUE_ID`], and those that an
    /// internal redirect has handed down.
    pub fn own_variables(&self) -> Table {
        let mut own = Table::new();
        for (name, value) in self.env.iter() {
            let is_told = name == UNIQUE_ID
                || self.is_told_by_tls(name, value)
                || self.is_told_by_http2(name);
            if !is_told && !self.is_handed_down(name, value) {
                own.add(name, value);
            }
        }
        own
    }

    /// Sets variables, each with all its values.
    pub fn give_variables(&mut self, variables: &Table) {
        for (name, _) in variables.iter() {
            self.env.unset(name);
        }
        self.env.extend(variables);
    }

    fn is_told_by_tls(&self, name: &[u8], value: &[u8]) -> bool {
        let Some(tls) = &self.connection.tls else { return false };
        match name {
            b"HTTPS" => value == b"on",
            b"SSL_TLS_SNI" => tls.server_name.as_deref().map(str::as_bytes) == Some(value),
            _ => false,
        }
    }

    fn is_told_by_http2(&self, name: &[u8]) -> bool {
        self.connection.stream.is_some()
            && (name == b"HTTP2" || name.starts_with(b"H2_") || name == b"H2PUSH")
    }

    fn is_handed_down(&self, name: &[u8], value: &[u8]) -> bool {
        let (Some(prev), Some(rest)) = (&self.prev, name.strip_prefix(b"REDIRECT_")) else {
            return false;
        };
        rest == b"STATUS" || prev.env.get(rest) == Some(value)
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
