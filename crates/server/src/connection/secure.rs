//! The TLS handshake of a connection, and what happens to a client that does not speak it.

use std::rc::Rc;

use rt::Stream;
use rt::tls::{TlsError, TlsInfo};
use wire::{HeadError, LogLevel};

use super::{Active, Connection, burst};
use crate::client::{Client, TlsFacts};
use crate::engine::Engine;
use crate::hooks::TlsHook;
use crate::log::Level;

/// What the page says to a client that speaks plain HTTP to a TLS port.
const PLAIN_NOTES: &str = "Reason: You're speaking plain HTTP to an SSL-enabled server port.\
     <br />\n Instead use the HTTPS scheme to access this URL, please.<br />\n";

/// Does the handshake; `None` if the connection ended with it.
pub(super) async fn handshake(
    engine: Rc<Engine>,
    stream: Stream,
    client: Client,
    hook: TlsHook,
) -> Option<Connection> {
    let server = engine.server.clone();
    let deadline = engine.handle.deadline((hook.deadline)(&client, &server));
    let choose = |hello: &rt::tls::ClientHello<'_>| (hook.choose)(&client, &server, hello);
    match rt::tls::accept(stream, deadline, choose).await {
        Ok(stream) => {
            let tls = stream.tls().map(|info| Rc::new(facts(info)));
            Some(Connection::new(engine, stream, Client { tls, ..client }))
        }
        Err(TlsError::PlainHttp { stream, bytes }) => {
            let mut connection = Connection::new(engine, *stream, client);
            Box::pin(answer_plain(&mut connection, bytes)).await;
            None
        }
        Err(error) => {
            let peer = client.peer;
            let why = format_args!("SSL library error in handshake with {peer}: {error}");
            engine.log_main(Level::Info, 2008, why);
            None
        }
    }
}

/// Apache's 400 for plain HTTP on a TLS port.
async fn answer_plain(connection: &mut Connection, bytes: Vec<u8>) {
    let mut active = Active::new();
    active.input = bytes;
    let error = HeadError {
        status: 400,
        log_number: 1996,
        level: LogLevel::Info,
        message: b"SSL handshake failed: HTTP spoken on HTTPS port".to_vec(),
        notes: PLAIN_NOTES,
    };
    burst::refuse(connection, &mut active, &error).await;
    connection.close().await;
}

fn facts(info: TlsInfo<'_>) -> TlsFacts {
    TlsFacts {
        protocol: match info.version() {
            Some(rt::tls::ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "TLSv1.3",
        },
        cipher_suite: info.cipher_suite().map_or(0, |suite| u16::from(suite.suite())),
        server_name: info.server_name().map(|name| name.as_bytes().to_vec()),
        alpn: info.alpn().map(<[u8]>::to_vec),
        peer_certificates: info
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|certificate| certificate.to_vec())
            .collect(),
        resumed: info.is_resumed(),
        verify_error: None,
    }
}
