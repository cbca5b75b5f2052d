//! A request for a balancer: a member is chosen, and another one if that fails.
//!
//! Source: `proxy_handler` (mod_proxy.c).

use server::hooks::{Bound, Verdict};
use server::request::Request;

use super::balancing::{BalancingProvider, Choosing};
use super::forward::{Attempt, attempt};
use super::outgoing::Outgoing;
use super::status::Status;
use super::storage::PREFIX;
use super::target::split_at_text;
use super::workers::{Balancer, Worker};
use super::{Proxy, retry, unasked};

/// The note of a response that an error document of this server replaces.
pub const OVERRIDDEN: &[u8] = b"proxy-error-override";

/// The member has answered, if with a head that this server refuses: it is not to blame for the
/// status.
pub struct Answered;

/// Whether the request may go to another member although it was sent, unless it has already.
struct Allowed(bool);

/// Lets a request go to another member once: it was sent, but its connection ended before a byte of
/// the response, and doing it twice does no harm.
pub fn allow(request: &mut Request, body: Outgoing) {
    if request.kept::<Allowed>().is_none() {
        request.keep(Allowed(true));
        body.keep(request);
    }
}

/// Forwards a request for `url`, which names the balancer.
pub(super) async fn forward(
    proxy: Bound<'_, Proxy>,
    request: &mut Request,
    (balancer, balancing): (&Balancer, BalancingProvider),
    url: &[u8],
) -> Verdict {
    let max_attempts = balancer.max_attempts();
    let mut number = 0;
    loop {
        let chosen = match balancing.choose(request, balancer, url) {
            Choosing::Ready(chosen) => chosen,
            Choosing::Pending(choosing) => choosing.await,
        };
        let (member, url) = match chosen {
            Ok(chosen) => chosen,
            Err(status) => return Verdict::Status(status),
        };
        let scheme = b"balancer";
        let verdict =
            attempt(proxy, request, Attempt { worker: &member, url: &url, scheme, number }).await;
        if take_allowance(request) {
            continue;
        }
        let is_failed = is_failure(request, &verdict);
        if is_failed && !member.state.status().has(Status::IGNORE_ERRORS) {
            retry::fail(&member, request.engine.handle.clock().wall_us());
        }
        let is_over = verdict != Verdict::Status(503)
            || request.notes.contains(OVERRIDDEN)
            || member.state.status().is_usable()
            || number >= max_attempts
            || !Outgoing::is_kept(request);
        if is_over {
            let status = match &verdict {
                Verdict::Status(status) => *status,
                _ => request.response.status,
            };
            balancing.responded(request, balancer, &member, status);
            return verdict;
        }
        number += 1;
    }
}

/// Whether another member is asked after this one did not answer.
fn take_allowance(request: &mut Request) -> bool {
    let allowed = request.kept_mut::<Allowed>();
    let is_allowed = allowed.is_some_and(|allowed| std::mem::take(&mut allowed.0));
    if is_allowed {
        request.response.status_line = None;
    }
    is_allowed
}

/// Whether the member is to blame: it can't be reached, or its scheme can't handle the request.
fn is_failure(request: &Request, verdict: &Verdict) -> bool {
    matches!(verdict, Verdict::Status(500 | 503))
        && !request.notes.contains(OVERRIDDEN)
        && !unasked::is_unsent(request)
        && request.kept::<Answered>().is_none()
}

/// The URL with the member in the place of the balancer, in its scheme's canonical form, which
/// becomes that of the request.
///
/// # Errors
/// The status of the response.
pub fn rewrite(request: &mut Request, member: &Worker, url: &[u8]) -> Result<Vec<u8>, u16> {
    let rest = split_at_text(url, b"://").map_or(url, |(_, rest)| rest);
    let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let url = [&member.name, rest.get(slash..).unwrap_or_default()].concat();
    let Some(scheme) = member.scheme else { return Ok(url) };
    let url = scheme.canonical(request, &url)?;
    request.resource.filename = [PREFIX, &url].concat();
    Ok(url)
}
