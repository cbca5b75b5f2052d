//! The body of a response, behind the head that has been read.

use bytes::Bytes;
use server::body::Body;
use server::request::Request;
use wire::response::{Framing, ResponseBody, ResponseHead};

use crate::proxy::mod_proxy::relay::{Announced, Relay, Source};

/// Sets the body behind the `consumed` bytes of the head: nothing, what has been received, or a
/// relay of the rest.
///
/// # Errors
/// 502 if what has been received is broken from its first byte: the client has no head yet.
pub(super) fn set(
    request: &mut Request,
    (head, input, consumed): (&ResponseHead, &[u8], usize),
    source: Source,
    framing: Framing,
) -> Result<(), u16> {
    let length = match framing {
        Framing::Length(length) => Some(length),
        _ => None,
    };
    let received = input.get(consumed..).unwrap_or_default();
    if length == Some(received.len() as u64) && head.preread(input).is_empty() {
        if let Some(state) = &source.counts {
            state.count_read(received.len() as u64);
        }
        source.end();
        request.response.chunked = false;
        request.response.body = match received.is_empty() {
            true => Body::Empty,
            false => Body::Bytes(Bytes::copy_from_slice(received)),
        };
        return Ok(());
    }
    let core = &request.host.core;
    let mut body = ResponseBody::new(core.head_limits(), core.strict_protocol());
    body.start(framing);
    let mut rest = head.preread(input).to_vec();
    rest.extend_from_slice(received);
    let about = (request.engine.clone(), request.connection.clone());
    let announced = announced(request, framing);
    let mut relay = Relay::new(source, length, body, rest, about);
    let whole = relay.take_whole();
    let response = &mut request.response;
    if relay.is_broken() {
        response.status_line = None;
        return Err(502);
    }
    // An empty body whose end has been received has a length.
    let is_empty = whole.as_ref().is_some_and(Bytes::is_empty);
    response.chunked = matches!(framing, Framing::Chunked | Framing::UntilClose) && !is_empty;
    response.late_trailers = (framing == Framing::Chunked).then(|| relay.trailers().clone());
    response.body = match (whole, announced) {
        (Some(_), Some(length)) => Body::Stream(Box::pin(Announced(length))),
        (Some(whole), None) if whole.is_empty() => Body::Empty,
        (Some(whole), None) => Body::Bytes(whole),
        (None, _) => relay.into_stream(),
    };
    Ok(())
}

/// The length that the head of a response to HEAD tells.
fn announced(request: &Request, framing: Framing) -> Option<u64> {
    let value = request.response.headers_out.get(b"Content-Length")?;
    (framing == Framing::None).then(|| wire::chars::decimal(value)).flatten()
}
