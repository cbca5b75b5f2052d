//! The handler: chooses the worker of a request, and lets its scheme forward it.
//!
//! Source: `proxy_handler` (mod_proxy.c).

use std::borrow::Cow;

use server::core::Trace;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::request::{Proxied, Request};
use wire::method::Method;

use super::scheme::Exchange;
use super::storage::{self, PREFIX, Seen, Socket};
use super::target::split_at_text;
use super::workers::Worker;
use super::{Proxy, failover, fault, remote};
use crate::http::methods;

/// The variable by which schemes keep no connection open.
const NO_KEEP_ALIVE: &[u8] = b"proxy-nokeepalive";

/// The note of a request whose URL is a handler's name and the name of a file.
pub const BY_HANDLER: &[u8] = b"proxy-sethandler";

/// The handler of proxied requests, and of those whose handler begins with `proxy:`.
pub(super) fn handle<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    if request.resource.proxied == Proxied::No {
        let Some(handler) = named(request) else { return Step::DECLINED };
        request.resource.proxied = Proxied::Reverse;
        let file = std::mem::take(&mut request.resource.filename);
        request.resource.filename = [&handler[..], &file].concat();
        request.notes.set(BY_HANDLER, b"1");
    } else if !request.resource.filename.starts_with(PREFIX) {
        return Step::DECLINED;
    }
    request.depends.pure = false;
    // Rules of a directory decide after the hook of `fixups`.
    if request.kept::<Seen>().is_none()
        && let Err(status) = storage::canonical(proxy, proxy.dir, request)
    {
        return Step::status(status);
    }
    match prepare(proxy, request) {
        Some(verdict) => Step::Ready(verdict),
        None => Step::Pending(Box::pin(forward(proxy, request))),
    }
}

/// The handler's name if it begins with `proxy:`, for a file that does not.
fn named(request: &Request) -> Option<Cow<'static, [u8]>> {
    let handler = request.handler.as_ref().filter(|name| name.starts_with(PREFIX))?;
    (!request.resource.filename.starts_with(PREFIX)).then(|| handler.clone())
}

/// What is decided before a worker is chosen: Max-Forwards, TRACE, ProxyDomain.
fn prepare(proxy: Bound<'_, Proxy>, request: &mut Request) -> Option<Verdict> {
    if let Err(verdict) = count_down(proxy, request) {
        return Some(verdict);
    }
    if request.head.method == Method::TRACE
        && let Some(verdict) = refuse_trace(request)
    {
        return Some(verdict);
    }
    if !request.resource.filename.get(PREFIX.len()..).is_some_and(|url| url.contains(&b':')) {
        let file = Verbatim::new(&request.resource.filename);
        request.log::<Proxy>(Level::Debug, 1141, format_args!("proxy_handler no URL in {file}"));
        return Some(Verdict::Status(400));
    }
    // `ap_http_filter` has no limit for it, not even the default one.
    request.body_in.lift_limit();
    let domain = proxy.server.domain.get()?;
    add_domain(request, domain).then_some(Verdict::Status(301))
}

/// Counts Max-Forwards down. At zero this server responds to TRACE and OPTIONS itself.
fn count_down(proxy: Bound<'_, Proxy>, request: &mut Request) -> Result<(), Verdict> {
    let Some(text) = request.head.headers_in.get(b"Max-Forwards") else {
        let most = proxy.server.max_forwards.or(-1);
        if most >= 0 {
            request.head.headers_in.set(b"Max-Forwards", most.to_string().as_bytes());
        }
        return Ok(());
    };
    let number = std::str::from_utf8(text).ok();
    let number = number.and_then(|text| text.trim_ascii_start().parse::<i64>().ok());
    let left = match number.filter(|number| (0..i64::MAX).contains(number)) {
        Some(left) => left,
        None if text.is_empty() => 0,
        None => {
            let shown = Verbatim::new(text);
            let why = format_args!("Max-Forwards value '{shown}' could not be parsed");
            request.log::<Proxy>(Level::Warn, 10188, why);
            let why = "Max-Forwards request header could not be parsed";
            return Err(failed(request, why));
        }
    };
    if left > 0 {
        request.head.headers_in.set(b"Max-Forwards", (left - 1).to_string().as_bytes());
        return Ok(());
    }
    request.resource.proxied = Proxied::No;
    match request.head.method {
        Method::TRACE => Err(methods::answer_trace(request)),
        Method::OPTIONS => {
            let allow = request.allow();
            request.response.headers_out.set(b"Allow", &allow);
            Err(Verdict::Done)
        }
        _ => {
            request.resource.proxied = Proxied::Reverse;
            Err(failed(request, "Max-Forwards has reached zero - proxy loop?"))
        }
    }
}

