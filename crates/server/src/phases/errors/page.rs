//! The pages that are built in: our words, Apache's fields.

use bytes::Bytes;

use crate::core::dir_config::Signature;
use crate::core::methods;
use crate::request::Request;
use crate::request::body::Body;

/// Makes the request's answer the built-in page of `status`. `second` is the status that the error
/// document came to, if that failed as well.
pub fn make_page(request: &mut Request, status: u16, second: Option<u16>) {
    request.status = status;
    let location = request.headers_out.get(b"Location");
    let location = location.or_else(|| request.err_headers_out.get(b"Location"));
    let location = location.map(<[u8]>::to_vec).unwrap_or_default();
    // What the handler said of its own answer does not hold for this one.
    std::mem::swap(&mut request.headers_out, &mut request.err_headers_out);
    request.err_headers_out.clear();
    if (wire::status::is_redirect(status) || status == 201) && !location.is_empty() {
        request.headers_out.set(b"Location", &location);
    }
    request.content_languages.clear();
    request.content_encoding = None;
    let plain = request.env.contains(b"suppress-error-charset");
    let media_type: &[u8] = if plain { b"text/html" } else { b"text/html; charset=iso-8859-1" };
    request.content_type = Some(media_type.to_vec());
    if plain {
        request.keep(SuppressCharset);
    }
    request.chunked |= request.kept::<FailedInFilter>().is_some();
    if matches!(status, 405 | 501) {
        let allow = methods::allow(request);
        request.headers_out.set(b"Allow", &allow);
    }
    request.body = if request.header_only {
        Body::Empty
    } else {
        Body::Bytes(Bytes::from(text(request, status, second, &location)))
    };
}

/// Marks a request that failed in a filter, since its body could not be read or no range lies in
/// its response: Apache finds that out below its handlers, and the page has no `Content-Length`.
pub struct FailedInFilter;

/// Kept on a request after whose response the connection ends, whatever its status is: its error
/// document failed with a status that ends it, or an expectation of the client was not met.
pub struct EndsConnection;

/// Whether the connection ends after the response for a reason that is known before its fields are.
#[inline]
pub fn ends_connection(request: &Request) -> bool {
    wire::status::drops_connection(request.status) || request.kept::<EndsConnection>().is_some()
}

/// Marks an answer that gets no charset (`suppress-error-charset`).
pub(crate) struct SuppressCharset;

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

/// A line that a module set counts if it begins with the status.
fn status_line(request: &Request, status: u16) -> Vec<u8> {
    let own = request.status_line.as_deref();
    let digits = status.to_string();
    match own.filter(|line| line.starts_with(digits.as_bytes()) && line.len() > 4) {
        Some(line) => escape(line),
        None => wire::status::line(status).as_bytes().to_vec(),
    }
}

