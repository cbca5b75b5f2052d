//! `Link` fields: their URLs are mapped as those of `Location` are. Source:
//! `h2_proxy_link_reverse_map`.

use server::request::Proxied;
use wire::Table;

use crate::proxy::mod_proxy::reverse;
use crate::proxy::mod_proxy::scheme::Exchange;

/// The longest URL that is mapped, bytes (`HUGE_STRING_LEN`).
const URL_BYTES: usize = 8192;

/// Maps the URLs in the `Link` fields of a response.
pub(super) fn map(exchange: &Exchange<'_>, fields: &mut Table) {
    if exchange.request.resource.proxied != Proxied::Reverse || !fields.contains(b"Link") {
        return;
    }
    let mut mapped = Table::with_capacity(fields.len(), fields.capacity_bytes());
    for (name, value) in fields.iter() {
        match name.eq_ignore_ascii_case(b"Link") {
            true => mapped.add(name, &map_value(exchange, value)),
            false => mapped.add(name, value),
        }
    }
    *fields = mapped;
}

/// The origin that the backend knows, in the scheme of the exchange's URL and in that of HTTP.
fn origins(exchange: &Exchange<'_>) -> (Vec<u8>, Vec<u8>) {
    let url = exchange.url;
    let (scheme, rest) = split(url, b"://").unwrap_or((url, b""));
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let preserved = exchange.request.head.headers_in.get(b"Host");
    let preserved = preserved.filter(|_| exchange.bound.dir.preserves_host.or(false));
    let authority = preserved.unwrap_or(rest.get(..end).unwrap_or_default());
    let real: &[u8] = if scheme == b"h2" { b"https" } else { b"http" };
    ([scheme, b"://", authority].concat(), [real, b"://", authority].concat())
}

fn split<'t>(text: &'t [u8], at: &[u8]) -> Option<(&'t [u8], &'t [u8])> {
    let place = text.windows(at.len()).position(|window| window == at)?;
    Some((text.get(..place)?, text.get(place + at.len()..)?))
}

fn map_value(exchange: &Exchange<'_>, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut rest = value;
    // Each link is in angle brackets; what is behind them stays.
    while let Some((before, after)) = split(rest, b"<") {
        let Some((url, behind)) = split(after, b">") else { break };
        out.extend_from_slice(before);
        out.push(b'<');
        out.extend_from_slice(&map_url(exchange, url));
        out.push(b'>');
        rest = behind;
        let end = end_of_parameters(rest);
        let (parameters, next) = rest.split_at(end);
        out.extend_from_slice(parameters);
        rest = next;
        if rest.first() != Some(&b',') {
            break;
        }
    }
    out.extend_from_slice(rest);
    out
}

/// Where the parameters of a link end: at a comma outside of quotes.
fn end_of_parameters(text: &[u8]) -> usize {
    let mut is_quoted = false;
    let end = text.iter().position(|byte| {
        is_quoted ^= *byte == b'"';
        *byte == b',' && !is_quoted
    });
    end.unwrap_or(text.len())
}

fn map_url(exchange: &Exchange<'_>, url: &[u8]) -> Vec<u8> {
    let (own, real) = origins(exchange);
    let is_path = url.first() == Some(&b'/');
    let full = match url.strip_prefix(real.as_slice()) {
        _ if is_path => [&own, url].concat(),
        Some(path) => [&own, path].concat(),
        None => url.to_vec(),
    };
    if url.is_empty() || full.len() >= URL_BYTES {
        return url.to_vec();
    }
    let mapped = reverse::location(exchange.request, exchange.bound, &full);
    if *mapped == full {
        return url.to_vec();
    }
    match is_path {
        // A path stays one.
        true => match split(&mapped, b"://") {
            Some((_, rest)) => {
                let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
                rest.get(slash..).unwrap_or_default().to_vec()
            }
            None => mapped.into_owned(),
        },
        false => mapped.into_owned(),
    }
}
