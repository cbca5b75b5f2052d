//! What `tamarack explain` leaves out: it connects to no backend and asks no name server. It notes
//! what a server would ask.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use rt::ConnectError;
use server::errorlog::Verbatim;
use server::request::Request;

use super::backend::ADDRESSES;
use super::scheme::Exchange;

/// The request was not sent: no worker is to blame for its response.
struct Unsent;

/// The addresses of `name`, which may be one itself, kept for `ttl`: none for names in a recording.
///
/// # Errors
/// Those of the resolver.
pub async fn look_up(
    request: &Request,
    name: &str,
    ttl: Option<Duration>,
) -> Result<Arc<[IpAddr]>, ConnectError> {
    if let Some(recorder) = &request.engine.recorder
        && name.parse::<IpAddr>().is_err()
    {
        recorder.not_asked(&format!("the name server, about {name}"));
        return Ok(Arc::default());
    }
    ADDRESSES.look_up(name, ttl).await
}

/// Whether a recording leaves out the connection to `place`, which it notes.
pub fn is_unasked(request: &mut Request, place: fmt::Arguments<'_>) -> bool {
    let Some(recorder) = &request.engine.recorder else { return false };
    recorder.not_connected(&place.to_string());
    request.keep(Unsent);
    true
}

/// As [`is_unasked`], for the connection of an exchange.
pub(super) fn is_unasked_backend(exchange: &mut Exchange<'_>) -> bool {
    let url = Verbatim::new(exchange.url);
    let (remote, socket) = (exchange.remote, exchange.socket.map(Verbatim::new));
    let request = &mut *exchange.request;
    match (remote, socket) {
        (Some(remote), _) => {
            let (scheme, place) = (Verbatim::new(&remote.scheme), remote.place());
            is_unasked(request, format_args!("{scheme}://{place} for {url}"))
        }
        (None, Some(path)) => is_unasked(request, format_args!("unix:{path}|{url}")),
        (None, None) => is_unasked(request, format_args!("{url}")),
    }
}

/// Whether the request was not sent because it is recorded.
pub(super) fn is_unsent(request: &Request) -> bool {
    request.kept::<Unsent>().is_some()
}