/// What happened, for the reader of the page.
fn explain(request: &Request, status: u16, location: &[u8]) -> Vec<u8> {
    let method = escape(&request.method_name);
    let link = |before: &str| {
        let target = escape(location);
        [before.as_bytes(), b" <a href=\"", &target, b"\">here</a>."].concat()
    };
    // Modules make the notes, as HTML.
    let notes = request.notes.get(b"error-notes").unwrap_or_default();
    let variants = request.notes.get(b"variant-list").unwrap_or_default();
    let noted = |sentence: &str| {
        let separator: &[u8] = if notes.is_empty() { b"" } else { b"<br>\n" };
        [sentence.as_bytes(), separator, notes].concat()
    };
    match status {
        301 | 302 | 307 | 308 => link("What you are looking for is"),
        303 => link("The answer to your request is"),
        305 => link("This has to be asked for through the proxy that is"),
        400 => noted("The server could not understand what the browser sent."),
        401 => b"The server could not verify that you may have this. Either the name or password \
                 is wrong, or the browser can't send them in the way that is asked for."
            .to_vec(),
        403 => b"You are not allowed to have this.".to_vec(),
        404 => b"There is nothing at this address.".to_vec(),
        405 => [b"The method ", &method[..], b" is not allowed here."].concat(),
        300 => notes_or(variants, "There is more than one version of this."),
        406 => notes_or(variants, "There is no version of this that the browser would accept."),
        407 => b"The proxy could not verify that you may have this.".to_vec(),
        408 => b"The request did not arrive in time.".to_vec(),
        409 => b"The request is in conflict with the present state of what it is about.".to_vec(),
        410 => b"This was here once, and has been taken away for good.".to_vec(),
        411 => noted("A request of this method must say how long its body is."),
        412 => b"A condition that came with the request does not hold.".to_vec(),
        413 => noted("The request is larger than this server takes."),
        414 => noted("The address is longer than this server takes."),
        415 => b"The server does not take content of this type here.".to_vec(),
        416 => b"None of the ranges that were asked for lies within this file.".to_vec(),
        417 => noted("The server can't do what the request expects of it."),
        421 => b"This connection is not one that the named host is served on.".to_vec(),
        422 => b"The request was understood, and can't be carried out as it stands.".to_vec(),
        423 => b"This is locked at present.".to_vec(),
        424 => b"Another request that this one depends on has failed.".to_vec(),
        426 => noted("This needs another protocol, which the Upgrade field names."),
        428 => b"This may be changed only by a request with a condition.".to_vec(),
        429 => b"Too many requests have come from you in a short time.".to_vec(),
        431 => noted("The header fields are larger than this server takes."),
        451 => b"This may not be shown, for legal reasons.".to_vec(),
        501 => [&method[..], b" is not a method that this server knows."].concat(),
        502 => noted("A server behind this one gave an answer that makes no sense."),
        503 => b"The server can't answer this now. Please try again later.".to_vec(),
        504 => b"A server behind this one did not answer in time.".to_vec(),
        506 => b"The choice between versions of this leads in a circle.".to_vec(),
        507 => b"There is no room left for this.".to_vec(),
        508 => b"The request goes in a circle.".to_vec(),
        510 => b"An extension that the server does not have is needed.".to_vec(),
        511 => b"The network asks for a login first.".to_vec(),
        _ => internal(request, notes),
    }
}

fn notes_or(notes: &[u8], sentence: &str) -> Vec<u8> {
    [sentence.as_bytes(), notes].concat()
}

fn internal(request: &Request, notes: &[u8]) -> Vec<u8> {
    if request.status >= 300 && request.status < 400 {
        return b"There is more than one version of this.".to_vec();
    }
    let admin = request.host.core.server_admin.get().map(|admin| escape(admin));
    let admin = admin.unwrap_or_else(|| b"the administrator".to_vec());
    let separator: &[u8] = if notes.is_empty() { b"" } else { b"<br>\n" };
    [
        b"Something went wrong in the server. If it goes on, please tell ",
        &admin[..],
        b"; the error log has more.",
        separator,
        notes,
    ]
    .concat()
}

/// The last line of pages that the server makes, behind `prefix`; empty under
/// `ServerSignature Off` (`ap_psignature`).
pub fn signature(request: &Request, prefix: &[u8]) -> Vec<u8> {
    let mode = request.plan.core.server_signature.or(Signature::Off);
    if mode == Signature::Off {
        return Vec::new();
    }
    let name = escape(request.server_name());
    let admin = request.host.core.server_admin.get();
    let shown = match (mode, admin) {
        (Signature::Email, Some(admin)) => {
            let is_url = admin.windows(3).any(|found| found == b"://");
            let scheme: &[u8] = if is_url { b"" } else { b"mailto:" };
            [b"<a href=\"", scheme, &escape(admin), b"\">", &name, b"</a>"].concat()
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

/// Text as HTML shows it.
fn escape(text: &[u8]) -> Vec<u8> {
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
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn markup_of_clients_is_text() {
        assert_eq!(escape(b"<a b=\"&\">"), b"&lt;a b=&quot;&amp;&quot;&gt;");
    }
}
