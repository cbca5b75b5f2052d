//! Error responses: `ErrorDocument` and the built-in pages.
//!
//! Source: `ap_die_r`, `ap_send_error_response` (modules/http).

mod page;
mod withheld;

pub(crate) use page::drops_connection;
pub use page::{
    EndsConnection, FILTERS_OF_FAILED, FailedAgain, FailedBody, FailedInFilter, FilterOfFailed,
    NoStatus, RefusedInChunks, SuppressCharset, ends_connection, make_page, signature,
};
pub use withheld::{ReportsFilters, fail_before_handler, fail_in_filter};

use std::borrow::Cow;

use conf::expr::Expr;
use wire::Method;

use crate::api::hooks::Phase;
use crate::config::core::{CoreDir, ErrorDocument};
use crate::log::Level;
use crate::phases::discard::{discard_after, limit_body, limit_of};
use crate::phases::expr;
use crate::phases::hostname;
use crate::phases::process;
use crate::phases::redirect;
use crate::request::body::Body;
use crate::request::request_body::BodyIn;
use crate::request::{LentSession, Proxied, Request};

/// Makes `request` a response with `status` in place of one that can't be sent. If that has a
/// status of its own, two errors have occurred, for which there is no document (`ap_die`).
pub async fn replace(request: &mut Request, status: u16) {
    match request.response.status {
        before if before != 200 && request.prev.is_none() => {
            recursive(request, status, before).await;
        }
        _ => die(request, status).await,
    }
}

/// Makes `request` a response with `status`: its error document, or the built-in page.
#[inline]
pub async fn die(request: &mut Request, status: u16) {
    let status = if wire::status::is_valid(status) { status } else { 500 };
    // A request may fail before the hook that looks its own name up.
    if hostname::needs_own(request) {
        hostname::look_up_own(request).await;
    }
    let before = request.response.status;
    // The status that a hook has set for a first request does not count (`ap_die_r`).
    if before != 200 && request.prev.is_some() {
        return match first_error(request) {
            // The error document failed as well: respond for the first request, with both errors.
            Some(first) => {
                // The second error ends the connection: the body need not be read.
                let ends = wire::status::drops_connection(status);
                let first = if ends { first } else { after_bodies(request, first).await };
                recursive(request, first, status).await;
            }
            // A hook had set a status, which the error replaces.
            None => recursive(request, status, before).await,
        };
    }
    let (status, document) = settled(request, status).await;
    match document {
        Document::Page => finish(request, None).await,
        Document::Url(url) => {
            request.response.status = 302;
            request.response.headers_out.set(b"Location", &url);
            finish(request, None).await;
        }
        Document::Local(path) => redirect(request, &path).await,
        Document::Invalid(text) => {
            let why = "Invalid error redirection directive";
            request.log_core(Level::Error, 1580, why, Some(&text));
            finish(request, Some(500)).await;
        }
    }
    // The document may have a status of its own, such as that of a rule of mod_rewrite.
    if wire::status::drops_connection(status) {
        request.keep(EndsConnection);
    }
}

/// The request for whose error, or for that of its document, this one is.
fn first_failed(request: &Request) -> Option<&Request> {
    let prevs = std::iter::successors(request.prev.as_deref(), |prev| prev.prev.as_deref());
    prevs.take_while(|prev| prev.response.status != 200).last()
}

/// The status of that request.
fn first_error(request: &Request) -> Option<u16> {
    first_failed(request).map(|first| first.response.status)
}

/// The status of the response with its document: a body that is too long turns the error into a
/// 413 with the built-in page. A document of this server reads the body itself.
async fn settled(request: &mut Request, status: u16) -> (u16, Document) {
    set_status(request, status);
    let found = document(request, status);
    if matches!(found, Document::Local(_)) {
        return (status, found);
    }
    let after = after_body(request, status).await;
    if after == status {
        return (status, found);
    }
    set_status(request, after);
    (after, Document::Page)
}

/// Sets the status of the response. Modules that authenticate users need not know about forward
/// proxies, whose 401 is a 407. The status line of a module that has ended the request with this
/// status (a proxy's `502 Proxy Error`) is kept, any other is dropped.
fn set_status(request: &mut Request, status: u16) {
    let is_forward = request.resource.proxied == Proxied::Forward;
    let status = if status == 401 && is_forward { 407 } else { status };
    request.response.status = status;
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(status).as_bytes();
    let line = request.response.status_line.take();
    request.response.status_line = line.filter(|line| line.starts_with(digits));
}

/// Whether the built-in page for `status` depends only on configuration, path and what is noted
/// ([`crate::request::variant_key::Inputs`]).
pub fn is_reusable(request: &Request, status: u16) -> bool {
    let document = error_document(&request.plan.core, status);
    is_reusable_status(status)
        && matches!(document, None | Some(ErrorDocument::Default))
        && request.response.status == 200
        && request.notes.iter().all(|(name, _)| NOTES_OF_MAPPING.contains(&name))
}

