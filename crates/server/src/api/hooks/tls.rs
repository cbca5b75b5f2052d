//! How a module brings TLS to connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rt::tls::{CertificateDer, ClientHello, ServerConfig, TlsInfo};
use wire::HeadError;

use crate::config::host::{Host, Server};
use crate::engine::Engine;
use crate::request::connection_info::{Client, TlsFacts};

/// How TLS comes to connections (mod_ssl).
#[derive(Clone, Copy)]
pub struct TlsHook {
    /// Whether connections of this client speak TLS, by the address they came to.
    pub is_on: fn(&Client, &Server) -> bool,
    /// The configuration for a client, by its first message; `None` refuses it.
    pub choose: fn(&Client, &Server, &ClientHello<'_>) -> Option<TlsChoice>,
    /// Which of the host's certificates the handshake showed.
    pub shown: fn(&Server, &TlsChoice, &TlsInfo<'_>) -> usize,
    /// What is to be thought of the certificates that a client sent.
    pub judge: fn(&Engine, &TlsChoice, &[CertificateDer<'static>]) -> Judgement,
    /// Whether a request on this connection may be for this host; asked once per connection and
    /// host.
    pub admit: fn(&Client, &Server, &TlsFacts, &Host) -> Result<(), Box<HeadError>>,
}

/// What a handshake is done with.
pub struct TlsChoice {
    /// For rustls.
    pub config: Arc<ServerConfig>,
    /// The host whose configuration it is: [`Host::id`].
    pub host: u32,
    /// The place of the certificate that suits the client in TLS 1.3.
    pub certificate: usize,
}

/// Whether a client may go on with the certificates that it sent.
pub enum Judgement {
    /// It may, with these certificates.
    Admit {
        /// Why they are not trusted, if they are not.
        failure: Option<String>,
        /// How many authorities stand above the client's own certificate, if they are.
        depth: usize,
    },
    /// It may, as if it had shown none, for this reason.
    Ignore(String),
    /// It may not, for this reason.
    Refuse(String),
    /// Somebody has to be asked first.
    Wait(Pin<Box<dyn Future<Output = Judgement>>>),
}
