//! The same path by another method.

use std::borrow::Cow;

use wire::method::Method;

use crate::phases::subrequest::child_for_uri;
use crate::request::Request;

/// A subrequest for the path of a request by a method that the client has named. Access is checked
/// again; [`crate::subrequest::look_up_response`] looks it up.
///
/// Source: `ap_sub_req_method_uri`.
pub fn other_method(request: &mut Request, method: &[u8]) -> Request {
    let mut path = Vec::new();
    wire::escape::path(&mut path, &request.resource.uri);
    let method_number = Method::of(method, &request.engine.server.methods);
    let mut sub = child_for_uri(request, &path, method_number);
    sub.head.method_name = Cow::Owned(method.to_vec());
    // It has no head of its own: OPTIONS has nothing to send.
    sub.head.simple = true;
    sub.main.iter_mut().for_each(|main| main.has_other_method = true);
    sub
}
