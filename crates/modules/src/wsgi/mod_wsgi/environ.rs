//! The environ of a request, without what the worker adds to it.
//!
//! Source: `wsgi_build_environment`

use server::request::Request;
use wire::{Method, Table};

use super::script::host_name;
use super::{Bound, MapHead, Wsgi, trusted};
use crate::util_script::variables::add_common;

/// What the environ says about the script beside the request.
pub(super) struct About<'a> {
    pub process_group: &'a [u8],
    pub application_group: &'a [u8],
    pub callable: &'a [u8],
    pub handler: &'a [u8],
    pub handler_script: &'a [u8],
    pub passes_authorization: bool,
}

/// The path of the script, and the rest of the path, without double slashes.
///
/// Source: `wsgi_script_name`, `wsgi_path_info`
pub(super) fn split_path(request: &Request) -> (Vec<u8>, Vec<u8>) {
    let resource = &request.resource;
    let end = match resource.path_info.is_empty() {
        true => resource.uri.len(),
        false => server::subrequest::path_info_at(&resource.uri, &resource.path_info),
    };
    let script = resource.uri.get(..end).unwrap_or_default();
    // The root's own path is empty: its path info begins with the slash.
    let script = if script == b"/" && !resource.path_info.is_empty() { b"" } else { script };
    (collapsed(script), collapsed(&resource.path_info))
}

/// A path without double slashes.
fn collapsed(path: &[u8]) -> Vec<u8> {
    if !path.windows(2).any(|pair| pair == b"//") {
        return path.to_vec();
    }
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    for byte in path {
        if *byte != b'/' || out.last() != Some(&b'/') {
            out.push(*byte);
        }
    }
    out
}

/// The variables for a script that decides something. Those of the request stay as they are.
pub(super) async fn build(
    bound: Bound<'_, Wsgi>,
    request: &mut Request,
    about: &About<'_>,
) -> Table {
    let own = request.env.clone();
    add(bound, request, about).await;
    std::mem::replace(&mut request.env, own)
}

/// The variables that are for an application: not all of those that programs get.
pub(super) fn given(env: &Table) -> impl Iterator<Item = (&[u8], &[u8])> {
    let is_withheld = |name: &[u8]| {
        matches!(name, b"PATH" | b"LD_LIBRARY_PATH" | b"SERVER_SIGNATURE" | b"REMOTE_HOST")
    };
    env.iter().filter(move |(name, _)| !is_withheld(name))
}

/// Adds the variables for an application to the request, whose log and error documents know them.
pub(super) async fn add(bound: Bound<'_, Wsgi>, request: &mut Request, about: &About<'_>) {
    add_common::<Wsgi>(request).await;
    request.generate_log_id();
    let mut env = std::mem::take(&mut request.env);
    let is_https = env.get(b"HTTPS").is_some_and(|on| on.eq_ignore_ascii_case(b"on") || on == b"1");
    env.unset(b"HTTPS");
    if is_https || request.scheme() == "https" {
        env.set(b"HTTPS", b"1");
    }
    let (script_name, path_info) = split_path(request);
    let method = match is_shown_as_get(bound, request) {
        true => b"GET".as_slice(),
        false => &request.head.method_name,
    };
    env.set(b"REQUEST_METHOD", method);
    env.set(b"SERVER_PROTOCOL", &request.protocol_name());
    env.set(b"QUERY_STRING", request.query().unwrap_or_default());
    env.set(b"REQUEST_URI", request.original_target());
    env.set(b"SCRIPT_NAME", &script_name);
    env.set(b"PATH_INFO", &path_info);
    if about.passes_authorization
        && let Some(value) = request.head.headers_in.get(b"Authorization")
    {
        env.set(b"HTTP_AUTHORIZATION", value);
    }
    add_own(request, &mut env, about, (&script_name, &path_info));
    let headers = &bound.dir.trusted_headers;
    if !headers.is_empty() {
        let peer = request.connection.peer.ip().to_canonical();
        trusted::apply(&mut env, headers, &bound.dir.trusted_proxies, peer);
    }
    request.env = env;
}

/// Source: the end of `wsgi_build_environment`
fn add_own(
    request: &Request,
    env: &mut Table,
    about: &About<'_>,
    (script_name, path_info): (&[u8], &[u8]),
) {
    let mut address = Vec::with_capacity(wire::address::LONGEST);
    wire::address::write(&mut address, request.own_address().to_canonical());
    let mut digits = itoa::Buffer::new();
    for (name, value) in [
        (&b"mod_wsgi.process_group"[..], about.process_group),
        (b"mod_wsgi.application_group", about.application_group),
        (b"mod_wsgi.callable_object", about.callable),
        (b"mod_wsgi.request_handler", about.handler),
        (b"mod_wsgi.handler_script", about.handler_script),
        (b"mod_wsgi.script_name", script_name),
        (b"mod_wsgi.path_info", path_info),
        (b"mod_wsgi.listener_host", &address),
        (b"mod_wsgi.listener_port", digits.format(request.connection.local.port()).as_bytes()),
        (b"mod_wsgi.request_id", request.log_id().unwrap_or_default()),
        (b"mod_wsgi.connection_id", b""),
    ] {
        env.set(name, value);
    }
    if env.get(b"SERVER_NAME").is_none_or(<[u8]>::is_empty) {
        env.set(b"SERVER_NAME", &host_name(&request.host));
    }
}

/// Whether the application sees GET instead of HEAD: by `WSGIMapHEADToGET`, or because a filter
/// needs the content.
fn is_shown_as_get(bound: Bound<'_, Wsgi>, request: &Request) -> bool {
    request.head.method == Method::GET
        && request.head.header_only
        && match bound.dir.map_head.or(MapHead::Auto) {
            MapHead::On => true,
            MapHead::Off => false,
            MapHead::Auto => !request.response.filters.is_empty(),
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_slashes_become_one() {
        assert_eq!(collapsed(b"//a///b/"), b"/a/b/");
        assert_eq!(collapsed(b""), b"");
    }
}
