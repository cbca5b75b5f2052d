//! The built-in error pages: our own text, Apache's fields.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;

use crate::config::core::Signature;
use crate::request::body::Body;
use crate::request::{Request, Response};

/// Makes the response the built-in page of `status`. `second` is the status of the error document,
/// if that failed as well.
pub fn make_page(request: &mut Request, status: u16, second: Option<u16>) {
    request.response.status = status;
    let location = request.response.headers_out.get(b"Location");
    let location = location.or_else(|| request.response.err_headers_out.get(b"Location"));
    let location = location.map(<[u8]>::to_vec).unwrap_or_default();
    // The handler's fields do not apply to this response.
    std::mem::swap(&mut request.response.headers_out, &mut request.response.err_headers_out);
    request.response.err_headers_out.clear();
    request.sends_shared_fields();
    if (wire::status::is_redirect(status) || status == 201) && !location.is_empty() {
        request.response.headers_out.set(b"Location", &location);
    }
    request.response.content_languages.clear();
    request.response.content_encoding = None;
    set_media_type(request);
    request.response.chunked |= request.kept::<FailedInFilter>().is_some();
    if matches!(status, 405 | 501) {
        let allow = request.allow();
        request.response.headers_out.set(b"Allow", &allow);
    }
    request.response.body = if request.head.header_only {
        Body::Empty
    } else {
        Body::Bytes(Bytes::from(text(request, status, second, &location)))
    };
}

/// Sets the media type of error pages.
pub(super) fn set_media_type(request: &mut Request) {
    let plain = request.env.contains(b"suppress-error-charset");
    let media_type: &[u8] = if plain { b"text/html" } else { b"text/html; charset=iso-8859-1" };
    request.response.content_type = Some(media_type.to_vec());
    if plain {
        request.keep(SuppressCharset);
    }
}

/// Marks a request that failed in a filter, because its body could not be read or no range lies in
/// its response: Apache finds this after its handlers, and the page has no `Content-Length`.
pub struct FailedInFilter;

/// Marks a request whose body could not be read to its end. In Apache, the output filters have then
/// seen the failure before the page of the error: the fields that they set are lost.
pub struct FailedBody;

/// Marks a request whose body, if it is refused, is refused by a page in chunks.
pub struct RefusedInChunks;

/// Marks a request whose response had a status other than 200 before its fields were found to be
/// broken: Apache takes that for an error of an error, whose page may have a text but no document.
pub struct FailedAgain;

/// The group of providers that add filters to the response to an error whose document has failed as
/// well, which has been a request with a configuration of its own.
pub const FILTERS_OF_FAILED: &str = "filters of failed documents";

/// A provider of that group.
pub struct FilterOfFailed(pub fn(&mut Request));

/// Adds these filters.
#[cold]
pub(super) fn add_filters_of_failed(request: &mut Request) {
    let engine = request.engine.clone();
    for (_, add) in engine.server.registry.hooks.providers(FILTERS_OF_FAILED) {
        let add: Arc<FilterOfFailed> = add;
        (add.0)(request);
    }
}

/// Marks a request after which the connection ends, regardless of the response's status and
/// framing: an error has a status that closes it, or an expectation of the client was not met.
pub struct EndsConnection;

/// Marks a response whose status is the one that is sent in place of a number that is none: the
/// connection does not end because of it.
pub struct NoStatus;

/// Whether the connection ends after the response for a reason known before its fields are.
#[inline]
pub fn ends_connection(request: &Request) -> bool {
    drops_connection(request) || request.kept::<EndsConnection>().is_some()
}

/// Whether the status ends the connection.
#[inline]
pub(crate) fn drops_connection(request: &Request) -> bool {
    wire::status::drops_connection(request.response.status) && request.kept::<NoStatus>().is_none()
}

/// Marks a response that gets no charset (`suppress-error-charset`).
pub struct SuppressCharset;

fn text(request: &Request, status: u16, second: Option<u16>, location: &[u8]) -> Vec<u8> {
    let line = status_line(request, status);
    let heading = line.get(4..).unwrap_or_default();
    let mut out = Vec::with_capacity(512);
    let mut put = |part: &[u8]| out.extend_from_slice(part);
    put(b"<!DOCTYPE html>\n<html lang=\"en\"><head>\n<title>");
    put(&line);
    put(b"</title>\n</head><body>\n<h1>");
    put(heading);
    put(b"</h1>\n<p>");
    put(&explain(request, status, location));
    put(b"</p>\n");
    if let Some(second) = second {
        let line = wire::status::line(second);
        let also = format!(
            "<p>Additionally, a {line} error was encountered while using the error document.</p>\n"
        );
        put(also.as_bytes());
    }
    put(&signature(request, b"<hr>\n"));
    put(b"</body></html>\n");
    out
}

/// Completes a module's status line that ends after the digits: if the page is sent.
pub(super) fn add_reason(response: &mut Response) {
    const DIGITS: usize = 3;
    if let Some(line) = &mut response.status_line
        && line.len() <= DIGITS + 1
    {
        line.truncate(DIGITS);
        line.extend_from_slice(b" Unknown Reason");
    }
}

/// The status line of a page: a module's, if its reason begins with a letter or digit.
fn status_line(request: &Request, status: u16) -> Cow<'_, [u8]> {
    let own = request.response.status_line.as_deref();
    match own.filter(|line| line.get(4).is_some_and(u8::is_ascii_alphanumeric)) {
        Some(line) => escape(line),
        None => wire::status::line(status).as_bytes().into(),
    }
}

