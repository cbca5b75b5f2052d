//! Discards a request body that the handler does not use.

use crate::api::hooks::{Step, Verdict};
use crate::phases::errors;
use crate::request::request_body::BodyError;
use crate::request::{Proxied, Request};

/// Reads and discards the request body (`ap_discard_request_body`). If what has come of it is
/// wrong, Apache has already merged the fields of the response: the error has none of them.
pub async fn discard_body(request: &mut Request) -> Result<(), u16> {
    discard(request).await.map_err(|error| match error {
        BodyError::Io(_) => error.status(request),
        error => fail(request, &error),
    })
}

/// The same in a phase that precedes the one in which the body's limit is set.
pub async fn discard_body_early(request: &mut Request) -> Result<(), u16> {
    limit_body(request);
    discard_body(request).await
}

/// The same for an error that has a status already: the status of the response. It has no fields
/// of that error, even if the body only ends early.
pub(super) async fn discard_after(request: &mut Request, status: u16) -> u16 {
    match discard(request).await {
        Ok(()) => status,
        Err(error) => fail(request, &error),
    }
}

/// Sets the body's limit, if an early phase ended the request before that was done.
pub(super) fn limit_body(request: &mut Request) {
    if let Some(limit) = limit_of(request) {
        request.body_in.lower_limit(limit);
    }
}

/// The limit that the configuration of a request sets for its body. Bodies of proxied requests have
/// none (`ap_http_filter`).
pub(super) fn limit_of(request: &Request) -> Option<u64> {
    let limit = request.plan.core.limit_request_body();
    limit.filter(|_| request.resource.proxied == Proxied::No)
}

/// The status of the error, which has none of the fields.
fn fail(request: &mut Request, error: &BodyError) -> u16 {
    request.keep(errors::FailedInFilter);
    request.keep(errors::FailedBody);
    request.response.err_headers_out.clear();
    error.status(request)
}

async fn discard(request: &mut Request) -> Result<(), BodyError> {
    if request.body_in.is_left() || has_dropped(request) {
        return Ok(());
    }
    // Under the status of an error, a client that waits for `100 Continue` is not asked for its
    // body (`ap_http_filter`).
    let is_error = !wire::status::is_success(request.response.status);
    if is_error && request.body_in.expects_continue() && !request.body_in.is_over_limit() {
        return Ok(());
    }
    while let Some(piece) = request.body_in.next().await {
        piece?;
    }
    Ok(())
}

/// Whether the connection ends because of the request's status, or that of one for whose error this
/// is the document.
fn has_dropped(request: &Request) -> bool {
    let mut chain = std::iter::successors(Some(request), |request| request.prev.as_deref());
    chain.any(errors::drops_connection)
}

/// Reads what a handler that has printed its response left of the body, before the head is sent;
/// the head of a long response is already sent (`ap_finalize_request_protocol`).
pub fn finish_printed(request: &mut Request) -> Step<'_> {
    if request.response.chunked || request.body_in.is_empty() {
        return Step::OK;
    }
    Step::Pending(Box::pin(async {
        discard_body(request).await.map_or_else(Verdict::Status, |()| Verdict::Ok)
    }))
}
