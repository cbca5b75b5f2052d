//! The sections that apply to a proxied request, and its URL in canonical form.
//!
//! Source: `proxy_map_location`, `proxy_walk`, `proxy_fixup`, `ap_proxy_fixup_uds_filename`.

use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::matching;
use server::request::{Proxied, Request};
use server::walk;

use super::target::split_at_text;
use super::{Directory, Proxy, reverse};

/// The beginning of the file name of a proxied request.
pub const PREFIX: &[u8] = b"proxy:";

/// The UNIX socket that the URL of a request names.
pub(super) struct Socket(pub Vec<u8>);

/// Marks a request whose URL the scheme has seen.
pub(super) struct Seen;

/// Whether any request may be proxied.
pub(super) fn may_proxy(proxy: Bound<'_, Proxy>) -> bool {
    proxy.server.may_proxy.0
}

/// The hook of `map_to_storage`: walks `<Proxy>` sections. TRACE is left to the handler.
pub(super) fn map_to_storage<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    if url(request).is_none() {
        return Step::DECLINED;
    }
    matching::settle(request, move |request| {
        walk::proxied(request, &proxy.server.sections, PREFIX.len())?;
        Ok(Verdict::Ok)
    })
}

/// The URL of a proxied request.
fn url(request: &Request) -> Option<&[u8]> {
    if request.resource.proxied == Proxied::No {
        return None;
    }
    request.resource.filename.strip_prefix(PREFIX)
}

/// The hook of `fixups`: the scheme makes the URL canonical.
pub(super) fn fixup<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    if url(request).is_none() {
        return Step::DECLINED;
    }
    Step::Ready(match canonical(proxy, proxy.dir, request) {
        Ok(true) => Verdict::Ok,
        Ok(false) => Verdict::Declined,
        Err(status) => Verdict::Status(status),
    })
}

/// Makes the URL canonical. Returns false if no module handles its scheme.
///
/// # Errors
/// The status that ends the request.
pub(super) fn canonical(
    proxy: Bound<'_, Proxy>,
    dir: &Directory,
    request: &mut Request,
) -> Result<bool, u16> {
    request.keep(Seen);
    take_socket(proxy, request)?;
    reverse::prepare(request, dir);
    let Some(url) = url(request) else { return Ok(false) };
    let scheme = split_at_text(url, b":").map(|(scheme, _)| scheme);
    if scheme == Some(b"") {
        return Err(400);
    }
    let Some(scheme) = scheme.and_then(|scheme| proxy.server.workers.0.scheme(scheme)) else {
        return Ok(false);
    };
    let mut file = std::mem::take(&mut request.resource.filename);
    let canonical = scheme.canonical(request, file.get(PREFIX.len()..).unwrap_or_default());
    let is_url = |url: &Vec<u8>| url.find_byte(b':').is_some_and(|at| at > 0);
    let canonical = canonical.and_then(|url| if is_url(&url) { Ok(url) } else { Err(400) });
    if let Ok(url) = &canonical {
        file.truncate(PREFIX.len());
        file.extend_from_slice(url);
    }
    request.resource.filename = file;
    canonical.map(|_| true)
}

/// Takes the UNIX socket out of the URL.
fn take_socket(proxy: Bound<'_, Proxy>, request: &mut Request) -> Result<(), u16> {
    if request.resource.proxied == Proxied::Forward {
        return Ok(());
    }
    let Some(url) = url(request) else { return Ok(()) };
    let is_unix = url.get(..5).is_some_and(|start| start.eq_ignore_ascii_case(b"unix:"));
    let rest = url.get(5..).unwrap_or_default();
    if !is_unix {
        return Ok(());
    }
    let Some((path, rest)) = split_at_text(rest, b"|") else { return Ok(()) };
    if path.is_empty() || path.starts_with(b"//") {
        let file = Verbatim::new(&request.resource.filename);
        let why = format_args!("Invalid proxy UDS filename ({file})");
        request.log::<Proxy>(Level::Error, 10292, why);
        return Err(500);
    }
    let base = &proxy.server.workers.0.run_dir;
    let path = base.join(std::ffi::OsStr::from_bytes(path)).as_os_str().as_bytes().to_vec();
    request.resource.filename = with_host(rest);
    request.keep(Socket(path));
    Ok(())
}

/// The file name of the URL behind a socket, which need not name a host.
fn with_host(url: &[u8]) -> Vec<u8> {
    let (scheme, rest) = url.split_at(url.find_byte(b':').map_or(url.len(), |colon| colon + 1));
    let (host, rest): (&[u8], &[u8]) = match rest {
        [b'/', b'/'] | [b'/', b'/', b'/' | b'?' | b'#', ..] => {
            (b"//localhost", rest.get(2..).unwrap_or_default())
        }
        [b'/', b'/', ..] => (b"", rest),
        [] | [b'/', ..] => (b"//localhost", rest),
        _ => (b"", rest),
    };
    [PREFIX, scheme, host, rest].concat()
}
