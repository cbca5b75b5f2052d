//! One request and the answer that is being made for it (`request_rec`).

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use wire::host::RequestHost;
use wire::{HeadError, HeadFlags, Method, Table};

use crate::body::Body;
use crate::client::Client;
use crate::core::{Core, CoreDir};
use crate::engine::Engine;
use crate::filter::{Attached, OutputFilter, Stage};
use crate::host::Host;
use crate::inlet::BodyIn;
use crate::module::Module;
use crate::plan::{Layer, Place, Plan};
use crate::resource::Resource;

/// A request.
pub struct Request {
    /// The loop that serves it.
    pub engine: Rc<Engine>,
    /// The connection it came on.
    pub client: Rc<Client>,
    /// The (virtual) host it is for.
    pub host: Arc<Host>,
    /// The merged configuration in force; the host's own until sections are merged.
    pub layer: Rc<Layer>,
    /// What that configuration has to do.
    pub plan: Rc<Plan>,

    /// The request line as it came, for logs.
    pub request_line: Vec<u8>,
    /// The method. HEAD is GET with [`Request::header_only`].
    pub method: Method,
    /// The method as it came (`HEAD`, or an extension's name).
    pub method_name: Cow<'static, [u8]>,
    /// HEAD: no body leaves.
    pub header_only: bool,
    /// The protocol version as thousands: HTTP/1.1 is 1001.
    pub protocol: u16,
    /// HTTP/0.9: no head leaves.
    pub simple: bool,
    /// The target as it came, with query.
    pub unparsed_uri: Vec<u8>,
    /// The path, unescaped and normalised.
    pub uri: Vec<u8>,
    /// The query, without the question mark.
    pub args: Option<Vec<u8>>,
    /// The scheme and authority of an absolute-form target.
    pub absolute: Option<Box<Absolute>>,
    /// The host name asked for, lower case and without port, where one was given and valid.
    pub hostname: Option<Vec<u8>>,
    /// The port in the Host field or target.
    pub named_port: Option<u16>,
    /// The request's header fields.
    pub headers_in: Table,
    /// The request's trailer fields.
    pub trailers_in: Table,
    /// The request's body.
    pub body_in: BodyIn,
    /// When it was received: microseconds since the epoch.
    pub time_us: u64,
    /// The end user's address (mod_remoteip may change it).
    pub useragent_addr: std::net::SocketAddr,
    /// Nobody else may be answered by a copy of this answer (`no_cache`).
    pub no_cache: bool,
    /// Conditional headers are not looked at (`no_local_copy`).
    pub no_local_copy: bool,

    /// The file the path was translated to.
    pub filename: Vec<u8>,
    /// The same, canonical; what directory sections are matched against.
    pub canonical_filename: Vec<u8>,
    /// What follows the file's path in the URI.
    pub path_info: Vec<u8>,
    /// Whether path_info was looked at or is forbidden (`AcceptPathInfo`, `used_path_info`).
    pub used_path_info: PathInfoUse,
    /// What stands at `filename`.
    pub file: FileInfo,

    /// The user that authenticated.
    pub user: Option<Vec<u8>>,
    /// How (`Basic`).
    pub auth_type: Option<Cow<'static, str>>,
    /// The handler that shall answer (`SetHandler`, `AddHandler`, internal ones).
    pub handler: Option<Cow<'static, [u8]>>,
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

    /// The status of the answer.
    pub status: u16,
    /// The status line after the version, where it is not the standard one.
    pub status_line: Option<Vec<u8>>,
    /// The answer's header fields.
    pub headers_out: Table,
    /// Header fields that also stand in error answers (`err_headers_out`).
    pub err_headers_out: Table,
    /// The answer's trailer fields.
    pub trailers_out: Table,
    /// The answer's body.
    pub body: Body,
    /// The modification time of what is sent, microseconds since the epoch.
    pub mtime_us: Option<u64>,
    /// Body bytes sent (`%b`).
    pub bytes_sent: u64,
    /// Output filters, in stage order.
    pub filters: Vec<Attached>,
    /// Methods for an `Allow` field that handlers added.
    pub allowed: wire::method::MethodSet,
    /// The answer must be chunked or end with the connection: its length is not known.
    pub chunked: bool,

    /// The request that was internally redirected to this one.
    pub prev: Option<Box<Request>>,
    /// What is known of the main request, in a subrequest.
    pub main: Option<Box<MainRequest>>,
    /// Whether only hooks that are pure took part so far.
    pub pure: bool,
    /// Paths that were looked at, where somebody wants to know (the resource cache).
    pub trace: Option<Vec<Vec<u8>>>,
    /// A subrequest for a file, not a URI: the name phases are left out.
    pub file_lookup: bool,
    /// Internal redirects and subrequests on the way to this one.
    pub depth: Depth,
    /// Values of the request's own that modules keep.
    pub(crate) extensions: Vec<(TypeId, Box<dyn Any>)>,
    /// What the parser noticed about the fields.
    pub flags: HeadFlags,
    /// [`Request::log_id`]
    pub(crate) log_mark: std::cell::OnceCell<[u8; 12]>,
}

