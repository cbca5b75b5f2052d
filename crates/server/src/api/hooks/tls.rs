//! How a module adds TLS to connections.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rt::tls::{CertificateDer, ClientHello, ServerConfig, TlsInfo};
use wire::HeadError;

use crate::config::host::{Host, Server};
use crate::engine::Engine;
use crate::request::connection_info::{ConnectionInfo, TlsFacts};

/// The callbacks for TLS (mod_ssl).
#[derive(Clone, Copy)]
pub struct TlsHook {
    /// The module's `FILE`.
    pub module: &'static str,
    /// Whether this client's connection uses TLS, by its local address.
    pub is_on: fn(&ConnectionInfo, &Server) -> bool,
    /// The configuration for a client, by its ClientHello; `None` refuses it.
    pub choose: fn(&ConnectionInfo, &Server, &ClientHello<'_>) -> Option<TlsChoice>,
    /// The index of the host's certificate that the handshake sent.
    pub shown: fn(&Server, &TlsChoice, &TlsInfo<'_>) -> usize,
    /// Verdict on the certificates that a client sent.
    pub judge: fn(&Engine, &TlsChoice, &[CertificateDer<'static>]) -> Judgement,
    /// Whether a request on this connection may name this host; called once per connection and
    /// host.
    pub admit: fn(&ConnectionInfo, &Server, &TlsFacts, &Host) -> Result<(), Box<HeadError>>,
}

/// The configuration of a handshake.
pub struct TlsChoice {
    /// The rustls configuration.
    pub config: Arc<ServerConfig>,
    /// The host that it belongs to: [`Host::id`].
    pub host: u32,
    /// The index of the certificate that suits the client in TLS 1.3.
    pub certificate: usize,
}

/// The verdict on a client's certificates.
pub enum Judgement {
    /// Continue with these certificates.
    Admit {
        /// Why they are not trusted, if they are not.
        failure: Option<String>,
        /// The number of issuers above the client's own certificate, if it is trusted.
        depth: usize,
    },
    /// Continue as if there were no certificate, for this reason.
    Ignore(String),
    /// Close the connection, for this reason.
    Refuse(String),
    /// A future of the verdict.
    Wait(Pin<Box<dyn Future<Output = Judgement>>>),
}
