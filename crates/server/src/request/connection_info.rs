//! A connection as modules see it (`conn_rec`).

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use bstr::BString;
use rt::tls::CertificateDer;

use crate::config::host::Host;
use crate::phases::hostname::Names;
use crate::request::http2::Pushing;

/// A connection.
pub struct ConnectionInfo {
    /// The id, unique within the server's life.
    pub id: u64,
    /// The remote address.
    pub peer: SocketAddr,
    /// The local address that it was accepted on.
    pub local: SocketAddr,
    /// The host that the address selects; requests may select another by name.
    pub base_host: Arc<Host>,
    /// The TLS session, on a TLS connection.
    pub tls: Option<Rc<TlsFacts>>,
    /// Responses after which the connection stayed open.
    pub keepalives: Cell<u32>,
    /// Bytes sent, up to the end of the last response.
    pub bytes_sent: Cell<u64>,
    /// Whether the client has disconnected.
    pub aborted: Cell<bool>,
    /// The keep-alive state after the current request: `+`, `-` or `X` of `%X`.
    pub keepalive: Cell<KeepAlive>,
    /// The names of both ends, once one has been looked up.
    pub names: OnceCell<Rc<Names>>,
    /// The user of the connection, once the client's host has been asked (`remote_logname`).
    pub logname: OnceCell<Box<BString>>,
    /// The identifier in log lines (`%{c}L`), created on first use.
    pub log_id: Cell<Option<[u8; 12]>>,
    /// The stream of a connection of HTTP/2: this is then the request's view of the connection.
    pub stream: Option<NonZeroU32>,
    /// What a proxy has reported about the connection before its first request.
    pub proxied: Option<Box<Proxied>>,
    /// Interim responses of the current request, as they are sent, that have not been sent yet.
    pub interim: Cell<Box<[u8]>>,
    /// Pushed responses, as the current request sees them.
    pub pushing: Cell<Pushing>,
}

/// The contents of a header of the PROXY protocol.
#[derive(Clone, Debug)]
pub struct Proxied {
    /// The address of the proxy's client.
    pub client: SocketAddr,
    /// The length of the header in bytes, until a request has counted it.
    pub header_bytes: Cell<u64>,
}

/// What happens to the connection after the response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepAlive {
    /// Not decided yet.
    #[default]
    Unknown,
    /// It is closed.
    Close,
    /// It stays open for another request.
    Open,
}

/// The properties of a TLS session. Small, because every idle connection keeps it.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// The suite's number (IANA).
    pub cipher_suite: u16,
    /// Whether the session was resumed.
    pub resumed: bool,
    /// The host whose configuration the handshake used: [`crate::config::host::Host::id`].
    pub host: u32,
    /// The index of that host's certificate that was sent.
    pub certificate: usize,
    /// The name that the client sent (SNI), in lower case.
    pub server_name: Option<Box<str>>,
    /// The negotiated application protocol (ALPN).
    pub alpn: Option<Box<[u8]>>,
    /// The client's certificates, if it sent any that apply.
    pub peer: Option<Box<TlsPeer>>,
    /// Why the client's certificates do not apply, if it sent any.
    pub ignored: Option<Box<str>>,
    /// The last host that requests on this connection were found to be allowed to name.
    pub admitted: Cell<Option<u32>>,
    /// An identifier of the session, created on first use.
    pub session_id: std::cell::OnceCell<Box<[u8; 32]>>,
}

/// The client's end of a TLS session.
#[derive(Clone, Debug)]
pub struct TlsPeer {
    /// Its certificates in DER, its own first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Why they are not trusted; `None` if they are.
    pub failure: Option<String>,
    /// The number of issuers above its own, if they are trusted.
    pub depth: usize,
}
