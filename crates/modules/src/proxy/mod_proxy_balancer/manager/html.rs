//! Pieces of the pages.

use wire::escape;

use crate::proxy::mod_proxy::shared::Changed;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

/// A text of our own.
pub(super) fn put(out: &mut Vec<u8>, text: impl AsRef<[u8]>) {
    out.extend_from_slice(text.as_ref());
}

/// A foreign text.
pub(super) fn put_escaped(out: &mut Vec<u8>, text: &[u8]) {
    escape::html(out, text);
}

/// A foreign text as a part of a URL in an attribute.
pub(super) fn put_url(out: &mut Vec<u8>, text: &[u8]) {
    let mut url = Vec::with_capacity(text.len());
    escape::path(&mut url, text);
    escape::html(out, &url);
}

/// A load factor.
pub(super) fn factor(worker: &Worker) -> String {
    format!("{:.2}", f64::from(worker.state.load_factor()) / 100.0)
}

/// The name of a worker, with its socket (`ap_proxy_worker_name`).
pub(super) fn put_name(out: &mut Vec<u8>, worker: &Worker) {
    if let Some(socket) = &worker.target.socket {
        put(out, "unix:");
        put_escaped(out, socket);
        put(out, "|");
    }
    put_escaped(out, &worker.name);
}

/// The name of a balancer without `balancer://`.
pub(super) fn short_name(balancer: &Balancer) -> &[u8] {
    balancer.name.strip_prefix(b"balancer://").unwrap_or(&balancer.name)
}

/// `maxattempts`, and whether it is set: with several members it always is.
pub(super) fn attempts(balancer: &Balancer, current: &Changed) -> (u32, bool) {
    let several = balancer.configured.len() > 1;
    let value = match current.max_attempts {
        Some(value) => value,
        None if several => balancer.configured.len() as u32 - 1,
        None => 0,
    };
    (value, several || balancer.parameters.max_attempts.is_some())
}

/// The name of its method.
pub(super) fn method<'b>(balancer: &'b Balancer, current: &Changed) -> &'b str {
    balancer.methods.get(current.method).map_or("byrequests", |(name, _)| name)
}

/// The names of cookie and parameter, as `stickysession` has them.
pub(super) fn put_sticky(out: &mut Vec<u8>, current: &Changed, bar: &str) {
    let Some((cookie, path)) = &current.sticky else { return };
    put_escaped(out, cookie);
    if cookie != path {
        put(out, bar);
        put_escaped(out, path);
    }
}
