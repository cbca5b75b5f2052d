//! What is sent in place of a response that a filter withholds.

use wire::request::Version;

use super::{FailedInFilter, die, first_error, recursive};
use crate::phases::walk;
use crate::request::Request;
use crate::request::body::Body;

/// The status in place of a response that is withheld.
const STATUS: u16 = 500;

/// Marks a response whose handler reports a filter's failure as an error of its own.
pub struct ReportsFilters;

/// Makes `request` a 500 in place of a response that a filter withholds. Of an error document,
/// nothing is sent: the handler of files does not see that it failed (`default_handler`). Over
/// HTTP/2, the 500 is never that of the request which failed.
pub async fn fail_in_filter(request: &mut Request) {
    if request.kept::<ReportsFilters>().is_some() {
        return fail_before_handler(request, STATUS).await;
    }
    if u32::from(request.head.protocol) >= Version::HTTP_20.0 {
        return respond_for_none(request).await;
    }
    if first_error(request).is_some() && request.is_file_response() {
        return send_nothing(request);
    }
    fail_before_handler(request, STATUS).await;
}

fn send_nothing(request: &mut Request) {
    request.response.body = Body::failed();
    request.response.is_raw = true;
}

/// Makes `request` what a stream of HTTP/2 gets that has had no response: an error of the host's
/// own configuration, without the fields so far (`h2_c2_process`).
async fn respond_for_none(request: &mut Request) {
    while let Some(prev) = request.prev.take() {
        let mut failed = std::mem::replace(request, *prev);
        request.depends.trace = failed.depends.trace.take();
    }
    request.depends.pure = false;
    if request.kept::<HadNone>().is_some() {
        // The document of that error has failed, too.
        return send_nothing(request);
    }
    request.keep(HadNone);
    walk::back_to_host(request);
    request.response.err_headers_out.clear();
    request.response.status = 200;
    die(request, STATUS).await;
}

/// Marks a request of HTTP/2 that has had no response.
struct HadNone;

/// Makes `request` a response with `status` for a filter that fails before the handler runs, or
/// whose failure the handler reports.
pub async fn fail_before_handler(request: &mut Request, status: u16) {
    request.keep(FailedInFilter);
    if let Some(first) = first_error(request) {
        return recursive(request, first, status).await;
    }
    // Whatever the handler has set belongs to the response that is withheld.
    request.response.status = 200;
    die(request, status).await;
}
