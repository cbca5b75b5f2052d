//! Interim responses of the backend (RFC 9110 section 15.2). Source:
//! `ap_proxy_http_process_response`, `ap_send_interim_response`.

use bstr::BStr;
use server::log::Level;
use wire::response::ResponseHead;

use super::ProxyHttp;
use crate::proxy::mod_proxy::scheme::Exchange;
use crate::proxy::mod_proxy::via;

/// Forwards one, whose bytes are in `buf`, as `proxy-interim-response` says. A `100 Continue` tells
/// a client that does not wait for it nothing.
pub(super) fn forward(exchange: &mut Exchange<'_>, head: &ResponseHead, buf: &[u8]) {
    let bound = exchange.bound;
    let request = &mut *exchange.request;
    if request.head.protocol < 1001 {
        return;
    }
    let is_continue = head.status == 100;
    let policy = request.env.get(b"proxy-interim-response");
    let is_strict = policy.is_some_and(|policy| policy.eq_ignore_ascii_case(b"RFC"));
    if let Some(policy) = policy.filter(|_| !is_strict) {
        if !policy.eq_ignore_ascii_case(b"Suppress") {
            let policy = BStr::new(policy);
            let text = format_args!("undefined proxy interim response policy ({policy})");
            request.log::<ProxyHttp>(Level::Warn, 1108, text);
        }
        return;
    }
    // Reading the body sends it to a client that waits for it.
    if is_continue && (!is_strict || request.body_in.expects_continue()) {
        return;
    }
    let mut out = request.connection.interim.take().into_vec();
    out.extend_from_slice(format!("HTTP/1.1 {:03} ", head.status).as_bytes());
    out.extend_from_slice(head.reason(buf));
    out.extend_from_slice(b"\r\n");
    head.write_fields(buf, &mut out);
    if let Some(via) = via::of_request(request, bound) {
        out.extend_from_slice(&[b"Via: ", &via[..], b"\r\n"].concat());
    }
    out.extend_from_slice(b"\r\n");
    request.connection.interim.set(out.into());
}
