//! Another resource of this server, whose response a program asks for by its `Location`.

use std::borrow::Cow;

use server::hooks::Verdict;
use server::redirect::internal_redirect_handler;
use server::request::Request;
use wire::Method;

/// Responds with the resource at `uri`. The request is a GET from now on: its body has been read.
pub(crate) async fn to_local(request: &mut Request, uri: &[u8]) -> Verdict {
    // HEAD has the number of GET, and stays.
    if request.head.method != Method::GET {
        request.head.method = Method::GET;
        request.head.method_name = Cow::Borrowed(b"GET");
    }
    request.head.headers_in.unset(b"Content-Length");
    internal_redirect_handler(request, uri).await
}