/// The explanation on the page.
fn explain<'r>(request: &'r Request, status: u16, location: &[u8]) -> Cow<'r, [u8]> {
    let method = || escape(&request.head.method_name);
    let link = |before| link(before, location).into();
    // Modules provide the notes as HTML.
    let notes = request.notes.get(b"error-notes").unwrap_or_default();
    let variants = request.notes.get(b"variant-list").unwrap_or_default();
    let noted = |sentence: &'static str| -> Cow<'r, [u8]> {
        match notes {
            [] => sentence.as_bytes().into(),
            notes => [sentence.as_bytes(), b"<br>\n", notes].concat().into(),
        }
    };
    // A proxy's page says nothing else.
    if request.notes.get(b"verbose-error-to") == Some(b"*") {
        return notes.into();
    }
    match status {
        301 | 302 | 307 | 308 => link("The requested document is"),
        303 => link("The response to your request is"),
        305 => link("This resource must be requested through the proxy"),
        400 => noted("The server could not understand the request."),
        401 => b"The server could not verify that you are authorized to access this document. \
            Either the user name or the password is wrong, or the browser does not support the \
            required authentication."
            .into(),
        403 => b"You are not allowed to access this resource.".into(),
        404 => b"There is no document at this address.".into(),
        405 => [b"The method ", &*method(), b" is not allowed here."].concat().into(),
        300 => notes_or(variants, "Several representations of this resource are available."),
        406 => notes_or(
            variants,
            "No representation of this resource is acceptable to the \
            browser.",
        ),
        407 => {
            b"The proxy could not verify that you are authorized to access this document.".into()
        }
        408 => b"The request did not arrive in time.".into(),
        409 => b"The request conflicts with the present state of the resource.".into(),
        410 => b"This resource has been removed permanently.".into(),
        411 => noted("A request with this method must state the length of its body."),
        412 => b"A condition of the request does not hold.".into(),
        413 => noted("The request body is larger than this server allows."),
        414 => noted("The URL is longer than this server allows."),
        415 => b"This server does not accept content of this type here.".into(),
        416 => b"None of the requested ranges lies within this file.".into(),
        417 => noted("The server cannot meet the expectation of the request."),
        421 => b"The requested host is not served on this connection.".into(),
        422 => b"The request was understood but could not be processed.".into(),
        423 => b"This resource is locked.".into(),
        424 => b"A request that this one depends on has failed.".into(),
        426 => noted("This resource requires another protocol, which the Upgrade field names."),
        428 => b"This resource may be changed only by a conditional request.".into(),
        429 => b"You have sent too many requests in a short time.".into(),
        431 => noted("The header fields are larger than this server allows."),
        451 => b"This resource is not available for legal reasons.".into(),
        501 => [&*method(), b" is not a method that this server supports."].concat().into(),
        502 => noted("The server received an invalid response from an upstream server."),
        503 => b"The server is temporarily unable to respond. Please try again later.".into(),
        504 => b"An upstream server did not respond in time.".into(),
        506 => b"The negotiation between representations is circular.".into(),
        507 => b"There is not enough storage for this request.".into(),
        508 => b"The request leads to a loop.".into(),
        510 => b"The server does not support a required extension.".into(),
        511 => b"The network requires a login.".into(),
        _ => internal(request, notes),
    }
}

fn link(before: &str, location: &[u8]) -> Vec<u8> {
    [before.as_bytes(), b" <a href=\"", &escape(location), b"\">here</a>."].concat()
}

fn notes_or(notes: &[u8], sentence: &str) -> Cow<'static, [u8]> {
    [sentence.as_bytes(), notes].concat().into()
}

fn internal(request: &Request, notes: &[u8]) -> Cow<'static, [u8]> {
    if request.response.status >= 300 && request.response.status < 400 {
        return b"Several representations of this resource are available.".into();
    }
    let admin = request.host.core.server_admin.get().map(|admin| escape(admin));
    let admin = admin.unwrap_or(b"the administrator".into());
    let separator: &[u8] = if notes.is_empty() { b"" } else { b"<br>\n" };
    [
        b"The server encountered an internal error. If it persists, please contact ",
        &admin[..],
        b". The error log has more information.",
        separator,
        notes,
    ]
    .concat()
    .into()
}

/// The address of an administrator that none is configured for.
const NO_ADMIN: &[u8] = b"[no address given]";

/// The last line of generated pages, after `prefix`; empty with `ServerSignature Off`
/// (`ap_psignature`).
pub fn signature(request: &Request, prefix: &[u8]) -> Vec<u8> {
    let mode = request.plan.core.server_signature.or(Signature::Off);
    if mode == Signature::Off {
        return Vec::new();
    }
    let name = escape(request.server_name());
    let admin = request.host.core.server_admin.get();
    let shown = match mode {
        Signature::Email => {
            let admin = admin.map_or(NO_ADMIN, Vec::as_slice);
            let is_url = admin.windows(3).any(|found| found == b"://");
            let scheme: &[u8] = if is_url { b"" } else { b"mailto:" };
            [b"<a href=\"", scheme, &escape(admin), b"\">", &name, b"</a>"].concat().into()
        }
        _ => name,
    };
    let banner = request.engine.server.banner.as_bytes();
    let port = request.server_port().to_string();
    [prefix, b"<address>", banner, b" Server at ", &shown, b" Port ", port.as_bytes()]
        .concat()
        .into_iter()
        .chain(*b"</address>\n")
        .collect()
}

/// Escapes text for HTML.
fn escape(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.iter().any(|byte| matches!(byte, b'<' | b'>' | b'&' | b'"')) {
        return text.into();
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'&' => out.extend_from_slice(b"&amp;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            other => out.push(*other),
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_of_clients_is_text() {
        assert_eq!(*escape(b"<a b=\"&\">"), *b"&lt;a b=&quot;&amp;&quot;&gt;");
        assert_eq!(*escape(b"plain"), *b"plain");
    }
}
