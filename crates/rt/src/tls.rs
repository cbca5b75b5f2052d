//! TLS on rustls: the handshake of an accepted or outgoing connection.
//!
//! The configuration of an accepted one is chosen from its ClientHello (server name, ALPN). rustls
//! implements the protocol and never sees the socket: ciphertext is received into a buffer shared
//! by the whole loop, and encrypted into another, so an idle connection holds neither.

mod session;

use std::io;
use std::sync::Arc;

use rustls::HandshakeKind;
use rustls::pki_types::ServerName;
use rustls::server::Acceptor;

pub use rustls::pki_types::CertificateDer;
pub use rustls::server::ClientHello;
pub use rustls::{ClientConfig, NamedGroup, ProtocolVersion, ServerConfig, SupportedCipherSuite};

use crate::stream::Stream;
use crate::timers::Deadline;

pub(crate) use session::{ENCRYPT_BYTES_MAX, Session};

/// The first read of a handshake: most ClientHellos fit.
const HELLO_READ_BYTES: usize = 4096;
/// The largest ClientHello accepted, records included.
const HELLO_BYTES_MAX: usize = 80 * 1024;
/// The size of a record's header: type, version and length.
pub const RECORD_HEADER_BYTES: usize = 5;
/// The second byte of every record.
const TLS_MAJOR_VERSION: u8 = 3;
/// The alert "unrecognized_name" (RFC 8446, 6): no configuration matches the client.
const ALERT_REFUSED: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// The alert "decode_error", sent when rustls finds no ClientHello and produces no alert itself.
const ALERT_UNREADABLE: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];

/// Why a TLS handshake failed.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The client speaks plain HTTP. The stream is still plain; `bytes` is what was read.
    #[error("the client speaks plain HTTP on a TLS port")]
    PlainHttp {
        /// The connection, for a response in plain text.
        stream: Box<Stream>,
        /// The first bytes of the request.
        bytes: Vec<u8>,
    },
    /// The peer broke the protocol, had no parameters in common, or is not trusted; it was sent an
    /// alert.
    #[error("handshake failed: {0}")]
    Handshake(#[from] rustls::Error),
    /// `choose` returned no configuration; the client was sent the alert "unrecognized_name".
    #[error("no configuration for this client")]
    Refused,
    /// The peer closed before the handshake was complete.
    #[error("the peer closed during the handshake")]
    Closed,
    /// The socket failed, or the deadline passed (`TimedOut`).
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl TlsError {
    /// Why the peer's certificate is not trusted, if that is the reason.
    pub fn distrust(&self) -> Option<String> {
        match self {
            TlsError::Handshake(rustls::Error::InvalidCertificate(why)) => Some(why.to_string()),
            _ => None,
        }
    }
}

/// Performs the server side of a TLS handshake on a plain connection.
///
/// `choose` is called once, with the ClientHello; its result applies to the whole connection. The
/// deadline covers the whole handshake.
pub async fn accept(
    stream: Stream,
    deadline: Deadline,
    choose: impl FnOnce(&ClientHello<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<Stream, TlsError> {
    // Boxed: rustls's state takes several KiB, which no connection should carry for its whole life.
    Box::pin(handshake(stream, deadline, choose)).await
}

async fn handshake(
    mut stream: Stream,
    deadline: Deadline,
    choose: impl FnOnce(&ClientHello<'_>) -> Option<Arc<ServerConfig>>,
) -> Result<Stream, TlsError> {
    let mut bytes = Vec::new();
    let mut acceptor = Acceptor::default();
    let mut offered = 0;
    let accepted = loop {
        bytes.reserve(HELLO_READ_BYTES);
        if stream.read(&mut bytes, deadline).await? == 0 {
            return Err(TlsError::Closed);
        }
        match speaks_http(&bytes) {
            Some(true) => {
                return Err(TlsError::PlainHttp { stream: Box::new(stream), bytes });
            }
            Some(false) => {}
            None => continue,
        }
        if bytes.len() > HELLO_BYTES_MAX {
            return Err(rustls::Error::General("the ClientHello is too long".into()).into());
        }
        let fresh = bytes.get(offered..).unwrap_or_default();
        offered = bytes.len();
        match offer(&mut acceptor, fresh) {
            Ok(None) => {}
            Ok(Some(accepted)) => break accepted,
            Err((error, alert)) => {
                // What is no record of TLS at all gets none either, as from OpenSSL.
                if bytes.get(1) == Some(&TLS_MAJOR_VERSION) {
                    let _ = stream.try_write(&alert);
                }
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

/// Performs the client side of a TLS handshake with the server `name`, which is sent (SNI) unless
/// it is an address or `config` forbids. The deadline covers the whole handshake.
///
/// With TLS 1.3 the server may still refuse the client's certificate: the first read tells.
pub async fn connect(
    mut stream: Stream,
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    deadline: Deadline,
) -> Result<Stream, TlsError> {
    let session = Session::client(config, name)?;
    // Boxed as for an accepted connection.
    Box::pin(stream.start_tls(session, deadline)).await?;
    Ok(stream)
}

/// Feeds the acceptor, which parses the ClientHello only; on failure, with the alert to send.
#[allow(clippy::type_complexity)]
fn offer(
    acceptor: &mut Acceptor,
    mut bytes: &[u8],
) -> Result<Option<rustls::server::Accepted>, (rustls::Error, Vec<u8>)> {
    while !bytes.is_empty() {
        // Reading from a slice fails only if rustls is offered more than it accepts.
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

/// Whether the bytes begin with a method that OpenSSL recognises in place of a record; `None` if
/// they are shorter than a record's header.
fn speaks_http(bytes: &[u8]) -> Option<bool> {
    const METHODS: [&[u8]; 4] = [b"GET ", b"POST ", b"HEAD ", b"PUT "];
    let header = bytes.first_chunk::<RECORD_HEADER_BYTES>()?;
    Some(METHODS.iter().any(|method| header.starts_with(method)))
}

/// The negotiated parameters of a TLS connection. Made by [`Stream::tls`].
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

    /// The server name that the client requested, in lower case.
    pub fn server_name(&self) -> Option<&'s str> {
        self.0.server_name()
    }

    /// The protocol selected by ALPN, as `http/1.1`.
    pub fn alpn(&self) -> Option<&'s [u8]> {
        self.0.connection().alpn_protocol()
    }

    /// The peer's certificate chain, its own certificate first.
    pub fn peer_certificates(&self) -> Option<&'s [CertificateDer<'static>]> {
        self.0.connection().peer_certificates()
    }

    /// Whether the peer has sent close_notify, and expects the same in return.
    pub fn peer_closed(&self) -> bool {
        self.0.peer_closed()
    }

    /// Whether the handshake resumed an earlier session.
    pub fn is_resumed(&self) -> bool {
        self.0.connection().handshake_kind() == Some(HandshakeKind::Resumed)
    }
}
