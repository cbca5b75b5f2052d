//! Discards a request body that the handler does not use.

use crate::phases::errors;
use crate::request::Request;
use crate::request::request_body::BodyError;

/// Reads and discards the request body (`ap_discard_request_body`). If that fails, Apache has
/// already merged the fields of the response: the error has none of them.
pub async fn discard_body(request: &mut Request) -> Result<(), u16> {
    while let Some(piece) = request.body_in.next().await {
        match piece {
            Ok(_) => {}
            Err(BodyError::Status(status)) => {
                request.keep(errors::FailedInFilter);
                request.response.err_headers_out.clear();
                return Err(status);
            }
            Err(BodyError::Io(_)) => return Err(400),
        }
    }
    Ok(())
}
