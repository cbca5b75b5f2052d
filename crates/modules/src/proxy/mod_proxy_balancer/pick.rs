//! Which member a request goes to. Source: `proxy_balancer_pre_request`.

use std::sync::Arc;
use std::time::Duration;

use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::ProxyBalancer;
use super::session::{Rules, Session};
use crate::proxy::mod_proxy::backend::Place;
use crate::proxy::mod_proxy::balancing::{Choosing, Chosen};
use crate::proxy::mod_proxy::failover;
use crate::proxy::mod_proxy::lbmethod::{Choice, MethodProvider};
use crate::proxy::mod_proxy::shared::Changed;
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};

/// How often members are looked for while a request waits for one.
const LOOKS: u32 = 100;

/// Chooses a member, and tells the variables of the request.
pub(super) fn choose<'r>(
    request: &'r mut Request,
    balancer: &'r Balancer,
    url: &'r [u8],
) -> Choosing<'r> {
    let changed = balancer.state.changed();
    let session =
        rules(balancer, changed.as_ref()).and_then(|rules| rules.session_of(request, url));
    let picked = pick(request, balancer, changed.as_ref(), session.as_ref());
    let timeout = match &changed {
        Some(changed) => changed.timeout,
        None => balancer.parameters.timeout,
    };
    match (picked, timeout) {
        (Err(status), _) => Choosing::Ready(Err(status)),
        (Ok(Some(member)), _) => {
            Choosing::Ready(set_variables(request, balancer, url, member, session))
        }
        (Ok(None), None) => Choosing::Ready(Err(refuse(request, balancer))),
        (Ok(None), Some(timeout)) => {
            Choosing::Pending(Box::pin(wait(request, balancer, url, session, timeout)))
        }
    }
}

/// What the balancer's parameters say of sessions; `None` if they don't matter.
fn rules<'b>(balancer: &'b Balancer, changed: Option<&'b Changed>) -> Option<Rules<'b>> {
    let parameters = &balancer.parameters;
    let sticky = match changed {
        Some(changed) => changed.sticky.as_ref(),
        None => parameters.sticky.as_ref(),
    };
    let (cookie, path) = sticky.filter(|(cookie, _)| !cookie.is_empty())?;
    Some(Rules {
        cookie,
        path,
        separator: parameters.sticky_separator,
        semicolon_delimits: parameters.semicolon_delimits.unwrap_or(false),
    })
}

/// Chooses a member by the session, else by the method. `None`: none can be asked.
fn pick(
    request: &mut Request,
    balancer: &Balancer,
    changed: Option<&Changed>,
    session: Option<&Session>,
) -> Result<Option<Arc<Worker>>, u16> {
    let Some((name, method)) = method(balancer, changed) else { return Ok(None) };
    let now_us = request.engine.handle.clock().wall_us();
    let held = balancer.state.lock();
    let choice = Choice { request, balancer, method: name, now_us };
    recover(&choice);
    let route = session.map(|session| session.route.as_slice()).filter(|route| !route.is_empty());
    let of_session = route.and_then(|route| of_route(&choice, route, &mut Vec::new())).cloned();
    if let Some(member) = &of_session {
        account(balancer, member);
        member.state.count_elected();
    }
    let no_failover = match changed {
        Some(changed) => changed.no_failover,
        None => balancer.parameters.no_failover.unwrap_or(false),
    };
    if of_session.is_none()
        && no_failover
        && let Some(session) = session
        && balancer.members().any(|member| is_at(member, &session.route))
    {
        let (name, route) = (Verbatim::new(&balancer.name), Verbatim::new(&session.route));
        let text = format_args!("{name}: All workers are in error state for route ({route})");
        request.log::<ProxyBalancer>(Level::Error, 1167, text);
        return Err(503);
    }
    let member = of_session.clone().or_else(|| by_method(&choice, method));
    drop(held);
    if let (Some(member), Some(route)) = (&of_session, route) {
        let own = member.route();
        if *own != *route {
            let (route, own) = (Verbatim::new(route), Verbatim::new(&own));
            let text = format_args!("Route changed from {route} to {own}");
            request.log::<ProxyBalancer>(Level::Debug, 1162, text);
            request.env.set(b"BALANCER_ROUTE_CHANGED", b"1");
        }
    }
    if of_session.is_none() && member.is_some() && rules(balancer, changed).is_some() {
        request.env.set(b"BALANCER_ROUTE_CHANGED", b"1");
    }
    Ok(member)
}

/// `lbmethod`, with its name.
fn method(
    balancer: &Balancer,
    changed: Option<&Changed>,
) -> Option<(&'static str, MethodProvider)> {
    let place = changed.map_or(balancer.method, |changed| changed.method);
    balancer.methods.get(place).copied()
}

/// Lets the method choose.
fn by_method(choice: &Choice<'_>, method: MethodProvider) -> Option<Arc<Worker>> {
    let (name, of) = (choice.method, Verbatim::new(&choice.balancer.name));
    choice.log(10122, format_args!("proxy: Entering {name} for BALANCER ({of})"));
    let member = method.choose(choice)?.clone();
    member.state.count_elected();
    Some(member)
}

