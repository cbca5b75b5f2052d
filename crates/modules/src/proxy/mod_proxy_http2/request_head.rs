//! The fields of a request to the backend. Source: `open_stream` (h2_proxy_session.c).

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{Proxied, Request};
use wire::Table;

use super::ProxyHttp2;
use crate::proxy::mod_proxy::canonical::is_visible;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::tls;

/// Fields that end here.
const IGNORED: [&[u8]; 7] = [
    b"upgrade",
    b"connection",
    b"keep-alive",
    b"http2-settings",
    b"proxy-connection",
    b"transfer-encoding",
    // It is `:authority`.
    b"host",
];

/// The head of a request.
pub(super) struct RequestHead {
    pub scheme: &'static [u8],
    pub authority: Vec<u8>,
    pub path: Vec<u8>,
    pub fields: Table,
}

impl RequestHead {
    /// The head of the exchange's request.
    pub fn of(exchange: &Exchange<'_>) -> RequestHead {
        let request = &*exchange.request;
        let dir = exchange.bound.dir;
        let rest = exchange.url.splitn(2, |byte| *byte == b':').nth(1).unwrap_or_default();
        let rest = rest.strip_prefix(b"//").unwrap_or(rest);
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let host = request.head.headers_in.get(b"Host");
        let authority = match dir.preserves_host.or(false) {
            true => host.unwrap_or_else(|| forced_host(request)),
            false => authority,
        };
        let path = if path.is_empty() { b"/" } else { path };
        let mut fields = copied(request);
        // Trailer fields of the response are forwarded, whatever the client takes.
        fields.set(b"TE", b"trailers");
        if dir.adds_headers.or(true) && request.resource.proxied == Proxied::Reverse {
            merge(
                &mut fields,
                b"X-Forwarded-For",
                request.useragent_addr.ip().to_string().as_bytes(),
            );
            if let Some(host) = host {
                merge(&mut fields, b"X-Forwarded-Host", host);
            }
            merge(&mut fields, b"X-Forwarded-Server", request.host.name());
        }
        RequestHead {
            scheme: if tls::is_tls(exchange.url) { b"https" } else { b"http" },
            authority: authority.to_vec(),
            path: path.iter().copied().filter(|byte| is_visible(&[*byte])).collect(),
            fields,
        }
    }
}

/// A request of HTTP/0.9 or 1.0 may have no `Host`.
fn forced_host(request: &Request) -> &[u8] {
    let (host, uri) = (Verbatim::new(request.host.name()), Verbatim::new(&request.resource.uri));
    let text = format_args!(
        "incoming HTTP/0.9 request (with no Host header) and preserve host set, forcing hostname \
         to be {host} for uri {uri}"
    );
    request.log::<ProxyHttp2>(Level::Warn, 10511, text);
    request.host.name()
}

/// The client's fields: those with the same name in one.
fn copied(request: &Request) -> Table {
    let mut fields = Table::new();
    for (name, value) in request.head.headers_in.iter() {
        if !IGNORED.iter().any(|ignored| ignored.eq_ignore_ascii_case(name)) {
            merge(&mut fields, name, value);
        }
    }
    fields
}

fn merge(fields: &mut Table, name: &[u8], value: &[u8]) {
    match fields.get(name) {
        Some(before) => {
            let value = [before, b", ", value].concat();
            fields.set(name, &value);
        }
        None => fields.add(name, value),
    }
}
