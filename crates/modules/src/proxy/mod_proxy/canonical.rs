//! What the canonical forms of URLs have in common in all schemes.
//!
//! Source: `ap_proxy_canonenc_ex`, `ap_proxy_canon_netloc` (proxy_util.c).

use std::net::Ipv6Addr;

use bstr::ByteSlice;
use rt::ConnectError;
use rt::names::Unresolved;
use server::core::EncodedSlashes;
use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::fault;
use super::parts::Parts;
use super::target::split_at_text;
use super::translate::{NOT_CANONICAL, STILL_ESCAPED};

/// Parses the URL of a request; `number` is the message that says why it can't.
///
/// # Errors
/// The status of the response.
pub fn parse<'u, M: Module>(
    request: &mut Request,
    number: u32,
    url: &'u [u8],
) -> Result<Parts<'u>, u16> {
    let parsed = Parts::parse(url);
    if let Ok(parts) = parsed
        && is_plain(url, &parts)
    {
        return Ok(parts);
    }
    match authority(url) {
        Ok(host) if host.contains(&b':') && !host.starts_with(b"[") => {
            return Err(unknown_host(request, url, host));
        }
        Ok(_) => {
            if let Ok(parts) = parsed {
                return Ok(parts);
            }
        }
        Err(_) => {}
    }
    // Apache ends the authority in the URL itself. Most modules have left the scheme out before.
    let (scheme, rest) = split_at_text(url, b":").unwrap_or((url, b""));
    let place = rest.strip_prefix(b"//");
    let why = if place.is_some() { "Invalid host/port" } else { "Malformed URL" };
    let end =
        place.and_then(|place| place.find_byte(b'/')).map_or(url.len() - scheme.len(), |at| at + 3);
    let begin = if number == OF_HTTP { 0 } else { scheme.len() + 1 };
    let shown = Verbatim::new(url.get(begin..scheme.len() + end).unwrap_or_default());
    request.log::<M>(Level::Error, number, format_args!("error parsing URL {shown}: {why}"));
    Err(400)
}

/// Whether Apache reads the place of a URL as it is parsed here, as it does that of almost any.
fn is_plain(url: &[u8], parts: &Parts<'_>) -> bool {
    let before = url.get(..url.len() - parts.path.len()).and_then(<[u8]>::last);
    let has_port = match parts.port {
        Some(port) => (1..=65535).contains(&port),
        None => before != Some(&b':'),
    };
    let is_name = parts.host.iter().any(|byte| !byte.is_ascii_digit())
        && !parts.host.contains(&b':')
        && parts.user.is_none()
        && url.get(parts.scheme.len() + 3) != Some(&b'[');
    has_port && is_name && matches!(parts.path.first(), None | Some(b'/'))
}

/// The message of mod_proxy_http, which shows the scheme.
const OF_HTTP: u32 = 1083;

/// The host of a URL, an IPv6 address in its brackets (`ap_proxy_canon_netloc`,
/// `apr_parse_addr_port`). It ends at the first slash and before the digits of a port.
///
/// # Errors
/// There is no host, the port is none, or what is in brackets is no address.
pub fn authority(url: &[u8]) -> Result<&[u8], InvalidPlace> {
    let (_, rest) = split_at_text(url, b"://").ok_or(InvalidPlace)?;
    let place = rest.split_str("/").next().unwrap_or_default();
    let place = place.rsplit_str("@").next().unwrap_or_default();
    let digits = place.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let (before, port) = place.split_at(place.len() - digits);
    let host = match before.strip_suffix(b":").filter(|_| digits > 0) {
        Some(host)
            if wire::chars::decimal(port).is_some_and(|port| (1..=65535).contains(&port)) =>
        {
            host
        }
        Some(_) => return Err(InvalidPlace),
        None if before.is_empty() => return Err(InvalidPlace),
        None => place,
    };
    let literal = host.strip_prefix(b"[");
    let is_literal = |text: &[u8]| {
        let address = text.strip_suffix(b"]").and_then(|text| std::str::from_utf8(text).ok());
        address.is_some_and(|text| text.parse::<Ipv6Addr>().is_ok())
    };
    match host.is_empty() || literal.is_some_and(|text| !is_literal(text)) {
        true => Err(InvalidPlace),
        false => Ok(host),
    }
}

/// A URL without a place that Apache can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPlace;

/// The response for a host with a colon. Apache takes it for an IPv6 address, and writes brackets
/// around it: for a host's name that no name server knows, or, if a query is in the brackets, for
/// nothing that can be parsed.
fn unknown_host(request: &mut Request, url: &[u8], host: &[u8]) -> u16 {
    let host = host.to_ascii_lowercase();
    if host.find_byteset(b"?#").is_none() {
        return fault::unknown_host(request, &host, &ConnectError::Unknown(Unresolved::NoName));
    }
    let scheme = url.split_str(":").next().unwrap_or_default();
    let why = [b"URI cannot be parsed: ", scheme, b"://[", &host, b"]/"].concat();
    fault::answer(request, 400, why)
}

/// Whether a byte stays as it is in a path.
const fn stays(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'/' | b'~' | b'$' | b'-' | b'_' | b'.' | b'+' | b'!' | b'*' | b'\'' | b'(' | b')'
        )
        || matches!(byte, b',' | b';' | b':' | b'@' | b'&' | b'=')
}

