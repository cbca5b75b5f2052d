//! The canonical form of URLs. Source: `proxy_ftp_canon`.

use server::request::{Proxied, Request};
use wire::ftp::is_clean;

use crate::proxy::mod_proxy::canonical::{authority, write_origin};
use crate::proxy::mod_proxy::parts::Parts;

/// What stays unescaped beside letters and digits: in a path, in one that a client has
/// escaped, and behind the first semicolon (`enc_path`, `enc_parm`).
const PATH: &[u8] = b"/~$-_.+!*'(),:@&=";
const CLIENTS_PATH: &[u8] = b"/~$-_.+!*'(),:;@&=%";
const PARAMETERS: &[u8] = b"$-_.+!*'(),?/:@&=";

/// The canonical form of `url`: the path and what follows a semicolon in it are escaped, unless the
/// request is one of a forward proxy; the query becomes a part of it.
///
/// # Errors
/// 400 for a URL with line ends or non-ASCII characters.
pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    authority(url).map_err(|_| 400u16)?;
    let parts = Parts::parse(url).map_err(|_| 400u16)?;
    if !parts.user.is_none_or(is_clean) {
        return Err(400);
    }
    let path = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    let mut out = Vec::with_capacity(url.len() + 16);
    write_origin(&mut out, parts, super::PORT);
    if request.resource.proxied == Proxied::Forward {
        if !is_clean(path) {
            return Err(400);
        }
        // As in Apache, with the query, which follows again.
        escape(path, CLIENTS_PATH, &mut out);
    } else {
        let semicolon = path.iter().position(|byte| *byte == b';').unwrap_or(path.len());
        let (path, parameters) = path.split_at(semicolon);
        let start = out.len();
        escape(path, PATH, &mut out);
        if !out.get(start..).is_some_and(is_clean) {
            return Err(400);
        }
        if let Some(parameters) = parameters.strip_prefix(b";").filter(|some| !some.is_empty()) {
            out.push(b';');
            escape(parameters, PARAMETERS, &mut out);
        }
    }
    if let Some(query) = request.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    Ok(out)
}

fn escape(text: &[u8], stays: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte.is_ascii_alphanumeric() || stays.contains(byte) {
            true => out.push(*byte),
            false => out.extend_from_slice(format!("%{byte:02X}").as_bytes()),
        }
    }
}
