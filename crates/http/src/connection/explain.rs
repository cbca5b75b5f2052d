//! A response without a connection, for `tamarack explain`.

use std::net::SocketAddr;
use std::rc::Rc;

use rt::Pooled;
use server::body::{Body, Chunk};
use server::connection_info::ConnectionInfo;
use server::hooks::Phase;
use server::request::{Request, Unhosted};
use server::{filter, process};
use wire::Progress;

use super::{Active, Connection, requests, tls};
use crate::cache::response::Fill;
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
    let mut request = match &refused {
        Some(_) => requests::take_request(connection, active, sent.len()),
        None => {
            let mut request = requests::blank(connection, active);
            let found = request.find_host(&mut active.host, &mut active.head, &mut active.known);
            request.take_head(&mut active.head);
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
    let framing = respond::finish_headers(&mut request, may_keep).await;
    let mut head = Vec::new();
    respond::write_head(&request, framing, &mut head);
    Some(Explained { request, framing, head })
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
