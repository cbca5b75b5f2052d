//! TLS on rustls: the handshake of an accepted connection.
//!
//! The connection's configuration is chosen from its ClientHello (server name, ALPN). rustls does
//! the protocol and never sees the socket: ciphertext is received into a buffer that the whole
//! loop shares, and encrypted into another, so an idle connection holds neither.

mod session;

use std::io;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::server::Acceptor;

pub use rustls::pki_types::CertificateDer;
pub use rustls::server::ClientHello;
pub use rustls::{NamedGroup, ProtocolVersion, ServerConfig, SupportedCipherSuite};

use crate::stream::Stream;
use crate::timers::Deadline;

pub(crate) use session::{ENCRYPT_BYTES_MAX, Session};

/// First reading of a handshake: most ClientHellos fit.
const HELLO_READ_BYTES: usize = 4096;
/// The largest ClientHello that is read, records included.
const HELLO_BYTES_MAX: usize = 80 * 1024;
/// The alert "unrecognized_name" (RFC 8446, 6): no configuration serves this client.
const ALERT_REFUSED: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// The alert "decode_error", where rustls finds no ClientHello and says nothing itself.
const ALERT_UNREADABLE: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// Why a connection did not become a TLS connection.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The client speaks plain HTTP. The stream is still plain; `bytes` is what was read.
    #[error("the client speaks plain HTTP on a TLS port")]
    PlainHttp {
        /// The connection, for an answer in plain text.
        stream: Box<Stream>,
        /// The beginning of the request.
        bytes: Vec<u8>,
    },
    /// The client broke the protocol, or nothing was common to both; it got an alert.
    #[error("handshake failed: {0}")]
    Handshake(#[from] rustls::Error),
    /// `choose` gave no configuration; the client got the alert "unrecognized_name".
    #[error("no configuration for this client")]
    Refused,
    /// The client closed before the handshake was complete.
    #[error("the client closed during the handshake")]
    Closed,
    /// The socket failed, or the deadline passed (`TimedOut`).
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Does the server's side of a TLS handshake on a plain connection.
///
/// `choose` is called once with the client's first message. What it returns is used for the whole
/// connection. The deadline is for the whole handshake.
pub async fn accept(
    stream: Stream,
    deadline: Deadline,
    choose: impl FnOnce(&ClientHello<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<Stream, TlsError> {
    // Boxed: rustls's states take some KiB, which no connection should carry for its whole life.
    Box::pin(handshake(stream, deadline, choose)).await
}

async fn handshake(
    mut stream: Stream,
    deadline: Deadline,
    choose: impl FnOnce(&ClientHello<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<Stream, TlsError> {
    let mut bytes = Vec::new();
    let mut acceptor = Acceptor::default();
    let accepted = loop {
        let fresh = bytes.len();
        bytes.reserve(HELLO_READ_BYTES);
        if stream.read(&mut bytes, deadline).await? == 0 {
            return Err(TlsError::Closed);
        }
        if is_plain_http(&bytes) {
            return Err(TlsError::PlainHttp { stream: Box::new(stream), bytes });
        }
        if bytes.len() > HELLO_BYTES_MAX {
            return Err(rustls::Error::General("the ClientHello is too long".into()).into());
        }
        match offer(&mut acceptor, bytes.get(fresh..).unwrap_or_default()) {
            Ok(None) => {}
            Ok(Some(accepted)) => break accepted,
            Err((error, alert)) => {
                let _ = stream.try_write(&alert);
                return Err(error.into());
            }
        }
    };
    let hello = accepted.client_hello();
    let Some(config) = choose(&hello) else {
        let _ = stream.try_write(&ALERT_REFUSED);
        return Err(TlsError::Refused);
    };
    let session = Session::new(config, hello.server_name(), bytes)?;
    drop(accepted);
    stream.start_tls(session, deadline).await?;
    Ok(stream)
}

/// Feeds the acceptor, which only looks at the ClientHello; on failure with the alert to send.
#[allow(clippy::type_complexity)]
fn offer(
    acceptor: &mut Acceptor,
    mut bytes: &[u8],
) -> Result<Option<rustls::server::Accepted>, (rustls::Error, Vec<u8>)> {
    while !bytes.is_empty() {
        // Reading from a slice fails only when rustls has more than it wants.
        if acceptor.read_tls(&mut bytes).is_err() {
            let error = rustls::Error::General("the ClientHello is too long".into());
            return Err((error, ALERT_UNREADABLE.to_vec()));
        }
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => return Ok(Some(accepted)),
            Err((error, mut alert)) => {
                let mut encoded = Vec::new();
                let _ = alert.write_all(&mut encoded);
                if encoded.is_empty() {
                    encoded.extend(ALERT_UNREADABLE);
                }
                return Err((error, encoded));
            }
        }
    }
    Ok(None)
}

/// True when the bytes begin as a method does: upper-case letters. A TLS record begins with 22.
fn is_plain_http(bytes: &[u8]) -> bool {
    bytes.iter().take(3).all(u8::is_ascii_uppercase)
}

/// What was negotiated on a TLS connection. Made by [`Stream::tls`].
#[derive(Clone, Copy)]
pub struct TlsInfo<'s>(pub(crate) &'s Session);

impl<'s> TlsInfo<'s> {
    /// The protocol version.
    pub fn version(&self) -> Option<ProtocolVersion> {
        self.0.connection().protocol_version()
    }

    /// The cipher suite.
    pub fn cipher_suite(&self) -> Option<SupportedCipherSuite> {
        self.0.connection().negotiated_cipher_suite()
    }

    /// The key exchange group, as `x25519`.
    pub fn key_exchange(&self) -> Option<NamedGroup> {
        self.0.connection().negotiated_key_exchange_group().map(|group| group.name())
    }

    /// The server name the client asked for (SNI), in lower case.
    pub fn server_name(&self) -> Option<&'s str> {
        self.0.server_name()
    }

    /// The protocol agreed on by ALPN, as `http/1.1`.
    pub fn alpn(&self) -> Option<&'s [u8]> {
        self.0.connection().alpn_protocol()
    }

    /// The client's certificates, its own first.
    pub fn peer_certificates(&self) -> Option<&'s [CertificateDer<'static>]> {
        self.0.connection().peer_certificates()
    }

    /// True once the client has said that it sends nothing more: it waits for the same from us.
    pub fn peer_closed(&self) -> bool {
        self.0.peer_closed()
    }

    /// True when an earlier session was resumed.
    pub fn is_resumed(&self) -> bool {
        self.0.connection().handshake_kind() == Some(HandshakeKind::Resumed)
    }
}
