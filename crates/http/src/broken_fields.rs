//! Fields that may not be sent: a response that has one becomes an error.
//!
//! Source: `check_headers`, `ap_http_header_filter`

use server::errorlog::Verbatim;
use server::errors::EndsConnection;
use server::filter;
use server::hooks::Phase;
use server::log::Level;
use server::request::Request;
use wire::chars::{is_field_value, is_token_string};
use wire::request::ends_chunked;

use crate::respond::{Length, frame, prepare};

/// Makes a response with an invalid field a 500 that closes the connection (`check_headers`), or
/// its error document; returns how that is delimited.
pub(crate) async fn replace_broken(request: &mut Request, field: &BrokenField) -> Length {
    field.log(request);
    clear_head(request);
    let was_redirected = request.prev.is_some();
    server::errors::replace(request, 500).await;
    let has_document = request.prev.is_some() && !was_redirected;
    filter::apply_all(request).await;
    request.keep(EndsConnection);
    prepare(request);
    if broken_field(request).is_none() {
        return if has_document { frame(request) } else { Length::UntilClose };
    }
    // The error's own fields are invalid, or those of its document.
    clear_head(request);
    request.response.status_line = None;
    server::errors::make_page(request, 500, None);
    add_error_fields(request);
    if broken_field(request).is_some() {
        // Among them the media type, which is no field of the table.
        clear_head(request);
        request.response.content_type = None;
    }
    Length::UntilClose
}

fn clear_head(request: &mut Request) {
    let response = &mut request.response;
    response.headers_out.clear();
    response.err_headers_out.clear();
    response.content_encoding = None;
    response.content_languages.clear();
    response.chunked = false;
}

/// Adds the fields of `Header always` to an error response; a hook that would wait is skipped.
fn add_error_fields(request: &mut Request) {
    let plan = request.plan.clone();
    for planned in plan.phase(Phase::InsertErrorFilter) {
        let _ = planned.hook.run(request);
    }
    for mut attached in std::mem::take(&mut request.response.filters) {
        let _ = attached.filter.prepare(request);
        let body = std::mem::take(&mut request.response.body);
        request.response.body = attached.filter.apply(request, body);
    }
    let mut all = std::mem::take(&mut request.response.err_headers_out);
    all.extend(&request.response.headers_out);
    request.response.headers_out = all;
}

/// Why a field may not be sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BrokenField {
    /// It has no name.
    NoName,
    /// Its name is none.
    Name(Vec<u8>),
    /// The name, and the value that has a byte which is not allowed.
    Value(Vec<u8>, Vec<u8>),
    /// It is a transfer coding that does not end with chunks.
    Coding,
}

impl BrokenField {
    fn log(&self, request: &Request) {
        let (number, text) = match self {
            BrokenField::NoName => (2428, "Empty response header name".to_owned()),
            BrokenField::Name(name) => {
                let name = Verbatim::new(name);
                (2429, format!("Response header name '{name}' contains invalid characters"))
            }
            BrokenField::Value(name, value) => {
                let (name, value) = (Verbatim::new(name), Verbatim::new(value));
                let text = format!(
                    "Response header '{name}' value of '{value}' contains invalid characters"
                );
                (2430, text)
            }
            // Apache says nothing of it.
            BrokenField::Coding => return,
        };
        let text = format_args!("{text}, aborting request");
        request.log_as("http_core.c", Level::Error, number, text);
    }
}

/// The first field that may not be sent.
pub(crate) fn broken_field(request: &Request) -> Option<BrokenField> {
    let is_bad = |text: &[u8]| !is_field_value(text);
    let response = &request.response;
    for (name, value) in response.headers_out.iter() {
        if !is_token_string(name) && !is_taken_as_name(request, name) {
            return Some(match name.is_empty() {
                true => BrokenField::NoName,
                false => BrokenField::Name(name.to_vec()),
            });
        }
        if is_bad(value) {
            return Some(BrokenField::Value(name.to_vec(), value.to_vec()));
        }
    }
    let codings = response.headers_out.get(b"Transfer-Encoding");
    // HTTP/2 has none.
    if request.head.protocol < 2000 && codings.is_some_and(|codings| !ends_chunked(codings)) {
        return Some(BrokenField::Coding);
    }
    let of_content = |name: &[u8], value: &[u8]| {
        is_bad(value).then(|| BrokenField::Value(name.to_vec(), value.to_vec()))
    };
    let (media_type, coding) = (&response.content_type, &response.content_encoding);
    let languages = || response.content_languages.iter();
    None.or_else(|| of_content(b"Content-Type", media_type.as_deref()?))
        .or_else(|| of_content(b"Content-Encoding", coding.as_deref()?))
        .or_else(|| languages().find_map(|text| of_content(b"Content-Language", text)))
}

/// Whether a name that is no token may be sent: under `HttpProtocolOptions Unsafe`, if no client
/// takes it for the end of a field or of a name.
#[cold]
fn is_taken_as_name(request: &Request, name: &[u8]) -> bool {
    let is_visible = |byte: &u8| (b'!'..=b'~').contains(byte) && *byte != b':';
    !request.connection.base_host.core.strict_protocol()
        && !name.is_empty()
        && name.iter().all(is_visible)
}
