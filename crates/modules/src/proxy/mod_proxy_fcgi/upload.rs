//! What of the request's body is read before there is a connection.

use server::request::Request;

use crate::proxy::mod_proxy::outgoing::{Framing, Outgoing, Wishes};

/// Reads the beginning of the body. The program receives the length of one that the client sends in
/// chunks, if that is known by then: many read nothing otherwise. With `proxy-sendcl` it always is.
pub(super) async fn prefetch(request: &mut Request) -> Result<Outgoing, u16> {
    let wishes = Wishes::of_variables(request);
    let outgoing = Outgoing::prefetch(request, wishes).await?;
    let fields = &mut request.head.headers_in;
    if let Framing::Length(length) = outgoing.framing()
        && fields.unset(b"Transfer-Encoding")
    {
        let mut digits = itoa::Buffer::new();
        fields.set(b"Content-Length", digits.format(length).as_bytes());
    }
    Ok(outgoing)
}

/// Corrects `CONTENT_LENGTH`: the body that a field of the request announces has been read already
/// if this is an error document.
pub(super) fn tell_length(request: &mut Request, outgoing: &Outgoing) {
    const NAME: &[u8] = b"CONTENT_LENGTH";
    let is_gone = request.body_in.is_empty() && outgoing.framing() == Framing::Length(0);
    if is_gone && request.env.get(NAME).is_some_and(|told| told != b"0") {
        request.env.set(NAME, b"0");
    }
}
