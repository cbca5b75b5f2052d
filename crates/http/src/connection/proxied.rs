//! The header of the PROXY protocol at the beginning of a connection.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use rt::{Deadline, Stream};
use wire::proxy_protocol::{self, HEADER_BYTES_MAX, Progress, Refusal};

use super::{Active, Connection, requests};
use crate::service::Service;
use server::connection_info::{ConnectionInfo, Proxied};
use server::errorlog::Cause;
use server::host::Server;
use server::log::Level;

/// The module that logs here.
const MODULE: &str = "mod_remoteip.c";

/// The number of bytes after a broken header that are read, as by Apache.
const UNREAD_BYTES: usize = 8000;

/// Why there is no header.
enum Fault {
    /// The client closed before it was complete.
    Ended,
    /// It did not arrive in time.
    Late,
    /// The socket failed.
    Broken,
    Refused(Refusal),
}

/// Reads the header, which is not a part of any request or handshake, and records in `info` the
/// client that it names. `None` if that ended the connection (`remoteip_input_filter`).
pub(super) async fn read_header(
    engine: &Rc<Service>,
    mut stream: Stream,
    info: &mut ConnectionInfo,
) -> Option<Stream> {
    let server = engine.server.clone();
    let (address, port) = (info.local.ip().to_canonical(), info.local.port());
    let enabled = format_args!("RemoteIPProxyProtocol: enabled on connection to {address}:{port}");
    server.log_connection(info, MODULE, Level::Debug, 3503, enabled);
    match receive(&mut stream, deadline(engine, info)).await {
        Ok((named, length)) => {
            let named = named.unwrap_or(info.peer);
            let (ip, port) = (named.ip(), named.port());
            let text =
                format_args!("RemoteIPProxyProtocol: received valid PROXY header: {ip}:{port}");
            server.log_connection(info, MODULE, Level::Debug, 3511, text);
            let header_bytes = Cell::new(length as u64);
            info.proxied = Some(Box::new(Proxied { client: named, header_bytes }));
            Some(stream)
        }
        Err(fault) => {
            say(&server, info, &fault);
            // Unread bytes would reset the connection.
            let _ = stream.try_read(&mut Vec::with_capacity(UNREAD_BYTES));
            if matches!(fault, Fault::Late) {
                log_late(engine, stream, info).await;
            }
            None
        }
    }
}

/// Its deadline is that of what would otherwise come first: a handshake or a request's head.
fn deadline(engine: &Service, info: &ConnectionInfo) -> Deadline {
    let is_secure =
        engine.server.registry.hooks.tls().is_some_and(|hook| (hook.is_on)(info, &engine.server));
    let policy = &info.base_host.read_policy;
    let stage = if is_secure { policy.handshake } else { policy.header };
    let timeout = engine.handle.deadline(info.base_host.core.timeout());
    timeout.min(stage.begin(engine.handle.clock()).deadline(0))
}

/// Takes the header from the socket, and nothing behind it; the client that it names, and its
/// length.
async fn receive(
    stream: &mut Stream,
    deadline: Deadline,
) -> Result<(Option<std::net::SocketAddr>, usize), Fault> {
    let mut buffer = [0; HEADER_BYTES_MAX + 1];
    let mut filled = 0;
    loop {
        let room = buffer.get_mut(filled..).unwrap_or_default();
        let arrived = match stream.peek(room, deadline).await {
            Ok(0) => return Err(Fault::Ended),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => return Err(Fault::Late),
            Err(_) => return Err(Fault::Broken),
        };
        let (taken, done) =
            match proxy_protocol::decode(buffer.get(..filled + arrived).unwrap_or_default()) {
                Progress::NeedMore => (arrived, None),
                Progress::Done { consumed, client } => {
                    (consumed.saturating_sub(filled), Some((client, consumed)))
                }
                Progress::Refused(why) => return Err(Fault::Refused(why)),
            };
        stream.skip(taken).map_err(|_| Fault::Broken)?;
        filled += taken;
        if let Some(done) = done {
            return Ok(done);
        }
    }
}

fn say(server: &Server, info: &ConnectionInfo, fault: &Fault) {
    let (level, number, text) = match fault {
        Fault::Ended => {
            let text = "RemoteIPProxyProtocol: connection closed before a complete header was \
                        received";
            (Level::Info, 10634, text)
        }
        Fault::Late => (Level::Error, 10184, "failed reading input"),
        Fault::Refused(why) if why.log_number != 0 => {
            (Level::Error, why.log_number, why.message.as_str())
        }
        Fault::Broken | Fault::Refused(_) => return,
    };
    let error = match fault {
        Fault::Ended => Some(Cause::End),
        Fault::Refused(why) if why.is_of_other_family => Some(Cause::OtherFamily),
        _ => None,
    };
    server.log_connection_error(info, MODULE, level, number, error, format_args!("{text}"));
}

/// The access log has a 408, as for a head that does not arrive in time.
async fn log_late(engine: &Rc<Service>, stream: Stream, info: &mut ConnectionInfo) {
    let info = super::info(engine, info.peer, info.local);
    let mut connection = Connection::new(engine.clone(), stream, info);
    requests::log_unread(&mut connection, &mut Active::new(), 0).await;
}