/// A host that a connection has asked for before, and where its requests begin.
pub struct KnownHost {
    /// The name as in the request, lower case, without port.
    name: Vec<u8>,
    place: Place,
}

/// The note of a request whose connection ends after it without a word of that in the answer.
pub(crate) const CLOSES_SILENTLY: &[u8] = b"closes-silently";

/// Scheme and authority of an absolute-form target.
#[derive(Clone, Debug)]
pub struct Absolute {
    /// `http`, `https`, …
    pub scheme: Vec<u8>,
    /// Host and port as they came.
    pub authority: Vec<u8>,
}

/// What a subrequest knows of the request that made it.
#[derive(Clone)]
pub struct MainRequest {
    /// The main request's plan: authorisation is not repeated under the very same one.
    pub plan: Rc<Plan>,
    /// The main request's path.
    pub uri: Vec<u8>,
    /// The main request's file.
    pub filename: Vec<u8>,
    /// The user of the main request.
    pub user: Option<Vec<u8>>,
    /// How the user of the main request authenticated.
    pub auth_type: Option<Cow<'static, str>>,
}

/// How deep we are in internal redirects and subrequests (`LimitInternalRecursion`).
#[derive(Clone, Copy, Debug, Default)]
pub struct Depth {
    /// Internal redirects.
    pub redirects: u16,
    /// Subrequests.
    pub subrequests: u16,
}