fn failed(request: &mut Request, why: &str) -> Verdict {
    Verdict::Status(fault::answer(request, 400, why))
}

/// `TraceEnable`
fn refuse_trace(request: &mut Request) -> Option<Verdict> {
    let enabled = request.host.core.trace_enable.or(Trace::On);
    let (number, status, why) = match enabled {
        Trace::Off => (1139, 405, "TRACE forbidden by server configuration"),
        Trace::On if !request.body_in.is_empty() => {
            (1140, 413, "TRACE with request body is not allowed")
        }
        _ => return None,
    };
    request.notes.set(b"error-notes", why.as_bytes());
    request.notes.set(b"verbose-error-to", b"*");
    request.log::<Proxy>(Level::Error, number, format_args!("{why}"));
    Some(Verdict::Status(status))
}

/// Redirects a GET for a URL whose host has no domain (`proxy_needsdomain`).
fn add_domain(request: &mut Request, domain: &[u8]) -> bool {
    if request.head.method != Method::GET {
        return false;
    }
    let target = request.head.unparsed_uri.clone();
    let Some((scheme, rest)) = split_at_text(&target, b":") else { return false };
    let Some(rest) = rest.strip_prefix(b"//") else { return false };
    let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
    let (authority, path) = rest.split_at(end.unwrap_or(rest.len()));
    let user = authority.iter().rposition(|byte| *byte == b'@').map_or(0, |at| at + 1);
    let (user, place) = authority.split_at(user);
    let end = place.iter().position(|byte| *byte == b':').unwrap_or(place.len());
    let (host, port) = place.split_at(end);
    let is_whole = host.is_empty() || host.iter().any(|byte| matches!(byte, b'.' | b'['));
    if is_whole || host.eq_ignore_ascii_case(b"localhost") {
        return false;
    }
    let url = [scheme, b"://", user, host, domain, port, path].concat();
    let shown = Verbatim::new(&url);
    let uri = Verbatim::new(&request.resource.uri);
    let referer = request.head.headers_in.get(b"Referer").map(Verbatim::new);
    let from = referer.map(|referer| format!(" from {referer}")).unwrap_or_default();
    let line = format_args!("Domain missing: {uri} sent to {shown}{from}");
    request.log::<Proxy>(Level::Info, 1138, line);
    request.response.headers_out.set(b"Location", &url);
    true
}

/// Forwards the request to the worker of its URL, or to members of its balancer.
async fn forward(proxy: Bound<'_, Proxy>, request: &mut Request) -> Verdict {
    let filename = request.resource.filename.clone();
    let url = filename.get(PREFIX.len()..).unwrap_or_default();
    let workers = &proxy.server.workers.0;
    if let Some(balancing) = workers.balancing
        && let Some(balancer) = workers.balancer_of(url)
    {
        return Box::pin(failover::forward(proxy, request, (balancer, balancing), url)).await;
    }
    let Some(worker) = workers.of_request(request.resource.proxied, url).cloned() else {
        return Verdict::Status(500);
    };
    let scheme = split_at_text(url, b":").map_or(url, |(name, _)| name);
    attempt(proxy, request, Attempt { worker: &worker, url, scheme, number: 0 }).await
}

/// One attempt to forward a request.
pub(super) struct Attempt<'a> {
    pub worker: &'a Worker,
    /// What it is asked for.
    pub url: &'a [u8],
    /// The scheme of the request's URL.
    pub scheme: &'a [u8],
    /// 0 for the first one.
    pub number: u32,
}