/// Whether the configuration lets the path go on as the client sent it: `nocanon`, or a mapping of
/// paths that are still escaped.
pub fn is_literal(request: &Request) -> bool {
    [NOT_CANONICAL, STILL_ESCAPED].into_iter().any(|note| request.notes.contains(note))
}

/// Whether a text may go on as it is: it has neither spaces nor control characters
/// (`ap_scan_vchar_obstext`).
pub fn is_visible(text: &[u8]) -> bool {
    text.iter().all(|byte| *byte > b' ' && *byte != 0x7f)
}

/// Appends a path that goes on as it came; `number` is the message that says why it must not.
///
/// # Errors
/// The status of the response.
pub fn write_literal<M: Module>(
    request: &Request,
    number: u32,
    path: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), u16> {
    if !is_visible(path) {
        let text = format_args!("To be forwarded path contains control characters or spaces");
        request.log::<M>(Level::Error, number, text);
        return Err(403);
    }
    out.extend_from_slice(path);
    Ok(())
}

/// Appends the query of a request; `number` is the message that says why it must not go on.
///
/// # Errors
/// The status of the response.
pub fn write_query<M: Module>(
    request: &Request,
    number: u32,
    out: &mut Vec<u8>,
) -> Result<(), u16> {
    let Some(query) = request.query() else { return Ok(()) };
    if !is_visible(query) {
        let text =
            format_args!("To be forwarded query string contains control characters or spaces");
        request.log::<M>(Level::Error, number, text);
        return Err(403);
    }
    out.push(b'?');
    out.extend_from_slice(query);
    Ok(())
}

/// Appends a decoded path, escaped. Under `AllowEncodedSlashes NoDecode` an escaped slash stays
/// one, and `None` is returned for a `%` without two hexadecimal digits.
pub fn write_path(request: &Request, path: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let keeps_slashes = request.host.core.allow_encoded_slashes.0 == EncodedSlashes::NoDecode;
    escape(path, keeps_slashes, out)
}

fn escape(path: &[u8], keeps_slashes: bool, out: &mut Vec<u8>) -> Option<()> {
    if path.iter().all(|byte| stays(*byte)) {
        out.extend_from_slice(path);
        return Some(());
    }
    let mut rest = path;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if keeps_slashes && *byte == b'%' {
            let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit))?;
            if digits.eq_ignore_ascii_case(b"2f") {
                out.push(b'%');
                out.extend_from_slice(digits);
                rest = after.get(2..)?;
                continue;
            }
        }
        if stays(*byte) {
            out.push(*byte);
        } else {
            out.extend_from_slice(format!("%{byte:02X}").as_bytes());
        }
    }
    Some(())
}

/// Writes the beginning of a URL, up to the slash of its path: the scheme, the host, and the port
/// unless it is the scheme's.
pub fn write_origin<'u>(out: &mut Vec<u8>, url: impl Into<Parts<'u>>, default_port: u16) {
    let url = url.into();
    let is_v6 = url.host.contains(&b':');
    let start = out.len();
    out.extend_from_slice(url.scheme);
    out.extend_from_slice(if is_v6 { b"://[" } else { b"://" });
    out.extend_from_slice(url.host);
    out.get_mut(start..).unwrap_or_default().make_ascii_lowercase();
    if is_v6 {
        out.push(b']');
    }
    if let Some(port) = url.port.filter(|port| *port != u32::from(default_port)) {
        out.push(b':');
        out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
    }
    out.push(b'/');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_escaped_again() {
        let of = |path: &str, keeps| {
            let mut out = Vec::new();
            escape(path.as_bytes(), keeps, &mut out).map(|()| String::from_utf8(out).unwrap())
        };
        assert_eq!(of("a b/c%?\u{e9}~", false).unwrap(), "a%20b/c%25%3F%C3%A9~");
        assert_eq!(of("a%2fb%41", true).unwrap(), "a%2fb%2541");
        assert_eq!(of("a%2", true), None);
        assert_eq!(of("x;y=1,'(2)'", false).unwrap(), "x;y=1,'(2)'");
    }

    #[test]
    fn authorities_are_those_of_apache() {
        let of = |url: &str| authority(url.as_bytes()).map(|host| host.as_bstr().to_string());
        assert_eq!(of("http://u:p@h:81/x@y").unwrap(), "h");
        assert_eq!(of("http://h:/x").unwrap(), "h:");
        assert_eq!(of("http://h:81?q").unwrap(), "h:81?q");
        assert_eq!(of("http://[::1]:81/").unwrap(), "[::1]");
        for url in ["http:///x", "http://1/", "http://h:0/", "http://h:65536/", "http://:1/", "x"] {
            assert_eq!(of(url), Err(InvalidPlace), "{url}");
        }
        for url in ["http://[h]/", "http://[::1]x/", "http://[::1%25lo]/"] {
            assert_eq!(of(url), Err(InvalidPlace), "{url}");
        }
    }

    #[test]
    fn origins_name_other_ports() {
        let of = |url: &[u8], port| {
            let mut out = Vec::new();
            write_origin(&mut out, Parts::parse(url).unwrap(), port);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(of(b"HTTP://Host:80/a", 80), "http://host/");
        assert_eq!(of(b"fcgi://[::1]:81/a", 8000), "fcgi://[::1]:81/");
    }
}
