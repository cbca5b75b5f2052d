//! One connection as modules see it (`conn_rec`).

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use rt::tls::CertificateDer;

use crate::config::host::Host;
use crate::phases::hostname::Names;

/// A connection.
pub struct Client {
    /// Unique within the server's life.
    pub id: u64,
    /// The other end.
    pub peer: SocketAddr,
    /// Our end: the address it was accepted on.
    pub local: SocketAddr,
    /// The host that the address alone selects; requests may select another by name.
    pub base_host: Arc<Host>,
    /// The TLS session, on a TLS connection.
    pub tls: Option<Rc<TlsFacts>>,
    /// Responses after which the connection stayed open.
    pub keepalives: Cell<u32>,
    /// Bytes received for the request at hand, before decryption (`%I`).
    pub bytes_in: Cell<u64>,
    /// Bytes sent for the answer at hand, after encryption (`%O`).
    pub bytes_out: Cell<u64>,
    /// When the answer at hand began to leave, microseconds since the epoch.
    pub first_byte_us: Cell<u64>,
    /// The other end has gone away.
    pub aborted: Cell<bool>,
    /// The keep-alive state after the current request: `+`, `-` or `X` of `%X`.
    pub keepalive: Cell<KeepAlive>,
    /// The names of both ends, once somebody asked for one.
    pub names: OnceCell<Rc<Names>>,
    /// The identifier in log lines (`%{c}L`), made when first asked for.
    pub log_id: Cell<Option<[u8; 12]>>,
}

/// What happens to the connection after the answer.
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

/// What is known of a TLS session. Small, because every idle connection keeps it.
#[derive(Clone, Debug, Default)]
pub struct TlsFacts {
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// The suite's number (IANA).
    pub cipher_suite: u16,
    /// Whether the session was resumed.
    pub resumed: bool,
    /// Whose configuration the handshake used: [`crate::config::host::Host::id`].
    pub host: u32,
    /// Which of that host's certificates was shown, from 0.
    pub certificate: usize,
    /// The name the client asked for (SNI), lower case.
    pub server_name: Option<Box<str>>,
    /// The application protocol agreed on (ALPN).
    pub alpn: Option<Box<[u8]>>,
    /// The client's certificates, if it sent some that count.
    pub peer: Option<Box<TlsPeer>>,
    /// Why the client's certificates don't count, if it sent such.
    pub ignored: Option<Box<str>>,
    /// The host that was last found to be one this connection may ask for.
    pub admitted: Cell<Option<u32>>,
    /// An identifier of the session, made when first asked for.
    pub session_id: std::cell::OnceCell<Box<[u8; 32]>>,
}

/// The client's end of a TLS session.
#[derive(Clone, Debug)]
pub struct TlsPeer {
    /// Its certificates in DER, its own first.
    pub certificates: Vec<CertificateDer<'static>>,
    /// Why they are not trusted; `None` if they are.
    pub failure: Option<String>,
    /// How many authorities stand above its own, if they are trusted.
    pub depth: usize,
}
