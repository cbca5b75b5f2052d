//! The TLS handshake of a connection, and the response to a client that does not use TLS.

use std::rc::Rc;

use rt::Stream;
use rt::tls::{TlsError, TlsInfo};
use wire::{HeadError, LogLevel};

use super::{Active, Connection, requests};
use server::engine::Engine;
use server::hooks::{Judgement, TlsChoice, TlsHook};
use server::host::Server;

use crate::service::Service;
use server::connection_info::{ConnectionInfo, TlsFacts, TlsPeer};
use server::log::Level;

/// The page's text for a client that sends plain HTTP to a TLS port.
const PLAIN_NOTES: &str = "Reason: You're speaking plain HTTP to an SSL-enabled server port.\
     <br />\n Instead use the HTTPS scheme to access this URL, please.<br />\n";

/// Performs the handshake; `None` if that ended the connection.
pub(super) async fn handshake(
    engine: Rc<Service>,
    stream: Stream,
    info: ConnectionInfo,
    hook: TlsHook,
) -> Option<Connection> {
    let server = engine.server.clone();
    let timeout = engine.handle.deadline(info.base_host.core.timeout());
    let policy = info.base_host.read_policy.handshake.begin(engine.handle.clock());
    let mut chosen = None;
    let choose = |hello: &rt::tls::ClientHello<'_>| {
        let choice = (hook.choose)(&info, &server, hello)?;
        Some(chosen.insert(choice).config.clone())
    };
    match rt::tls::accept(stream, timeout.min(policy.deadline(0)), choose).await {
        Ok(stream) => {
            let choice = chosen?;
            let tls = facts(&engine, hook, &choice, stream.tls()?);
            match Box::pin(peer(&engine, hook, &choice, &stream)).await {
                Ok(shown) => {
                    let (peer, ignored) = match shown {
                        Shown::Nothing => (None, None),
                        Shown::Ignored(why) => (None, Some(why.into())),
                        Shown::Peer(peer) => (Some(peer), None),
                    };
                    let tls = Some(Rc::new(TlsFacts { peer, ignored, ..tls }));
                    Some(Connection::new(engine, stream, ConnectionInfo { tls, ..info }))
                }
                Err(why) => {
                    say(&server, &info, DISTRUST, &format!("Certificate Verification: {why}"));
                    stream.linger().await;
                    None
                }
            }
        }
        Err(TlsError::PlainHttp { stream, bytes }) => {
            let mut connection = Connection::new(engine, *stream, info);
            Box::pin(refuse_plain(&mut connection, bytes)).await;
            None
        }
        Err(error) => {
            if let Some(why) = error.distrust() {
                say(&server, &info, DISTRUST, &format!("Certificate Verification: Error: {why}"));
            }
            let text = format!("SSL library error in handshake: {error}");
            say(&server, &info, (Level::Info, 2008), &text);
            None
        }
    }
}

/// The level and number of the line about a client's certificate that is not trusted.
const DISTRUST: (Level, u32) = (Level::Error, 2039);

fn say(server: &Server, info: &ConnectionInfo, (level, number): (Level, u32), what: &str) {
    server.log_connection(info, "mod_ssl.c", level, number, format_args!("{what}"));
}

/// The verdict on the client's certificates.
enum Shown {
    Nothing,
    /// They are ignored, for this reason.
    Ignored(String),
    Peer(Box<TlsPeer>),
}

/// The client's certificates, once the verdict is known.
async fn peer(
    engine: &Engine,
    hook: TlsHook,
    choice: &TlsChoice,
    stream: &Stream,
) -> Result<Shown, String> {
    let certificates = stream.tls().and_then(|info| info.peer_certificates()).unwrap_or_default();
    if certificates.is_empty() {
        return Ok(Shown::Nothing);
    }
    let mut judgement = (hook.judge)(engine, choice, certificates);
    loop {
        judgement = match judgement {
            Judgement::Wait(future) => future.await,
            Judgement::Refuse(why) => return Err(why),
            Judgement::Ignore(why) => return Ok(Shown::Ignored(why)),
            Judgement::Admit { failure, depth } => {
                let certificates = certificates.to_vec();
                return Ok(Shown::Peer(Box::new(TlsPeer { certificates, failure, depth })));
            }
        };
    }
}

/// Apache's 400 for plain HTTP on a TLS port.
async fn refuse_plain(connection: &mut Connection, bytes: Vec<u8>) {
    let mut active = Active::new();
    let error = plain_http(connection, &mut active);
    let consumed = bytes.len().min(rt::tls::RECORD_HEADER_BYTES);
    connection.engine.handle.drained().await;
    requests::refuse_plain(connection, &mut active, &error, consumed).await;
    connection.close().await;
}

/// The error of plain HTTP on a TLS port, for a head that is the same whatever the client sent.
pub(super) fn plain_http(connection: &Connection, active: &mut Active) -> Box<HeadError> {
    let _ = connection.parse(active, b"GET / HTTP/1.0\r\n\r\n");
    Box::new(HeadError {
        status: 400,
        log_number: 1996,
        level: LogLevel::Info,
        message: b"SSL handshake failed: HTTP spoken on HTTPS port".to_vec(),
        notes: PLAIN_NOTES,
    })
}

fn facts(engine: &Engine, hook: TlsHook, choice: &TlsChoice, info: TlsInfo<'_>) -> TlsFacts {
    TlsFacts {
        protocol: match info.version() {
            Some(rt::tls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        },
        cipher_suite: info.cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
        resumed: info.is_resumed(),
        host: choice.host,
        certificate: (hook.shown)(&engine.server, choice, &info),
        server_name: info.server_name().map(Into::into),
        alpn: info.alpn().map(Into::into),
        ..TlsFacts::default()
    }
}
