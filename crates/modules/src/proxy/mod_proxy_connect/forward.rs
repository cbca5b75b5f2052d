//! The tunnel of a CONNECT request. Source: `proxy_connect_handler`.

use std::net::IpAddr;

use rt::{ConnectError, Stream};
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::request::Request;
use server::tunnel::{Message, Tunnel};

use super::{ProxyConnect, port_range};
use crate::proxy::mod_proxy::backend::{self, Place};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{Proxy, block, fault, unasked};

static TIMED_OUT: Message =
    Message { module: "mod_proxy_connect.c", number: 10224, text: "tunnel timed out" };
const BLOCKED: &str = "Connect to remote machine blocked";

/// Connects, and makes the client's connection a tunnel.
pub(super) async fn connect(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let far = target(exchange)?;
    let hop = match exchange.remote {
        Some(remote) => remote.place(),
        None => Place { host: far.host.clone(), port: far.port },
    };
    let addresses = look_up(exchange, &hop).await?;
    let known: &[IpAddr] = if exchange.remote.is_some() { &[] } else { &addresses };
    block::check(exchange.request, exchange.bound, &far.host, known)?;
    if !is_allowed(exchange.request, far.port) {
        return Err(fault::answer(exchange.request, 403, BLOCKED));
    }
    if unasked::is_unasked(exchange.request, format_args!("{hop} for CONNECT {far}")) {
        return Err(503);
    }
    let Some(mut stream) = open(exchange, &hop, &addresses).await else {
        // Another remote proxy may do, or the server itself.
        return match exchange.remote {
            Some(_) => Ok(Verdict::Declined),
            None => Err(503),
        };
    };
    exchange.note_port(&stream);
    let head = match exchange.remote {
        Some(_) => {
            let request = asks(&exchange.request.resource.uri, &banner(exchange));
            // An error shows when the tunnel reads.
            let _ = stream.write_all(&request, exchange.timeout()).await;
            Vec::new()
        }
        None => established(&banner(exchange)),
    };
    let idle = backend::tunnel_timeout(exchange);
    exchange.request.response.tunnel = Some(Box::new(Tunnel {
        head,
        far: stream,
        received: Vec::new(),
        idle,
        timed_out: Some(&TIMED_OUT),
        unanswered: None,
        guard: Box::new(()),
    }));
    Ok(Verdict::Ok)
}

fn banner(exchange: &Exchange<'_>) -> Vec<u8> {
    exchange.request.engine.server.banner.as_bytes().to_vec()
}

/// The request to a remote proxy. As in Apache, it has no credentials.
fn asks(target: &[u8], banner: &[u8]) -> Vec<u8> {
    let head: [&[u8]; 5] =
        [b"CONNECT ", target, b" HTTP/1.0\r\nProxy-agent: ", banner, b"\r\n\r\n"];
    head.concat()
}

/// The response that Apache gives, whatever the version of the request.
fn established(banner: &[u8]) -> Vec<u8> {
    let head: [&[u8]; 3] =
        [b"HTTP/1.0 200 Connection Established\r\nProxy-agent: ", banner, b"\r\n\r\n"];
    head.concat()
}

/// The server that the client asks for.
fn target(exchange: &mut Exchange<'_>) -> Result<Place<'static>, u16> {
    let url = exchange.url;
    let Some(place) = Place::parse(url) else {
        let why = [b"URI cannot be parsed: ", url].concat();
        return Err(fault::answer(exchange.request, 400, why));
    };
    let url = Verbatim::new(url);
    let line = format_args!("connecting {url} to {place}");
    exchange.request.log::<ProxyConnect>(Level::Debug, 1019, line);
    Ok(place)
}

async fn look_up(exchange: &mut Exchange<'_>, hop: &Place<'_>) -> Result<Vec<IpAddr>, u16> {
    let host = String::from_utf8_lossy(&hop.host);
    let error = match unasked::look_up(exchange.request, &host, None).await {
        Ok(addresses) => return Ok(addresses.to_vec()),
        Err(error) => error,
    };
    let shown = Verbatim::new(&hop.host);
    let line = format_args!("failed to resolve hostname '{shown}'");
    let cause = match &error {
        ConnectError::Io(error) => Some(Errno::from_io_error(error).unwrap_or(Errno::IO).into()),
        error => fault::unresolved(error),
    };
    match cause {
        Some(cause) => {
            exchange.request.log_error::<ProxyConnect>(Level::Error, 2327, cause, line);
        }
        None => exchange.request.log::<ProxyConnect>(Level::Error, 2327, line),
    }
    let why = [b"DNS lookup failure for: ", &hop.host[..]].concat();
    Err(fault::answer(exchange.request, 502, why))
}

fn is_allowed(request: &Request, port: u16) -> bool {
    let settings = request.server_of::<ProxyConnect>();
    settings.is_some_and(|settings| port_range::allow(&settings.allowed, port))
}

/// Connects to the first address that accepts.
async fn open(
    exchange: &mut Exchange<'_>,
    hop: &Place<'_>,
    addresses: &[IpAddr],
) -> Option<Stream> {
    let how = backend::connect_options(exchange);
    let timeout = exchange.timeout();
    let host = Verbatim::new(&hop.host);
    let last = addresses.len().saturating_sub(1);
    for (at, address) in addresses.iter().enumerate() {
        let (to, end) =
            ((*address, hop.port).into(), exchange.request.engine.handle.deadline(timeout));
        let error = match Stream::connect(&rt::Remote::Tcp(to), &how, end).await {
            Ok(stream) => return Some(stream),
            Err(error) => error,
        };
        let level = if at == last { Level::Error } else { Level::Debug };
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::TIMEDOUT);
        let line = format_args!("CONNECT: attempt to connect to {to} ({host}) failed");
        exchange.request.log_error::<Proxy>(level, 939, errno, line);
    }
    None
}
