//! Error responses of a proxy. Source: `ap_proxyerror`.

use rt::ConnectError;
use server::errorlog::{Cause, Verbatim};
use server::log::Level;
use server::request::Request;

use super::Proxy;
use super::backend::Options;
use super::scheme::Exchange;

/// Prepares the response that a proxy gives if it could not forward a request; returns its status.
pub fn answer(request: &mut Request, status: u16, why: impl AsRef<[u8]>) -> u16 {
    answer_because(request, status, None, why.as_ref())
}

fn answer_because(request: &mut Request, status: u16, cause: Option<Cause>, why: &[u8]) -> u16 {
    let mut notes = b"The proxy server could not handle the request".to_vec();
    notes.extend_from_slice(b"<p>Reason: <strong>");
    wire::escape::html(&mut notes, why);
    notes.extend_from_slice(b"</strong></p>");
    request.notes.set(b"error-notes", &notes);
    // The notes are shown whatever the status.
    request.notes.set(b"verbose-error-to", b"*");
    request.response.status_line = Some(format!("{status} Proxy Error").into_bytes());
    let uri = Verbatim::new(&request.resource.uri);
    let text = format_args!("{} returned by {uri}", Verbatim::new(why));
    match cause {
        Some(cause) => request.log_error::<Proxy>(Level::Error, 898, cause, text),
        None => request.log::<Proxy>(Level::Error, 898, text),
    }
    status
}

/// The name server does not know a host.
pub(super) fn unknown_host(request: &mut Request, host: &[u8], error: &ConnectError) -> u16 {
    let why = [b"DNS lookup failure for: ", host].concat();
    answer_because(request, 500, unresolved(error), &why)
}

/// Why a name has no address.
pub fn unresolved(error: &ConnectError) -> Option<Cause> {
    match error {
        ConnectError::Unknown(why) => Some(Cause::Unresolved(*why)),
        ConnectError::Pool(_) | ConnectError::Io(_) => None,
    }
}

/// What the message that there is no connection tells, beside the backend's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailedTells {
    /// The scheme's name.
    Scheme,
    /// The name of the module's scheme, at debug alone.
    AtDebug,
    /// Nothing else.
    Host,
    /// The port.
    Port,
}

/// Marks the worker as failed, and logs that there is no connection to `host`; returns the status
/// of the response.
pub(super) fn unconnected(exchange: &Exchange<'_>, options: &Options<'_>, host: &[u8]) -> u16 {
    exchange.worker_failed();
    if let Some(number) = options.failed {
        let host = Verbatim::new(host);
        let level = match options.failed_tells {
            FailedTells::AtDebug => Level::Debug,
            FailedTells::Scheme | FailedTells::Host | FailedTells::Port => Level::Error,
        };
        let (before, port) = match options.failed_tells {
            FailedTells::AtDebug => ("H2: ".to_owned(), String::new()),
            FailedTells::Scheme => (format!("{}: ", options.name), String::new()),
            FailedTells::Host => (String::new(), String::new()),
            FailedTells::Port => (String::new(), format!(":{}", exchange.shown_place().port)),
        };
        let text = format_args!("{before}failed to make connection to backend: {host}{port}");
        exchange.request.log_as(options.module, level, number, text);
    }
    503
}
