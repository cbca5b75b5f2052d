//! The data connection: EPSV, else PASV. Source: part IV of `proxy_ftp_handler`.

use std::net::{IpAddr, SocketAddr};

use rt::Stream;
use rustix::io::Errno;
use server::log::Level;
use server::request::Request;
use wire::ftp::{epsv_port, pasv_address};

use super::ProxyFtp;
use super::control::Control;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{backend, fault};

/// How a server was asked for the address.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    /// The number of the message that connecting failed.
    number: u32,
}

const EPSV: Way = Way { name: "EPSV", number: 1043 };
const PASV: Way = Way { name: "PASV", number: 1048 };

/// Opens it.
///
/// # Errors
/// The status of the response.
pub(super) async fn open(
    exchange: &mut Exchange<'_>,
    control: &mut Control,
) -> Result<Stream, u16> {
    let peer = control.backend.stream.peer_addr().map_err(|_| 500u16)?;
    let reply = control.ask(exchange.request, EPSV.name, b"").await?;
    match reply.code {
        229 => {
            if let Some(port) = epsv_port(&reply.text) {
                return connect(exchange, EPSV, (peer.ip(), port).into()).await;
            }
        }
        500..=502 => {}
        _ => return Err(refused(exchange.request, &reply.text)),
    }
    let reply = control.ask(exchange.request, PASV.name, b"").await?;
    match reply.code {
        227 => {
            if let Some((numbers, port)) = pasv_address(&reply.text) {
                let to = checked(exchange.request, peer.ip(), numbers, port)?;
                return connect(exchange, PASV, to).await;
            }
        }
        502 => {}
        _ => return Err(refused(exchange.request, &reply.text)),
    }
    Err(no_way(exchange.request, control))
}

/// A response with the text of a server's reply.
pub(super) fn refused(request: &mut Request, text: &[u8]) -> u16 {
    fault::answer(request, 502, text)
}

/// The address that a reply names, which has to be that of the server.
fn checked(
    request: &mut Request,
    server: IpAddr,
    [a, b, c, d]: [i32; 4],
    port: u16,
) -> Result<SocketAddr, u16> {
    let named = format!("{a}.{b}.{c}.{d}");
    let line = format_args!("PASV contacting host {named}:{port}");
    request.log::<ProxyFtp>(Level::Debug, 1044, line);
    match named == server.to_string() {
        true => Ok((server, port).into()),
        false => {
            let why = "PASV address does not match FTP server";
            Err(fault::answer(request, 403, why))
        }
    }
}

async fn connect(exchange: &mut Exchange<'_>, way: Way, to: SocketAddr) -> Result<Stream, u16> {
    let how = backend::connect_options(exchange);
    let end = exchange.request.engine.handle.deadline(exchange.timeout());
    let error = match Stream::connect(&rt::Remote::Tcp(to), &how, end).await {
        Ok(stream) => return Ok(stream),
        Err(error) => error,
    };
    let errno = Errno::from_io_error(&error).unwrap_or(Errno::TIMEDOUT);
    let Way { name, number } = way;
    let line = format_args!("{name} attempt to connect to {to} failed - Firewall/NAT?");
    exchange.request.log_error::<ProxyFtp>(Level::Error, number, errno, line);
    let why = format!("{name} attempt to connect to {to} failed - firewall/NAT?");
    Err(fault::answer(exchange.request, 502, &why))
}

/// The server would have to connect to this one (`PORT`). Apache listens at the address of the
/// control connection for that, which Linux refuses while that connection exists.
fn no_way(request: &mut Request, control: &Control) -> u16 {
    if let Ok(own) = control.backend.stream.local_addr() {
        let line = format_args!("error binding to ftp data socket {own}");
        request.log_error::<ProxyFtp>(Level::Error, 1051, Errno::ADDRINUSE, line);
    }
    500
}
