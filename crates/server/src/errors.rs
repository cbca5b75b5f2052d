//! Error answers: `ErrorDocument`, and the pages that are built in.
//!
//! Source: `ap_die`, `ap_send_error_response` (modules/http).

use crate::body::Body;
use crate::request::Request;

/// Makes `request` an error answer.
pub async fn die(request: &mut Request, status: u16) {
    request.status = status;
    request.filters.clear();
    request.headers_out.clear();
    request.content_type = Some(b"text/html; charset=iso-8859-1".to_vec());
    let line = wire::status::line(status);
    let page = format!("<!DOCTYPE html>\n<title>{line}</title>\n<h1>{line}</h1>\n");
    request.body = Body::from(page.into_bytes());
}
