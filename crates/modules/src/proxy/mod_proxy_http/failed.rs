//! Why a request has no response of the backend, in Apache's words.

use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::log::Level;
use wire::response::Fault;

use super::ProxyHttp;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{Proxy, fault};

/// Why an attempt has no response.
pub(super) enum Failed {
    /// The connection ended before the first byte.
    Unanswered(Option<Errno>),
    /// The status of the response.
    Status(u16),
}

/// The backend did not send a status line in time. That is a 502 in Apache, not a 504.
pub(super) fn timed_out(exchange: &mut Exchange<'_>, waits: bool) -> u16 {
    let place = exchange.shown_place();
    exchange.request.notes.set(b"proxy_timedout", b"1");
    let text = format_args!("error reading status line from remote server {place}");
    exchange.request.log_error::<ProxyHttp>(Level::Error, 1102, Errno::TIMEDOUT, text);
    stays_open(exchange);
    if waits {
        return fault::answer(exchange.request, 503, "Timeout on 100-Continue");
    }
    fault::answer(exchange.request, 502, "Error reading from remote server")
}

/// Apache may end the connection of a client that has had a response before.
fn stays_open(exchange: &Exchange<'_>) {
    let place = exchange.shown_place();
    let text = format_args!(
        "NOT Closing connection to client although reading from backend server {place} failed."
    );
    exchange.request.log::<ProxyHttp>(Level::Debug, 1105, text);
}

/// The backend did not take the request in time.
pub(super) fn not_taken(exchange: &Exchange<'_>) -> u16 {
    let place = exchange.shown_place();
    let host = Verbatim::new(&place.host);
    let peer = exchange.request.useragent_addr.ip();
    let text = format_args!("pass request body failed to {place} ({host})");
    exchange.request.log_error::<Proxy>(Level::Error, 1084, Errno::TIMEDOUT, text);
    let text = format_args!("pass request body failed to {place} ({host}) from {peer} ()");
    exchange.request.log::<ProxyHttp>(Level::Error, 1097, text);
    504
}

/// The backend closed the connection instead of responding.
pub(super) fn unanswered(exchange: &mut Exchange<'_>, errno: Option<Errno>) -> u16 {
    let place = exchange.shown_place();
    let text = format_args!("error reading status line from remote server {place}");
    match errno {
        Some(errno) => exchange.request.log_error::<ProxyHttp>(Level::Error, 1102, errno, text),
        None => exchange.request.log::<ProxyHttp>(Level::Error, 1102, text),
    }
    stays_open(exchange);
    fault::answer(exchange.request, 502, "Error reading from remote server")
}

/// The response can't be used.
pub(super) fn refuse(exchange: &mut Exchange<'_>, found: &Fault) -> u16 {
    let request = &mut *exchange.request;
    match found.log_number() {
        898 => return fault::answer(request, found.status(), found.to_string()),
        number => {
            let uri = Verbatim::new(&request.resource.uri);
            let method = Verbatim::new(&request.head.method_name);
            let text = format_args!("{found} returned by {uri} ({method})");
            request.log::<ProxyHttp>(Level::Error, number, text);
        }
    }
    if found.log_number() == 1102 {
        return fault::answer(request, 502, "Error reading from remote server");
    }
    found.status()
}
