//! Connects to the other process, and lets the connection pass its descriptor behind the head of a
//! response. Source: `proxy_fdpass_handler`.

use std::io;

use messages::Message;
use rt::{ConnectOptions, Remote, Stream};
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::passing::Passing;
use server::path::as_path;

use super::{ProxyFdpass, socket_path};
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::unasked;

/// The provider that sends the head, which other modules of Apache could replace.
const FLUSHER: &[u8] = b"flush";

/// Makes the request's connection one that is passed.
///
/// # Errors
/// 500, without an effect on the worker.
pub(super) async fn forward(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let path = socket_path(exchange.url);
    if unasked::is_unasked(exchange.request, format_args!("{}", Verbatim::new(exchange.url))) {
        return Err(503);
    }
    let to = connect(exchange, path).await.map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::TIMEDOUT);
        let text = format_args!("Failed to connect to '{}'", Verbatim::new(path));
        exchange.request.log_error::<ProxyFdpass>(Level::Error, 1152, errno, text);
        500u16
    })?;
    let flusher = exchange.worker.parameters.flusher.as_deref().unwrap_or(FLUSHER);
    let request = &mut *exchange.request;
    if flusher != FLUSHER {
        let name = Verbatim::new(flusher);
        let text = format_args!("Unable to find configured flush provider '{name}'");
        request.log::<ProxyFdpass>(Level::Error, 1153, text);
        return Err(500);
    }
    if request.connection.tls.is_some() || request.connection.stream.is_some() {
        let text = format_args!("a connection of TLS can't be passed to another process");
        request.log::<ProxyFdpass>(Level::Error, Message::TlsNotPassed.number(), text);
        return Err(500);
    }
    request.response.passing = Some(Box::new(Passing { to, module: ProxyFdpass::FILE }));
    Ok(Verdict::Ok)
}

async fn connect(exchange: &Exchange<'_>, path: &[u8]) -> io::Result<Stream> {
    let end = exchange.request.engine.handle.deadline(exchange.timeout());
    let remote = Remote::Unix(as_path(path).to_owned());
    Stream::connect(&remote, &ConnectOptions::default(), end).await
}
