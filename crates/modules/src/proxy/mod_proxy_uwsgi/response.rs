//! The head of a uwsgi server's response. Source: `uwsgi_response`.

use server::errorlog::Verbatim;
use server::errors::EndsConnection;
use server::log::Level;
use server::request::Request;
use wire::response::{
    Dialect, Fault, FieldName, ResponseHead, ResponseParser, ResponseProgress, ResponseRules,
};

use super::ProxyUwsgi;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::single::Single;
use crate::proxy::mod_proxy_http::status_line;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;

/// Fields that end at this hop. What `Connection` names does not.
const OF_CONNECTION: [&[u8]; 8] = [
    b"Connection",
    b"Keep-Alive",
    b"Proxy-Authenticate",
    b"Proxy-Authorization",
    b"TE",
    b"Trailer",
    b"Transfer-Encoding",
    b"Upgrade",
];

/// Reads the head into the request's response; returns what has been received of the body.
///
/// # Errors
/// The status of the response.
pub(super) async fn read_head(
    exchange: &mut Exchange<'_>,
    single: &mut Single,
) -> Result<Vec<u8>, u16> {
    let timeout = exchange.timeout();
    let rules = ResponseRules { dialect: Dialect::Uwsgi, ..ResponseRules::default() };
    let (mut parser, mut head) = (ResponseParser::default(), ResponseHead::new());
    let mut received = Vec::new();
    loop {
        received.reserve(READ_BYTES);
        let stream = &mut single.backend.stream;
        let deadline = stream.handle().deadline(timeout);
        // To be silent is as to close.
        let count = stream.read(&mut received, deadline).await.unwrap_or(0);
        let fault = match parser.parse(&mut head, &received, &rules) {
            ResponseProgress::Done { consumed } => {
                count_status_line(exchange, &received);
                take(exchange.request, &head, &received)?;
                received.drain(..consumed);
                return Ok(received);
            }
            ResponseProgress::Refused(fault) => *fault,
            _ if count == 0 => parser.end_of_input(Dialect::Uwsgi),
            _ => continue,
        };
        return Err(refused(exchange.request, &fault));
    }
}

fn count_status_line(exchange: &Exchange<'_>, received: &[u8]) {
    if exchange.worker.is_member {
        let line = received.split(|byte| *byte == b'\n').next().unwrap_or_default();
        exchange.worker.state.count_read(line.trim_ascii_end().len() as u64);
    }
}

/// Logs why a head can't be used; returns the status of the response.
fn refused(request: &Request, fault: &Fault) -> u16 {
    let (uri, method) =
        (Verbatim::new(&request.resource.uri), Verbatim::new(&request.head.method_name));
    let text = format_args!("{fault} returned by {uri} ({method})");
    request.log::<ProxyUwsgi>(Level::Error, fault.log_number(), text);
    fault.status()
}

/// Puts a head into the response.
fn take(request: &mut Request, head: &ResponseHead, received: &[u8]) -> Result<(), u16> {
    if let Err(fault) = head.check(received) {
        // `uwsgi_response` refuses what isn't a field, silently; an empty name shows when the head
        // is sent.
        if fault != Fault::EmptyName {
            return Err(502);
        }
        request.log_core(Level::Error, fault.log_number(), &fault.to_string(), None);
        request.keep(EndsConnection);
        return Err(fault.status());
    }
    let response = &mut request.response;
    response.status = head.status;
    response.status_line = status_line(head, received);
    head.fill(received, &mut response.headers_out);
    for name in OF_CONNECTION {
        response.headers_out.unset(name);
    }
    if head.has(FieldName::ContentType) {
        response.content_type = response.headers_out.get(b"Content-Type").map(<[u8]>::to_vec);
    }
    Ok(())
}