/// `AcceptPathInfo`, as a handler sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathInfoUse {
    /// The handler's own default.
    #[default]
    Default,
    /// Trailing path information is taken.
    Accept,
    /// It makes the request a 404.
    Reject,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileInfo {
    /// What it is.
    pub kind: FileKind,
    /// Length in bytes.
    pub size: u64,
    /// Modification time, microseconds since the epoch.
    pub mtime_us: u64,
    /// When content or attributes last changed, which nobody can set back; microseconds since the
    /// epoch.
    pub ctime_us: u64,
    /// Inode.
    pub inode: u64,
    /// Device.
    pub device: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The kind of a directory entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileKind {
    /// Nothing is there (or it was not looked at).
    #[default]
    None,
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// Anything else.
    Other,
}

impl Request {
    /// A request of which nothing is known but its place.
    pub fn blank(engine: Rc<Engine>, client: Rc<Client>, place: Place) -> Request {
        Request {
            host: place.layer.host.clone(),
            useragent_addr: client.peer,
            time_us: engine.handle.clock().wall_us(),
            engine,
            client,
            layer: place.layer,
            plan: place.plan,
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
            trace: None,
            file_lookup: false,
            depth: Depth::default(),
            extensions: Vec::new(),
            flags: HeadFlags::NONE,
            log_mark: std::cell::OnceCell::new(),
        }
    }

    /// Begins a request that is blank, on `client`, under the configuration of `place`.
    pub fn begin(&mut self, client: &Rc<Client>, place: &Place) {
        if !Rc::ptr_eq(&self.client, client) {
            self.client = client.clone();
        }
        self.useragent_addr = client.peer;
        self.time_us = self.engine.handle.clock().wall_us();
        self.enter(place);
    }

    /// Goes to another configuration, and to the host that it is of.
    fn enter(&mut self, place: &Place) {
        if Rc::ptr_eq(&self.layer, &place.layer) {
            return;
        }
        self.layer = place.layer.clone();
        self.plan = place.plan.clone();
        if !Arc::ptr_eq(&self.host, &self.layer.host) {
            self.host = self.layer.host.clone();
        }
    }

    /// Forgets everything of the request, so that another one can use its memory; see
    /// [`Request::begin`].
    pub fn renew(&mut self) {
        for text in [
            &mut self.request_line,
            &mut self.unparsed_uri,
            &mut self.uri,
            &mut self.filename,
            &mut self.canonical_filename,
            &mut self.path_info,
        ] {
            text.clear();
        }
        for table in [
            &mut self.headers_in,
            &mut self.trailers_in,
            &mut self.env,
            &mut self.notes,
            &mut self.headers_out,
            &mut self.err_headers_out,
            &mut self.trailers_out,
        ] {
            table.clear();
        }
        self.forget_answer();
        self.args = None;
        self.absolute = None;
        self.body_in = BodyIn::default();
        self.no_cache = false;
        self.no_local_copy = false;
        self.user = None;
        self.auth_type = None;
        self.prev = None;
        self.main = None;
        self.pure = true;
        self.trace = None;
        self.file_lookup = false;
        self.depth = Depth::default();
        self.extensions.clear();
        self.log_mark.take();
    }

    /// The part of [`Request::renew`] that is about the file and the answer.
    fn forget_answer(&mut self) {
        self.used_path_info = PathInfoUse::Default;
        self.file = FileInfo::default();
        self.handler = None;
        self.content_type = None;
        self.content_encoding = None;
        self.content_languages.clear();
        self.status = 200;
        self.status_line = None;
        self.body = Body::Empty;
        self.mtime_us = None;
        self.bytes_sent = 0;
        self.filters.clear();
        self.allowed = wire::MethodSet::EMPTY;
        self.chunked = false;
    }

    /// Takes over a parsed head; its fields move, so that nothing is copied.
    pub fn take_head(&mut self, head: &mut wire::RequestHead) {
        self.method = head.method;
        self.header_only = head.header_only;
        self.method_name = match head.method_name() {
            b"GET" => Cow::Borrowed(b"GET"),
            b"HEAD" => Cow::Borrowed(b"HEAD"),
            b"POST" => Cow::Borrowed(b"POST"),
            other => Cow::Owned(other.to_vec()),
        };
        self.protocol = head.version.0 as u16;
        self.simple = head.is_simple();
        self.request_line.extend_from_slice(head.line());
        self.unparsed_uri.extend_from_slice(head.target());
        self.uri.extend_from_slice(head.path());
        self.args = head.query().map(<[u8]>::to_vec);
        self.flags = head.flags;
        std::mem::swap(&mut self.headers_in, &mut head.headers);
    }

    /// Finds the host that the request is for: by name, among those of the connection's address.
    pub fn find_host(
        &mut self,
        host: &mut RequestHost,
        head: &mut wire::RequestHead,
        known: &mut Option<KnownHost>,
    ) -> Result<(), Box<HeadError>> {
        let strict = self.client.base_host.core.strict_protocol();
        let scheme: &[u8] = if self.client.tls.is_some() { b"https" } else { b"http" };
        // The name that was there is the last user's of this memory, perhaps another client.
        let name = self.forget_host();
        host.resolve(head, scheme, strict)?;
        host.check_presence(head)?;
        if host.is_given {
            let mut name = name.unwrap_or_default();
            name.clear();
            name.extend_from_slice(host.name());
            self.hostname = Some(name);
        }
        self.named_port = (host.port != 0).then_some(host.port);
        match known {
            Some(known) if host.is_given && known.name == host.name() => self.enter(&known.place),
            _ => {
                let selected = self.engine.server.vhosts.select(&self.client, host, head.path())?;
                let place = self.engine.plans.place(selected);
                self.enter(&place);
                *known = host.is_given.then(|| KnownHost { name: host.name().to_vec(), place });
            }
        }
        self.check_tls()?;
        head.check_expect()?;
        if head.has_known_scheme() {
            return Ok(());
        }
        Err(Box::new(HeadError {
            status: 400,
            log_number: 0,
            level: wire::LogLevel::Debug,
            message: Vec::new(),
            notes: "",
        }))
    }

    /// Forgets which host was asked for; what is returned is memory to use again.
    pub(crate) fn forget_host(&mut self) -> Option<Vec<u8>> {
        self.named_port = None;
        self.hostname.take()
    }

    /// Whether nobody has left anything on the request that could change its answer.
    pub fn is_untouched(&self) -> bool {
        self.env.is_empty()
            && self.notes.is_empty()
            && self.headers_out.is_empty()
            && self.err_headers_out.is_empty()
            && !self.no_cache
    }

    /// A TLS connection may ask for the host that its handshake was for, and for those that are
    /// as strict.
    fn check_tls(&mut self) -> Result<(), Box<HeadError>> {
        let Some(tls) = &self.client.tls else { return Ok(()) };
        if tls.admitted.get() == Some(self.host.id) && self.hostname.is_some() {
            return Ok(());
        }
        let server = &self.engine.server;
        let Some(hook) = server.registry.hooks.tls() else { return Ok(()) };
        if let (Some(name), None) = (&tls.server_name, &self.hostname) {
            return Err(nameless(name));
        }
        match (hook.admit)(&self.client, server, tls, &self.host) {
            Ok(()) => tls.admitted.set(Some(self.host.id)),
            Err(refusal) => {
                self.notes.set(CLOSES_SILENTLY, b"1");
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// The target as the client sent it, before internal redirects.
    pub fn original_target(&self) -> &[u8] {
        &self.original().unparsed_uri
    }

    /// The request as it came, before internal redirects.
    pub fn original(&self) -> &Request {
        let mut first = self;
        while let Some(prev) = &first.prev {
            first = prev;
        }
        first
    }

    /// Becomes what was answered the short way, for the log.
    pub fn take_over(&mut self, resource: &Resource) {
        self.layer = resource.layer.clone();
        self.plan = resource.plan.clone();
        self.filename.clone_from(&resource.filename);
        self.uri.clone_from(&resource.uri);
        self.content_type.clone_from(&resource.content_type);
        self.handler.clone_from(&resource.handler);
        self.file = resource.file;
        self.bytes_sent = resource.file.size;
        self.status = 200;
        self.tell_tls();
    }

    /// Puts what is always known of a TLS connection into the variables.
    pub fn tell_tls(&mut self) {
        let Some(tls) = &self.client.tls else { return };
        self.env.set(b"HTTPS", b"on");
        if let Some(name) = &tls.server_name {
            self.env.set(b"SSL_TLS_SNI", name.as_bytes());
        }
    }

    /// Whether the variables are those of [`Request::tell_tls`] alone.
    pub(crate) fn has_plain_env(&self) -> bool {
        self.env.iter().all(|(name, _)| matches!(name, b"HTTPS" | b"SSL_TLS_SNI"))
    }

    /// Values kept by a subrequest become this request's.
    pub(crate) fn adopt_kept(&mut self, kept: Vec<(TypeId, Box<dyn Any>)>) {
        for (id, value) in kept {
            self.extensions.retain(|(of, _)| *of != id);
            self.extensions.push((id, value));
        }
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
        let slot = self.engine.server.registry.slot_of::<Core>().unwrap_or(0);
        let Some(core) = layer.dir.get(slot) else { unreachable!("core is always there") };
        core
    }

    /// Notes that a path was looked at, so that a cached answer can depend on it; where a symbolic
    /// link stands there, on what it leads through as well.
    pub fn trace_path(&mut self, path: &[u8]) {
        if let Some(trace) = &mut self.trace {
            crate::path::trace(path, trace);
        }
    }

    /// Whether this is a subrequest that begins with a file name.
    pub fn is_file_lookup(&self) -> bool {
        self.file_lookup
    }

    /// Keeps a value for later phases of this request.
    pub fn keep<T: Any>(&mut self, value: T) {
        let id = TypeId::of::<T>();
        self.extensions.retain(|(of, _)| *of != id);
        self.extensions.push((id, Box::new(value)));
    }

    /// A value kept before.
    pub fn kept<T: Any>(&self) -> Option<&T> {
        let id = TypeId::of::<T>();
        self.extensions.iter().find(|(of, _)| *of == id)?.1.downcast_ref()
    }

    /// A value kept before, for writing.
    pub fn kept_mut<T: Any>(&mut self) -> Option<&mut T> {
        let id = TypeId::of::<T>();
        self.extensions.iter_mut().find(|(of, _)| *of == id)?.1.downcast_mut()
    }

    /// Whether this is the request that the client sent (`ap_is_initial_req`).
    pub fn is_initial(&self) -> bool {
        self.main.is_none() && self.prev.is_none()
    }

    /// Attaches an output filter behind those of its stage.
    pub fn add_filter(
        &mut self,
        name: impl Into<Cow<'static, str>>,
        stage: Stage,
        filter: Box<dyn OutputFilter>,
    ) {
        let at = self.filters.partition_point(|attached| attached.stage <= stage);
        self.filters.insert(at, Attached { name: name.into(), stage, filter });
    }

    /// Attaches a registered output filter by name; false if there is none of that name.
    pub fn add_filter_named(&mut self, name: &[u8]) -> bool {
        let Some(def) = self.engine.server.registry.hooks.filter(name).cloned() else {
            return false;
        };
        if let Some(filter) = (def.make)(self) {
            self.add_filter(def.name, def.stage, filter);
        }
        true
    }

    /// Puts a registered input filter in front of the body; false if there is none of that name.
    pub fn add_input_filter_named(&mut self, name: &[u8]) -> bool {
        let Some(def) = self.engine.server.registry.hooks.input_filter(name).cloned() else {
            return false;
        };
        if !self.body_in.is_empty()
            && let Some(filter) = (def.make)(self)
        {
            self.body_in.wrap(filter);
        }
        true
    }

    /// Takes a filter off again by name.
    pub fn remove_filter(&mut self, name: &str) {
        self.filters.retain(|attached| !attached.name.eq_ignore_ascii_case(name));
    }
}

/// A client that named a host in its handshake has to name one in its requests, too.
fn nameless(server_name: &str) -> Box<HeadError> {
    let message = format!(
        "Hostname {server_name} provided via SNI, but no hostname provided in HTTP request"
    );
    Box::new(HeadError {
        status: 400,
        log_number: 2031,
        level: wire::LogLevel::Error,
        message: message.into_bytes(),
        notes: "",
    })
}