/// Notes about the location of the file, which no page shows.
const NOTES_OF_MAPPING: [&[u8]; 4] =
    [b"CONTEXT_DOCUMENT_ROOT", b"CONTEXT_PREFIX", b"DOCUMENT_ROOT", b"alias-forced-type"];

/// Whether an error response of this status may be cached: it does not end the connection.
pub const fn is_reusable_status(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308 | 403 | 404 | 410)
}

/// Reads the body, so that the connection can be kept. If the body is too long or malformed, the
/// response says that instead.
async fn after_body(request: &mut Request, status: u16) -> u16 {
    if !wire::status::drops_connection(status) && !request.body_in.is_empty() {
        limit_body(request);
    }
    discard_for(request, status).await
}

/// The same for a request whose error document failed: the limit of the body is that of the first
/// request, to which the filters are given back, unless some of the body was read.
async fn after_bodies(request: &mut Request, status: u16) -> u16 {
    if !request.body_in.has_begun() {
        let limit = first_failed(request).and_then(limit_of);
        request.body_in.set_limit(limit);
    }
    discard_for(request, status).await
}

/// Reads what is left of the body, and returns the status of the response.
async fn discard_for(request: &mut Request, status: u16) -> u16 {
    if wire::status::drops_connection(status) || request.body_in.is_empty() {
        return status;
    }
    // A client that waits for `100 Continue` sends nothing after an error; a rule may end a request
    // in the same way with a status that is none, such as 200.
    let is_error = !wire::status::is_success(status);
    if is_error && request.body_in.expects_continue() && !request.body_in.is_over_limit() {
        return status;
    }
    // A page that refuses the body instead passes none of the handler's filters.
    request.forget::<RefusedInChunks>();
    discard_after(request, status).await
}

/// The `ErrorDocument` of a status, evaluated for a request.
enum Document {
    /// A page that this server makes, or a text.
    Page,
    Local(Vec<u8>),
    Url(Vec<u8>),
    Invalid(Vec<u8>),
}

/// A text that a module has set for a status, which replaces both page and document of this
/// status.
///
/// Source: `ap_custom_response`
pub struct OwnText {
    /// The status.
    pub status: u16,
    /// The text.
    pub text: Vec<u8>,
}

fn own_text(request: &Request, status: u16) -> Option<Vec<u8>> {
    request.kept::<OwnText>().filter(|own| own.status == status).map(|own| own.text.clone())
}

/// What is configured for a status: for one that Apache does not know, what is for 500
/// (`ap_response_code_string`).
fn error_document(core: &CoreDir, status: u16) -> Option<&ErrorDocument> {
    let is_known = wire::status::known_line(status).is_some();
    core.error_documents.get(if is_known { &status } else { &500 })
}

fn document(request: &mut Request, status: u16) -> Document {
    if own_text(request, status).is_some() || request.kept::<FailedAgain>().is_some() {
        return Document::Page;
    }
    let core = request.plan.core.clone();
    let Some(ErrorDocument::Location(expr)) = error_document(&core, status) else {
        return Document::Page;
    };
    let Some(value) = evaluate(request, expr) else { return Document::Page };
    if value.first() == Some(&b'/') {
        Document::Local(value)
    } else if value.windows(3).any(|found| found == b"://") {
        Document::Url(value)
    } else {
        Document::Invalid(value)
    }
}

/// The text that replaces the built-in page of the response's status. That status need not be the
/// one for which a document was sought: a forward proxy's 401 has become a 407.
fn text(request: &mut Request) -> Option<Vec<u8>> {
    if let Some(text) = own_text(request, request.response.status) {
        page::set_media_type(request);
        return Some(text);
    }
    let core = request.plan.core.clone();
    match error_document(&core, request.response.status) {
        Some(ErrorDocument::Text(expr)) => {
            // It may name the type of its page, which HTTP/0.9 does not have.
            if !request.head.simple {
                page::set_media_type(request);
            }
            evaluate(request, expr)
        }
        _ => None,
    }
}

fn evaluate(request: &mut Request, expr: &Expr) -> Option<Vec<u8>> {
    let value = expr::string(expr, request);
    let log = |why| {
        let why = format!("core: ErrorDocument: can't evaluate require expression: {why}");
        request.log_core(Level::Error, 2841, &why, None);
    };
    value.map_err(log).ok()
}

