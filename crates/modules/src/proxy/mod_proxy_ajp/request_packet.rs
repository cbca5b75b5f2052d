//! The packet that carries a request. Source: `ajp_marshal_into_msgb`.

use server::hostname;
use server::request::Request;
use wire::Method;
use wire::ajp::{AjpOverflow, ForwardRequest, PACKET_BYTES, PACKET_BYTES_MAX, Ssl};

use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::target::split_at_text;
use crate::ssl::mod_ssl;

/// The beginning of the names of variables that become attributes.
const PREFIX: &[u8] = b"AJP_";
/// Sizes of packets are multiples of it.
const PACKET_UNIT_BYTES: usize = 1024;
/// The note with the route of a session.
const ROUTE: &[u8] = b"session-route";

/// The largest packet in either direction (`iobuffersize`, ProxyIOBufferSize).
pub(super) fn packet_bytes(exchange: &Exchange<'_>) -> usize {
    let of_host = || exchange.bound.server.io_buffer.get().copied();
    let of_worker = exchange.worker.parameters.io_buffer;
    let configured = of_worker.or_else(of_host).unwrap_or(PACKET_BYTES);
    configured.clamp(PACKET_BYTES, PACKET_BYTES_MAX).next_multiple_of(PACKET_UNIT_BYTES)
}

/// The packet of the exchange's request.
///
/// # Errors
/// It does not fit.
pub(super) async fn write(exchange: &mut Exchange<'_>) -> Result<Vec<u8>, AjpOverflow> {
    let limit = packet_bytes(exchange);
    let remote_host = hostname::client_name(exchange.request).await.map(<[u8]>::to_vec);
    let request = &*exchange.request;
    let remote_addr = request.useragent_addr.ip().to_canonical().to_string();
    let local = request.connection.local;
    let local_addr = local.ip().to_canonical().to_string();
    let (path, query) = parts(exchange.url);
    let texts = Texts::of(request);
    let packet = ForwardRequest {
        method: method(request),
        protocol: &request.protocol_name(),
        path,
        remote_addr: remote_addr.as_bytes(),
        remote_host: remote_host.as_deref(),
        server_name: request.server_name(),
        server_port: local.port(),
        ssl: texts.as_ref().map(Texts::ssl),
        secret: exchange.worker.parameters.secret.as_deref().filter(|text| !text.is_empty()),
        user: request.user.as_deref(),
        auth_type: request.auth_type.as_deref().map(str::as_bytes),
        query,
        route: request.notes.get(ROUTE),
        remote_port: request.useragent_addr.port(),
        local_addr: local_addr.as_bytes(),
    };
    let attributes =
        request.env.iter().filter_map(|(name, value)| Some((name.strip_prefix(PREFIX)?, value)));
    let mut out = Vec::with_capacity(PACKET_UNIT_BYTES);
    packet.write(&mut out, limit, request.head.headers_in.iter(), attributes)?;
    Ok(out)
}

/// Path and query of a canonical URL.
fn parts(url: &[u8]) -> (&[u8], Option<&[u8]>) {
    let rest = split_at_text(url, b"://").map_or(url, |(_, rest)| rest);
    let rest = rest.split(|byte| *byte == b'#').next().unwrap_or_default();
    let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let target = rest.get(slash..).unwrap_or_default();
    match target.iter().position(|byte| *byte == b'?') {
        Some(at) => (target.get(..at).unwrap_or_default(), target.get(at + 1..)),
        None => (target, None),
    }
}

/// What TLS says of the client.
struct Texts {
    cert: Vec<u8>,
    cipher: Vec<u8>,
    session: Vec<u8>,
    key_size: Option<u16>,
    protocol: Vec<u8>,
}

impl Texts {
    /// `None` without TLS.
    fn of(request: &Request) -> Option<Texts> {
        request.connection.tls.as_ref()?;
        let text = |name| mod_ssl::lookup(request, name).unwrap_or_default();
        let key_size = text("SSL_CIPHER_USEKEYSIZE");
        Some(Texts {
            cert: text("SSL_CLIENT_CERT"),
            cipher: text("SSL_CIPHER"),
            session: text("SSL_SESSION_ID"),
            key_size: std::str::from_utf8(&key_size).ok().and_then(|bits| bits.parse().ok()),
            protocol: text("SSL_PROTOCOL"),
        })
    }

    fn ssl(&self) -> Ssl<'_> {
        Ssl {
            cert: &self.cert,
            cipher: &self.cipher,
            session: &self.session,
            key_size: self.key_size,
            protocol: &self.protocol,
        }
    }
}

/// The method's name: that of a HEAD whose error document is requested by GET stays.
fn method(request: &Request) -> &[u8] {
    match request.head.header_only && request.head.method == Method::GET {
        true => b"HEAD",
        false => &request.head.method_name,
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn urls_have_a_path_and_perhaps_a_query() {
        assert_eq!(parts(b"ajp://h:1/a?b"), (&b"/a"[..], Some(&b"b"[..])));
        assert_eq!(parts(b"ajp://h/a?"), (&b"/a"[..], Some(&b""[..])));
        assert_eq!(parts(b"ajp://h/a#?b"), (&b"/a"[..], None));
        assert_eq!(parts(b"ajp://h"), (&b""[..], None));
    }
}
