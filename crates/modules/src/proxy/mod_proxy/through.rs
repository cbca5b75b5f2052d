//! The tunnel through a remote proxy, for connections with TLS. Source: `send_http_connect`.

use bstr::ByteSlice;
use rt::Stream;
use server::errorlog::Verbatim;
use server::log::Level;
use wire::chars::decimal;

use super::backend::Options;
use super::scheme::Exchange;
use super::target::Target;
use super::{RemoteProxy, fault};

/// The longest head of a response, bytes.
const HEAD_BYTES: usize = 8191;

/// Asks the remote proxy for a tunnel to the host of the exchange's URL.
///
/// # Errors
/// The status of the response. What happened has been logged.
pub(super) async fn open(
    exchange: &mut Exchange<'_>,
    mut stream: Stream,
    remote: &RemoteProxy,
    options: &Options<'_>,
) -> Result<Stream, u16> {
    let target = Target::parse(exchange.url).map_err(|_| 400u16)?;
    let (host, port) = (Verbatim::new(&target.host), target.port_number());
    let place = remote.place();
    let line = format_args!(
        "CONNECT: sending the CONNECT request for {host}:{port} to the remote proxy {place} ({})",
        Verbatim::new(&place.host)
    );
    exchange.log_of_server(Level::Debug, 948, None, line);
    let request = request(exchange, &target, remote);
    let timeout = exchange.timeout();
    let head = match stream.write_all(&request, timeout).await {
        Ok(()) => read_head(exchange, &mut stream).await,
        Err(_) => None,
    };
    if head.is_some_and(|head| is_granted(exchange, &head)) {
        return Ok(stream);
    }
    let scheme = Verbatim::new(&target.scheme);
    let line = format_args!(
        "{scheme}: attempt to connect to {host}:{port} via http CONNECT through {place} ({place}) \
         failed"
    );
    exchange.log_of_server(Level::Error, 958, None, line);
    Err(fault::unconnected(exchange, options, &place.host))
}

fn request(exchange: &Exchange<'_>, target: &Target, remote: &RemoteProxy) -> Vec<u8> {
    let request = &*exchange.request;
    let host = match target.host.contains(&b':') {
        true => [b"[", &target.host[..], b"]"].concat(),
        false => target.host.clone(),
    };
    let place = format!(":{} HTTP/1.0\r\n", target.port_number());
    let mut head = [b"CONNECT ", &host[..], place.as_bytes()].concat();
    let is_chained = request.env.contains(b"Proxy-Chain-Auth") || request.user.is_none();
    let clients = request.head.headers_in.get(b"Proxy-Authorization").filter(|_| is_chained);
    if let Some(credentials) = remote.credentials.as_deref().or(clients) {
        head.extend_from_slice(&[b"Proxy-Authorization: ", credentials, b"\r\n"].concat());
    }
    let banner = request.engine.server.banner.as_bytes();
    head.extend_from_slice(&[b"Proxy-agent: ", banner, b"\r\n\r\n"].concat());
    head
}

/// Reads up to the empty line; what follows would be the beginning of TLS, which the server does
/// not send unasked.
async fn read_head(exchange: &Exchange<'_>, stream: &mut Stream) -> Option<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD_BYTES);
    while head.len() < HEAD_BYTES {
        let deadline = stream.handle().deadline(exchange.timeout());
        match stream.read(&mut head, deadline).await {
            Ok(0) | Err(_) => return None,
            Ok(_) if head.find(b"\r\n\r\n").is_some() => return Some(head),
            Ok(_) => {}
        }
    }
    None
}

/// Whether the response is a 200. As in Apache, what is no response is left to TLS.
fn is_granted(exchange: &Exchange<'_>, head: &[u8]) -> bool {
    let shown = Verbatim::new(head);
    let line = format_args!("send_http_connect: response from the remote proxy: {shown}");
    exchange.log_of_server(Level::Debug, 949, None, line);
    let Some(code) = code(head) else { return true };
    let is_granted = decimal(code) == Some(200);
    if !is_granted {
        let code = Verbatim::new(code);
        let line = format_args!("send_http_connect: the remote proxy returned code is '{code}'");
        exchange.log_of_server(Level::Error, 950, None, line);
    }
    is_granted
}

/// Up to three characters behind `HTTP/1.1 `.
fn code(head: &[u8]) -> Option<&[u8]> {
    let version = head.strip_prefix(b"HTTP/")?;
    let (version, rest) = version.split_at(version.iter().position(|byte| *byte == b' ')?);
    let dot = version.iter().position(|byte| *byte == b'.')?;
    let (major, minor) = (version.get(..dot)?, version.get(dot + 1..)?);
    decimal(major)?;
    decimal(minor)?;
    let rest = rest.trim_ascii_start();
    let end = rest.iter().take(3).take_while(|byte| !byte.is_ascii_whitespace()).count();
    rest.get(..end).filter(|code| !code.is_empty())
}

#[cfg(test)]
mod tests {
    use super::code;

    #[test]
    fn codes_follow_the_version() {
        assert_eq!(code(b"HTTP/1.1 200 OK\r\n"), Some(&b"200"[..]));
        assert_eq!(code(b"HTTP/1.0  4031"), Some(&b"403"[..]));
        for head in [&b"hello"[..], b"HTTP/1.1", b"HTTP/x.1 200", b"HTTP/1.1 \r\n"] {
            assert_eq!(code(head), None);
        }
    }
}