/// Forgets the errors of all members if all have failed (`forcerecovery`).
fn recover(choice: &Choice<'_>) {
    let balancer = choice.balancer;
    let has_failed = |member: &Worker| member.state.status().has(Status::IN_ERROR);
    let is_in_error = |member: &Arc<Worker>| {
        has_failed(member) && {
            choice.is_usable(member);
            has_failed(member)
        }
    };
    if !balancer.parameters.force_recovery.unwrap_or(true) || !balancer.members().all(is_in_error) {
        return;
    }
    for member in balancer.members() {
        member.state.count_retry();
        member.state.clear(Status::IN_ERROR);
        let (name, place) = (Verbatim::new(&balancer.name), Place::of(member));
        let text = format_args!("{name}: Forcing recovery for worker ({place})");
        let (server, of) = (&choice.request.engine.server, &choice.request.host);
        server.log_host(of, ProxyBalancer::FILE, Level::Debug, 1165, text);
    }
}

fn is_at(member: &Worker, route: &[u8]) -> bool {
    !route.is_empty() && *member.route() == *route
}

/// The member with the route, or the one that it redirects to: standbys last. Each of the routes in
/// `followed` has been looked at.
fn of_route<'c>(
    choice: &Choice<'c>,
    route: &[u8],
    followed: &mut Vec<Vec<u8>>,
) -> Option<&'c Arc<Worker>> {
    let is_standby = |member: &Worker| member.state.status().has(Status::HOT_STANDBY);
    let at_route = |standby| {
        let members = choice.balancer.members();
        members.filter(move |member| is_standby(member) == standby && is_at(member, route))
    };
    at_route(false).chain(at_route(true)).find_map(|member| {
        if choice.is_usable(member) {
            return Some(member);
        }
        let redirect = member.redirect();
        // Members that redirect to each other have no other answer the second time.
        if redirect.is_empty() || followed.iter().any(|route| **route == *redirect) {
            return None;
        }
        followed.push(redirect.to_vec());
        of_route(choice, &redirect, followed)
    })
}

/// Sessions take their part of a member's share.
fn account(balancer: &Balancer, chosen: &Worker) {
    let mut total = 0;
    for state in balancer.members().map(|member| &member.state) {
        if state.status().is_usable() {
            let factor = i64::from(state.load_factor());
            state.set_lbstatus(state.lbstatus() + factor);
            total += factor;
        }
    }
    chosen.state.set_lbstatus(chosen.state.lbstatus() - total);
}

/// Waits for a member that can be asked (`timeout`).
async fn wait(
    request: &mut Request,
    balancer: &Balancer,
    url: &[u8],
    session: Option<Session>,
    timeout: Duration,
) -> Chosen {
    let handle = request.engine.handle.clone();
    for _ in 0..LOOKS {
        handle.sleep_until(handle.deadline(timeout / LOOKS)).await;
        let changed = balancer.state.changed();
        let Some((name, method)) = method(balancer, changed.as_ref()) else { break };
        let found = {
            let _held = balancer.state.lock();
            let now_us = handle.clock().wall_us();
            by_method(&Choice { request, balancer, method: name, now_us }, method)
        };
        if let Some(member) = found {
            if rules(balancer, changed.as_ref()).is_some() {
                request.env.set(b"BALANCER_ROUTE_CHANGED", b"1");
            }
            return set_variables(request, balancer, url, member, session);
        }
    }
    Err(refuse(request, balancer))
}

/// There is no member to ask.
fn refuse(request: &mut Request, balancer: &Balancer) -> u16 {
    let name = Verbatim::new(&balancer.name);
    match balancer.members().next() {
        Some(_) => {
            let text = format_args!("{name}: All workers are in error state");
            request.log::<ProxyBalancer>(Level::Error, 1170, text);
        }
        None => {
            let text = format_args!("{name}: No workers in balancer");
            request.log::<ProxyBalancer>(Level::Error, 1171, text);
        }
    }
    503
}

/// Sets what logs and `Header` show of the choice.
fn set_variables(
    request: &mut Request,
    balancer: &Balancer,
    url: &[u8],
    member: Arc<Worker>,
    session: Option<Session>,
) -> Chosen {
    request.env.set(b"BALANCER_NAME", &balancer.name);
    request.env.set(b"BALANCER_WORKER_NAME", &member.name);
    request.env.set(b"BALANCER_WORKER_ROUTE", &member.route());
    let url = failover::rewrite(request, &member, url)?;
    if let Some(Session { route, name }) = session {
        request.notes.set(b"session-sticky", &name);
        request.notes.set(b"session-route", &route);
        request.env.set(b"BALANCER_SESSION_STICKY", &name);
        request.env.set(b"BALANCER_SESSION_ROUTE", &route);
    }
    let (name, of, to) =
        (Verbatim::new(&balancer.name), Verbatim::new(&member.name), Verbatim::new(&url));
    let text = format_args!("{name}: worker ({of}) rewritten to {to}");
    request.log::<ProxyBalancer>(Level::Debug, 1172, text);
    Ok((member, url))
}