/// Forwards the request to a worker, and counts it if metrics are configured.
pub(super) async fn attempt(
    proxy: Bound<'_, Proxy>,
    request: &mut Request,
    attempt: Attempt<'_>,
) -> Verdict {
    let worker = attempt.worker;
    if !request.engine.server.counts_hosts {
        return serve(proxy, request, attempt).await;
    }
    if !worker.is_member {
        // Balancers count their choices.
        worker.state.count_elected();
    }
    let verdict = serve(proxy, request, attempt).await;
    if matches!(verdict, Verdict::Status(502..=504))
        && !request.notes.contains(failover::OVERRIDDEN)
    {
        worker.state.count_failure();
    }
    verdict
}

/// Asks the worker: through remote proxies, then directly.
async fn serve(
    proxy: Bound<'_, Proxy>,
    request: &mut Request,
    Attempt { worker, url, scheme: name, number }: Attempt<'_>,
) -> Verdict {
    if worker.is_generic {
        request.env.set(NO_KEEP_ALIVE, b"1");
    }
    let shown = Verbatim::new(name);
    let workers = &proxy.server.workers.0;
    let is_connect = request.head.method == Method::CONNECT;
    let scheme = worker.scheme.or_else(|| workers.scheme(name));
    let scheme = scheme.or(workers.tunnels.filter(|_| is_connect));
    let Some(scheme) = scheme else { return unhandled(request, name) };
    let socket = match &worker.target.socket {
        Some(path) => Some(Cow::Borrowed(path)),
        None => request.kept::<Socket>().map(|Socket(path)| Cow::Owned(path.clone())),
    };
    let is_direct = match proxy.server.direct.is_empty() {
        true => false,
        false => Box::pin(remote::is_direct(request, proxy.server)).await,
    };
    let remotes = proxy.server.remotes.iter().filter(|_| !is_direct);
    // Remote proxies are asked by HTTP.
    let is_ftp = name.eq_ignore_ascii_case(b"ftp");
    let by_remote = if is_ftp { workers.scheme(b"http").unwrap_or(scheme) } else { scheme };
    for remote in remotes.filter(|remote| remote.handles(url)) {
        let line = "Trying to run scheme_handler against proxy";
        request.log::<Proxy>(Level::Debug, 1142, format_args!("{line}"));
        let exchange = Exchange {
            request: &mut *request,
            bound: proxy,
            worker,
            url,
            socket: socket.as_deref().map(Vec::as_slice),
            remote: Some(remote),
        };
        let verdict = by_remote.serve(exchange).await.unwrap_or_else(Verdict::Status);
        if verdict != Verdict::Status(502) && verdict != Verdict::Declined || has_body(request) {
            return verdict;
        }
    }
    let line = format_args!("Running scheme {shown} handler (attempt {number})");
    request.log::<Proxy>(Level::Debug, 1143, line);
    let socket = socket.as_deref().map(Vec::as_slice);
    let exchange =
        Exchange { request: &mut *request, bound: proxy, worker, url, socket, remote: None };
    match scheme.serve(exchange).await {
        Ok(Verdict::Declined) => unhandled(request, name),
        served => served.unwrap_or_else(Verdict::Status),
    }
}

/// No module handles the scheme.
fn unhandled(request: &mut Request, scheme: &[u8]) -> Verdict {
    let (uri, scheme) = (Verbatim::new(&request.resource.uri), Verbatim::new(scheme));
    let why = format_args!(
        "No protocol handler was valid for the URL {uri} (scheme '{scheme}'). If you are using a \
         DSO version of mod_proxy, make sure the proxy submodules are included in the \
         configuration using LoadModule."
    );
    request.log::<Proxy>(Level::Warn, 1144, why);
    Verdict::Status(500)
}

/// Whether a body came with the request: a remote proxy may have got parts of it.
fn has_body(request: &Request) -> bool {
    let fields = &request.head.headers_in;
    let has_length = fields.get(b"Content-Length").is_some_and(|length| length != b"0");
    has_length || fields.contains(b"Transfer-Encoding")
}
