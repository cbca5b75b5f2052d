//! The tunnel to a WebSocket server. Source: `proxy_wstunnel_handler`.

use std::time::Duration;

use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::module::Module;
use server::tunnel::Tunnel;

use super::ProxyWstunnel;
use crate::proxy::mod_proxy::backend::{Backend, FailedTells, Options};
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::outgoing::Framing;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::{Proxy, fault};
use crate::proxy::mod_proxy_http;
use crate::proxy::mod_proxy_http::request_head::{self, Shape};
use crate::proxy::mod_proxy_http::upgrade::{WEB_SOCKET, allows};

/// As in Apache, silence does not end a tunnel.
const SILENCE: Duration = Duration::MAX;

/// Connects, and makes the client's connection a tunnel, in which the backend responds.
pub(super) async fn connect(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    let url = Verbatim::new(exchange.url);
    exchange.request.log::<ProxyWstunnel>(Level::Debug, 2451, format_args!("serving URL {url}"));
    exchange.check_worker()?;
    let protocol = protocol(exchange)?;
    let busy = Busy::new(&exchange.worker.state);
    let mut backend = Backend::connect(exchange, options(exchange)).await?;
    let shape = Shape {
        framing: Framing::None,
        is_http10: false,
        keeps: false,
        expects_continue: false,
        waits: None,
        upgrade: Some(protocol),
    };
    let mut head = Vec::new();
    request_head::write(exchange, &shape, &mut head)
        .map_err(|why| fault::answer(exchange.request, 400, why.to_string()))?;
    if backend.stream.write_all(&head, exchange.timeout()).await.is_err() {
        let place = exchange.shown_place();
        let text = format_args!("pass request body failed to {place}");
        exchange.request.log::<Proxy>(Level::Error, 1084, text);
        return Err(502);
    }
    exchange.count_sent(head.len() as u64);
    let (far, slot) = backend.into_parts();
    exchange.request.response.tunnel = Some(Box::new(Tunnel {
        head: Vec::new(),
        far,
        received: Vec::new(),
        idle: SILENCE,
        timed_out: None,
        unanswered: Some(502),
        guard: Box::new((slot, busy)),
    }));
    Ok(Verdict::Ok)
}

/// Asks the backend for a WebSocket that a stream of HTTP/2 becomes. The client understands no
/// response of HTTP/1.1: it is read here, and one other than 101 is passed on as usual.
pub(super) async fn switch(exchange: &mut Exchange<'_>) -> Result<Verdict, u16> {
    protocol(exchange)?;
    let verdict = mod_proxy_http::forward(exchange).await?;
    if let Some(tunnel) = &mut exchange.request.response.tunnel {
        tunnel.idle = SILENCE;
    }
    Ok(verdict)
}

fn options(exchange: &Exchange<'_>) -> Options<'static> {
    let is_tls = exchange.url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"wss:"));
    Options {
        name: if is_tls { "WSS" } else { "WS" },
        module: ProxyWstunnel::FILE,
        failed: Some(2452),
        failed_tells: FailedTells::Host,
        unsent: 1084,
        may_reuse: false,
        keeps: false,
    }
}

/// The protocol that the backend is asked for, as `upgrade` writes it: the client must ask for it.
fn protocol(exchange: &mut Exchange<'_>) -> Result<Vec<u8>, u16> {
    let own = exchange.worker.parameters.upgrade.as_deref();
    let own = own.filter(|own| !own.is_empty()).unwrap_or(WEB_SOCKET);
    let request = &mut *exchange.request;
    let asked = request.head.headers_in.get(b"Upgrade");
    if asked.is_some_and(|asked| allows(own, asked)) {
        return Ok(own.to_vec());
    }
    let (url, shown) = (Verbatim::new(exchange.url), Verbatim::new(own));
    let asked = Verbatim::new(asked.unwrap_or(b"missing"));
    let text = format_args!(
        "require upgrade for URL {url} (Upgrade header is {asked}, expecting {shown})"
    );
    request.log::<ProxyWstunnel>(Level::Info, 2900, text);
    let fields = &mut request.response.err_headers_out;
    fields.set(b"Connection", b"Upgrade");
    fields.set(b"Upgrade", own);
    Err(426)
}
