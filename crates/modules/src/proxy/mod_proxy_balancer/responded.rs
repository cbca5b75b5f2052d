//! What a response says of the member it came from. Source: `proxy_balancer_post_request`.

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::ProxyBalancer;
use crate::proxy::mod_proxy::retry;
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

/// The note of a request that a backend has not answered in time.
const TIMED_OUT: &[u8] = b"proxy_timedout";

/// Takes a status that `failonstatus` names, or a timeout with `failontimeout`, for a failure.
pub(super) fn note(request: &mut Request, balancer: &Balancer, member: &Worker, status: u16) {
    let name = Verbatim::new(&balancer.name);
    if !member.state.status().has(Status::IGNORE_ERRORS) {
        let worker = Verbatim::new(&member.name);
        let now_us = request.engine.handle.clock().wall_us();
        if balancer.parameters.fail_on_status.contains(&status) {
            let text = format_args!(
                "{name}: Forcing worker ({worker}) into error state due to status code {status} \
                 matching 'failonstatus' balancer parameter"
            );
            request.log::<ProxyBalancer>(Level::Error, 1174, text);
            retry::fail(member, now_us);
        }
        let fails = balancer.parameters.fail_on_timeout.unwrap_or(false);
        if fails && request.notes.contains(TIMED_OUT) {
            let text = format_args!(
                "{name}: Forcing worker ({worker}) into error state due to timeout and \
                 'failontimeout' parameter being set"
            );
            request.log::<ProxyBalancer>(Level::Error, 2460, text);
            retry::fail(member, now_us);
        }
    }
    let text = format_args!("proxy_balancer_post_request for ({name})");
    request.log::<ProxyBalancer>(Level::Debug, 1176, text);
}