/// Responds with another path of this server, as a GET for any method.
async fn redirect(request: &mut Request, path: &[u8]) {
    request.response.no_local_copy = true;
    let own = OwnMethod(request.head.method, request.head.method_name.clone());
    request.env.set(b"REQUEST_METHOD", &own.1);
    request.keep(own);
    if let Some(notes) = request.notes.get(b"error-notes").map(<[u8]>::to_vec) {
        request.env.set(b"ERROR_NOTES", &notes);
    }
    request.head.method = Method::GET;
    request.head.method_name = Cow::Borrowed(b"GET");
    if request.body_in.expects_continue() && !request.body_in.is_over_limit() {
        // The document's handler must not read the body, which the error has made useless.
        request.body_in = BodyIn::default();
    }
    let verdict = redirect::internal_redirect(request, path).await;
    if let crate::api::hooks::Verdict::Status(status) = verdict {
        let first = request.response.status;
        recursive(request, first, status).await;
    }
}

/// The method of a request whose error document is requested by GET.
#[derive(Clone)]
struct OwnMethod(Method, Cow<'static, [u8]>);

/// Restores the methods that the request and those before it had before their errors: for the log,
/// once the response has been sent.
pub fn restore_methods(request: &mut Request) {
    let mut next = Some(request);
    while let Some(request) = next {
        if let Some(OwnMethod(method, name)) = request.kept::<OwnMethod>().cloned() {
            (request.head.method, request.head.method_name) = (method, name);
        }
        next = request.prev.as_deref_mut();
    }
}

/// Marks a request whose error fields are no longer those of the request that it was redirected
/// from.
pub(crate) struct OwnFields;

impl Request {
    /// Gives the request error fields of its own (`apr_table_overlay`).
    pub fn fork_error_fields(&mut self) {
        if self.kept::<OwnFields>().is_none()
            && let Some(prev) = &mut self.prev
        {
            prev.response.err_headers_out = self.response.err_headers_out.clone();
            self.keep(OwnFields);
        }
    }

    /// Makes this the last request to its error document, which failed as well, as it was before
    /// it failed; until [`Request::leave_failed`]. Returns whether there is one.
    pub fn enter_failed(&mut self) -> bool {
        let Some(mut other) = self.failed.take() else { return false };
        std::mem::swap(self, &mut other);
        self.prev = Some(other);
        self.swap_error_fields();
        true
    }

    /// Makes this the request that sends the error response again.
    pub fn leave_failed(&mut self) {
        self.swap_error_fields();
        let Some(mut other) = self.prev.take() else { return };
        std::mem::swap(self, &mut other);
        self.failed = Some(other);
    }

    /// Exchanges the error fields with those that the page for the error before has of both.
    fn swap_error_fields(&mut self) {
        if self.kept::<OwnFields>().is_none()
            && let Some(prev) = &mut self.prev
        {
            std::mem::swap(&mut self.response.err_headers_out, &mut prev.response.headers_out);
        }
    }
}

async fn recursive(request: &mut Request, first: u16, second: u16) {
    while let Some(prev) = request.prev.take() {
        if prev.response.status == 200 {
            request.prev = Some(prev);
            break;
        }
        // Both are error responses to one request: fields of the document's failure, such as a
        // challenge, also belong to the first.
        let fields = std::mem::take(&mut request.response.err_headers_out);
        let mut failed = std::mem::replace(request, *prev);
        if failed.kept::<OwnFields>().is_none() {
            request.response.err_headers_out = fields;
        }
        // A session that was loaded for the document may be that of all requests.
        if request.kept::<LentSession>().is_none()
            && let Some(lent) = failed.kept::<LentSession>().filter(|lent| lent.is_of_redirects)
        {
            request.keep(lent.clone());
        }
        if failed.kept::<FailedInFilter>().is_some() {
            request.keep(FailedInFilter);
        }
        // The document's failure is part of the response, and what it depends on as well.
        request.depends.trace = failed.depends.trace.take();
        request.depends.pure = false;
        request.failed = failed.failed.take().or_else(|| {
            failed.response.body = Body::Empty;
            failed.response.filters.clear();
            failed.response.status = second;
            Some(Box::new(failed))
        });
    }
    set_status(request, first);
    if [first, second].into_iter().any(wire::status::drops_connection) {
        request.keep(EndsConnection);
    }
    finish(request, Some(second)).await;
}

/// Sets headers and body of an error response (`ap_send_error_response`).
async fn finish(request: &mut Request, second: Option<u16>) {
    request.response.filters.clear();
    request.response.body = Body::Empty;
    process::run_all(request, Phase::InsertErrorFilter).await;
    if request.failed.is_some() {
        page::add_filters_of_failed(request);
    }
    if wire::status::is_header_only(request.response.status) {
        return;
    }
    let text = text(request);
    if text.is_none() && !request.head.header_only {
        page::add_reason(&mut request.response);
    }
    make_page(request, request.response.status, second);
    if let (Some(text), false) = (text, request.head.header_only) {
        request.response.body = Body::from(text);
    }
}
