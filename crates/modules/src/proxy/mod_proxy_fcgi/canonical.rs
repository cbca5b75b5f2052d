//! The canonical form of URLs, and which part of a path is `PATH_INFO`.
//!
//! Source: `proxy_fcgi_canon`, `ap_proxy_canonenc_ex`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::uri::{Slashes, unescape_url};

use super::{BackendType, Fcgi, ProxyFcgi, backend_type};
use crate::proxy::mod_proxy::canonical::{is_literal, parse, write_origin, write_path};
use crate::proxy::mod_proxy::forward::BY_HANDLER;
use crate::proxy::mod_proxy::scheme::Scheme;

/// Says which part of the path `PATH_INFO` is, if the configuration maps a path to a URL.
const PATH_INFO_FORM: &[u8] = b"proxy-fcgi-pathinfo";

pub(super) fn canonical(request: &mut Request, url: &[u8]) -> Result<Vec<u8>, u16> {
    let parts = parse::<ProxyFcgi>(request, 1059, url)?;
    let raw = parts.path.strip_prefix(b"/").unwrap_or(parts.path);
    // Behind a handler's name there is the name of a file, which is not escaped.
    let mut path = Vec::with_capacity(raw.len());
    match is_literal(request) || request.notes.contains(BY_HANDLER) {
        true => path.extend_from_slice(checked(request, raw)?),
        false => write_path(request, raw, &mut path).ok_or(400u16)?,
    }
    let mut canonical = Vec::with_capacity(url.len() + 16);
    write_origin(&mut canonical, parts, Fcgi.default_port());
    canonical.extend_from_slice(&path);
    let shown = Verbatim::new(&canonical);
    request.log::<ProxyFcgi>(Level::Debug, 1060, format_args!("set r->filename to proxy:{shown}"));
    if let Some(form) = request.env.get(PATH_INFO_FORM) {
        let form = form.to_ascii_lowercase();
        set_path_info(request, &form, &mut path);
    }
    Ok(canonical)
}

/// A path that is passed on as it is: without control characters, and for PHP-FPM, which would take
/// it for a query's beginning, without `?`.
fn checked<'p>(request: &Request, path: &'p [u8]) -> Result<&'p [u8], u16> {
    let is_fpm = backend_type(request) == BackendType::Fpm;
    let is_bad = |byte: &u8| byte.is_ascii_control() || is_fpm && *byte == b'?';
    if !path.iter().any(is_bad) {
        return Ok(path);
    }
    let or = if is_fpm { " or '?'" } else { "" };
    let path = Verbatim::new(path);
    let text = format_args!("To be forwarded path contains control characters{or} ({path})");
    request.log::<ProxyFcgi>(Level::Error, 10414, text);
    Err(403)
}

/// Sets `PATH_INFO`: the rest of the path after the program, or, for servers that find out
/// themselves, the whole path.
fn set_path_info(request: &mut Request, form: &[u8], path: &mut Vec<u8>) {
    let dot = match form {
        // The file system says where the program's name ends.
        b"full" => return request.keep(NeedsWalk),
        b"first-dot" => path.iter().position(|byte| *byte == b'.'),
        b"last-dot" => path.iter().rposition(|byte| *byte == b'.'),
        _ => {
            path.insert(0, b'/');
            if form == b"unescape" {
                let _ = unescape_url(path, Slashes::Keep);
            }
            let shown = Verbatim::new(&*path);
            let text = format_args!("set r->path_info to {shown}");
            request.log::<ProxyFcgi>(Level::Debug, 1061, text);
            request.resource.path_info.clone_from(path);
            return;
        }
    };
    let Some(dot) = dot else { return };
    let rest = path.get(dot..).unwrap_or_default();
    let Some(slash) = rest.iter().position(|byte| *byte == b'/') else { return };
    let mut path_info = rest.get(slash..).unwrap_or_default().to_vec();
    let _ = unescape_url(&mut path_info, Slashes::Keep);
    request.resource.path_info = path_info;
}

/// `PATH_INFO` is what follows the file that the request's path names in the file system.
pub(super) struct NeedsWalk;
