//! A response without a connection, for `tamarack explain`.

use std::net::SocketAddr;
use std::rc::Rc;

use rt::Pooled;
use server::body::{Body, Chunk};
use server::connection_info::ConnectionInfo;
use server::hooks::Phase;
use server::host::Host;
use server::request::{Request, Unhosted};
use server::{filter, process};
use wire::{HeadError, Progress};

use super::{Active, Connection, h2, requests, tls};
use crate::cache::response::Fill;
use crate::head_text;
use crate::respond::{self, Framing, Length};
use crate::service::Service;

/// A response and its request.
pub struct Explained {
    /// The request; after internal redirects the last one.
    pub request: Pooled<Request>,
    /// How the response would be delimited.
    pub framing: Framing,
    /// Status line and fields.
    pub head: Vec<u8>,
    /// What only HTTP/2 has.
    pub http2: Option<OverHttp2>,
}

/// What precedes a response over HTTP/2.
pub struct OverHttp2 {
    /// Interim responses, in the text of HTTP/1.
    pub interim: Vec<u8>,
    /// Whether they are sent: pushes need no more than their fields.
    pub sends_interim: bool,
    /// The targets that are promised to a client that accepts pushes.
    pub pushes: Vec<Vec<u8>>,
}

/// Whether a host's connections can be of HTTP/2, from their first byte or by their handshake.
pub fn speaks_http2(host: &Host, is_tls: bool) -> bool {
    if is_tls { h2::is_offered(host) } else { h2::is_direct(host, false) }
}

/// A connection from `peer` to an address of the server's.
pub fn info_of(service: &Service, peer: SocketAddr, local: SocketAddr) -> ConnectionInfo {
    super::info(service, peer, local)
}

/// Makes the response to a request, as for the first on a connection. Nothing is sent, and nothing
/// logged. `sent` is the head and the whole body. `None` if the head is not whole.
pub async fn explain(
    service: &Rc<Service>,
    info: ConnectionInfo,
    sent: &[u8],
) -> Option<Explained> {
    let connection = &mut Connection::without_stream(service.clone(), info);
    let active = &mut Active::new();
    let is_plain = lacks_tls(connection);
    let is_http2 = connection.info.stream.is_some();
    let mut refused = match connection.parse(active, sent) {
        _ if is_plain => {
            *active = Active::new();
            Some(tls::plain_http(connection, active))
        }
        Progress::Done { consumed } => {
            active.input.extend_from_slice(sent.get(consumed..).unwrap_or_default());
            None
        }
        Progress::Error(error) => Some(error),
        Progress::NeedMore => return None,
    };
    if is_http2 && refused.is_none() {
        refused = over_http2(connection, active).err();
    }
    let mut request = match &refused {
        Some(_) => requests::take_request(connection, active, sent.len()),
        None => {
            let mut request = requests::blank(connection, active);
            let found = request.find_host(&mut active.host, &mut active.head, &mut active.known);
            request.take_head(&mut active.head);
            if is_http2 {
                h2::accept_pushes(h2::host_of(&service.server, &connection.info), &request);
            }
            refused = match found {
                Ok(()) => None,
                Err(Unhosted::Invalid(error)) => Some(error),
                Err(Unhosted::Misdirected(error)) => {
                    let _ = process::run_before_tls(&mut request).await;
                    Some(error)
                }
            };
            request
        }
    };
    let mut may_keep = false;
    match refused {
        Some(error) if is_plain => {
            let _ = process::run_before_tls(&mut request).await;
            requests::make_refusal(connection, active, &mut request, &error).await;
        }
        Some(error) => requests::make_refusal(connection, active, &mut request, &error).await,
        None => {
            let verdict = process::run_all(&mut request, Phase::PostReadRequest).await;
            request.depends.pure = request.is_untouched();
            may_keep = requests::make(connection, active, &mut request, verdict, Fill::None).await;
        }
    }
    filter::apply_all(&mut request).await;
    let framing = respond::finish_headers(&mut request, may_keep || is_http2).await;
    let mut head = Vec::new();
    respond::write_head(&request, framing, &mut head);
    let http2 = is_http2.then(|| preceding(connection, &request, &mut head));
    Some(Explained { request, framing, head, http2 })
}

/// What precedes a response, whose head becomes that of HTTP/2.
fn preceding(connection: &Connection, request: &Request, head: &mut Vec<u8>) -> OverHttp2 {
    let host = h2::host_of(&connection.engine.server, &connection.info);
    let interim = connection.info.interim.take().into_vec();
    let pushes = h2::pushes(request, &interim, head);
    *head = head_text::without_connection(head);
    OverHttp2 { interim, sends_interim: h2::has_early_hints(host), pushes }
}

/// Turns the head of HTTP/1 into that of the same request over HTTP/2.
fn over_http2(connection: &Connection, active: &mut Active) -> Result<(), Box<HeadError>> {
    let fields = std::mem::take(&mut active.head.headers);
    let limits = connection.info.base_host.core.head_limits();
    let options = super::head_options(&connection.engine, &connection.info);
    let body = active.head.body;
    active.head = active.head.upgraded(fields, &limits, &options)?;
    active.head.body = body;
    Ok(())
}

/// Whether the connection's address speaks TLS, and the connection does not.
fn lacks_tls(connection: &Connection) -> bool {
    let (engine, info) = (&connection.engine, &connection.info);
    let hook = engine.server.registry.hooks.tls();
    info.tls.is_none() && hook.is_some_and(|hook| (hook.is_on)(info, &engine.server))
}

impl Drop for Explained {
    fn drop(&mut self) {
        self.request.renew();
    }
}

impl Explained {
    /// Makes the body, at most `limit` bytes of it. `None` if it is longer, or breaks off.
    pub async fn body(&mut self, limit: usize) -> Option<Vec<u8>> {
        let mut made = Vec::new();
        if self.request.head.header_only || self.framing.length == Length::None {
            return Some(made);
        }
        let mut rest = std::mem::replace(&mut self.request.response.body, Body::Empty);
        while let Some(chunk) = std::future::poll_fn(|cx| rest.poll_chunk(cx)).await {
            match chunk.ok()? {
                Chunk::Bytes(bytes) => made.extend_from_slice(&bytes),
                Chunk::File(slice) if slice.length <= limit as u64 => {
                    made.extend_from_slice(&super::send::read(&slice).ok()?);
                }
                Chunk::File(_) => return None,
                Chunk::Flush => {}
            }
            if made.len() > limit {
                return None;
            }
        }
        Some(made)
    }
}
