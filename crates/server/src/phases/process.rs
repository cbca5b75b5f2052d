//! The life of a request: Apache's phases, in Apache's order.
//!
//! Source: `ap_process_request_internal` (server/request.c). [`Phase`] says which phases run all
//! hooks, and which run hooks until one does not decline.

use std::rc::Rc;

use crate::api::hooks::{HookDef, Phase, Step, Verdict};
use crate::engine::plan::Plan;
use crate::errorlog::Verbatim;
use crate::log::Level;
use crate::phases::discard::limit_of;
use crate::phases::handler;
use crate::phases::hostname;
use crate::phases::lookup;
use crate::phases::matching;
use crate::phases::request_uri;
use crate::phases::walk;
use crate::request::Request;

/// Runs a request from its URI to its response, or to the status that ends it. `post_read_request`
/// has run already: its status applies to the whole request.
///
/// Inlined with all that it awaits: each call across crates would copy a future.
#[inline]
pub async fn process(request: &mut Request) -> Verdict {
    match run_first(request, Phase::QuickHandler).await {
        Verdict::Declined => {}
        decided => return decided,
    }
    process_at_length(request).await
}

/// The same without quick handlers.
#[inline]
pub async fn process_at_length(request: &mut Request) -> Verdict {
    match resolve(request).await {
        Verdict::Ok => handler::produce(request).await,
        decided => decided,
    }
}

/// A subrequest's look-up: all phases except the handler.
pub async fn look_up(request: &mut Request) -> Verdict {
    if request.quick_lookup {
        match run_first(request, Phase::QuickHandler).await {
            Verdict::Declined => {}
            decided => return decided,
        }
    }
    resolve(request).await
}

/// All phases except the handler.
#[inline]
pub async fn resolve(request: &mut Request) -> Verdict {
    let verdict = map(request).await;
    if verdict != Verdict::Ok {
        return verdict;
    }
    let limit = limit_of(request);
    request.body_in.set_limit(limit);
    if !permitted_by_chain(request) {
        let verdict = permit(request).await;
        if verdict != Verdict::Ok {
            return verdict;
        }
    }
    let verdict = run_first(request, Phase::TypeChecker).await;
    if let Verdict::Status(_) | Verdict::Done = verdict {
        return verdict;
    }
    run_all(request, Phase::Fixups).await
}

/// From the URI to a file and its merged configuration.
#[inline]
async fn map(request: &mut Request) -> Verdict {
    let of_file = request.is_file_lookup();
    if !of_file {
        let verdict = name(request).await;
        if verdict != Verdict::Ok {
            return verdict;
        }
    }
    walk::back_to_host(request);
    match run_first(request, Phase::MapToStorage).await {
        Verdict::Ok | Verdict::Declined => {}
        decided => return decided,
    }
    if let Err(status) = locate(request).await {
        return Verdict::Status(status);
    }
    match run_all(request, Phase::PostPerdirConfig).await {
        Verdict::Ok => {}
        decided => return decided,
    }
    if request.main.is_some() {
        return Verdict::Ok;
    }
    run_all(request, Phase::HeaderParser).await
}

/// From the URI to a file name: these walks serve only the name phases and are discarded.
#[inline]
async fn name(request: &mut Request) -> Verdict {
    if let Err(status) = request_uri::normalize(request) {
        return Verdict::Status(status);
    }
    // Apache's first walk is that of the path as it was sent. Where nothing asks for it, it matters
    // only for conditions in sections that the unescaped path does not match.
    let early = !request.plan.phase(Phase::PreTranslateName).is_empty()
        || request.engine.server.has_pre_translate
        || request.resource.uri.contains(&b'%');
    // `Done`: the path stays as the client sent it.
    let mut translated = false;
    if early {
        if let Err(status) = locate(request).await {
            return Verdict::Status(status);
        }
        translated = match run_first(request, Phase::PreTranslateName).await {
            Verdict::Status(status) => return Verdict::Status(status),
            verdict => verdict == Verdict::Done,
        };
        walk::back_to_host(request);
    }
    if !translated && let Err(status) = request_uri::unescape(request) {
        return Verdict::Status(status);
    }
    if let Err(status) = locate(request).await {
        return Verdict::Status(status);
    }
    if !early && !walk::repeat_ifs(request) {
        // The walk above is Apache's first, for hooks that do not exist here; this is its second.
        walk::back_to_host(request);
        if let Err(status) = locate(request).await {
            return Verdict::Status(status);
        }
    }
    match run_first(request, Phase::TranslateName).await {
        Verdict::Ok => Verdict::Ok,
        Verdict::Declined => Verdict::Status(500),
        decided => decided,
    }
}

/// `<Location>`, then `<If>`; names that conditions may need are looked up in between.
#[inline]
async fn locate(request: &mut Request) -> Result<(), u16> {
    matching::settled(request, walk::locations).await?;
    if request.plan.core.ifs.is_empty() {
        return Ok(());
    }
    if hostname::is_named(request) {
        hostname::client_name(request).await;
    }
    matching::settled(request, walk::ifs).await?;
    lookup::forget_outcomes(request);
    Ok(())
}

/// Authentication and authorisation are not repeated if the previous (or main) request passed them
/// under the same merged configuration, unless a hook decides by URI.
fn permitted_by_chain(request: &mut Request) -> bool {
    if request.engine.server.registry.hooks.auth_by_uri {
        return false;
    }
    let same = |plan: &Rc<Plan>, copy| plan.id == request.plan.id && copy == request.copy;
    if let Some(prev) = &request.prev {
        if same(&prev.plan, prev.copy) {
            request.user = prev.user.clone();
            request.auth_type = prev.auth_type.clone();
            return true;
        }
    } else if let Some(main) = &request.main
        && same(&main.plan, main.copy)
        && !main.has_other_method
    {
        request.user = main.user.clone();
        request.auth_type = main.auth_type.clone();
        return true;
    }
    false
}

/// Access, authentication, and authorisation under `Satisfy`.
#[inline]
async fn permit(request: &mut Request) -> Verdict {
    let by_access = run_all(request, Phase::AccessChecker).await;
    match (by_access, request.plan.satisfy_any.contains(request.head.method)) {
        (Verdict::Ok, true) => return Verdict::Ok,
        (Verdict::Ok, false) | (Verdict::Status(_), true) => {}
        (decided, _) => return decided,
    }
    let userless = run_first(request, Phase::AccessCheckerEx).await;
    let user_needed = match userless {
        Verdict::Declined => true,
        Verdict::Ok => run_first(request, Phase::ForceAuthn).await == Verdict::Ok,
        decided => return decided,
    };
    if !user_needed {
        return Verdict::Ok;
    }
    match run_first(request, Phase::CheckUserId).await {
        Verdict::Ok if request.user.is_some() => {}
        Verdict::Ok => return Verdict::Status(500),
        Verdict::Declined => {
            let uri = Verbatim::new(&request.resource.uri);
            let why = format!(
                "No authentication done but request not allowed without authentication for {uri}. \
                 Authentication not configured?"
            );
            request.log_core(Level::Error, 27, &why, None);
            return Verdict::Status(500);
        }
        decided => return decided,
    }
    match run_first(request, Phase::AuthChecker).await {
        Verdict::Declined => Verdict::Status(500),
        decided => decided,
    }
}

/// Runs hooks until one does not decline.
#[inline]
pub async fn run_first(request: &mut Request, phase: Phase) -> Verdict {
    let plan = request.plan.clone();
    for planned in plan.phase(phase) {
        request.depends.pure &= planned.pure;
        let verdict = match planned.hook.run(request) {
            Step::Ready(verdict) => verdict,
            Step::Pending(future) => future.await,
        };
        if verdict != Verdict::Declined {
            return verdict;
        }
    }
    Verdict::Declined
}

/// Runs every hook, until one ends the request. Once a hook has taken over the results of a
/// subrequest (mod_dir's index), those after it run under the subrequest's configuration.
#[inline]
pub async fn run_all(request: &mut Request, phase: Phase) -> Verdict {
    run_while(request, phase, |_| true).await
}

/// Runs the `post_read_request` hooks before that of TLS, which is about to refuse the request.
pub async fn run_before_tls(request: &mut Request) -> Verdict {
    const PHASE: Phase = Phase::PostReadRequest;
    let hooks = &request.engine.server.registry.hooks;
    let tls = hooks.tls();
    let is_tls = |hook: &HookDef| tls.is_some_and(|tls| tls.module == hook.module);
    let end = hooks.phase(PHASE).iter().position(is_tls).unwrap_or(0);
    run_while(request, PHASE, |place| place < end).await
}

/// Runs hooks up to the first whose place in the phase does not suit.
#[inline]
async fn run_while(request: &mut Request, phase: Phase, suits: impl Fn(usize) -> bool) -> Verdict {
    let mut plan = request.plan.clone();
    let mut at = 0;
    while let Some(planned) = plan.phase(phase).get(at).filter(|planned| suits(planned.place)) {
        request.depends.pure &= planned.pure;
        let verdict = match planned.hook.run(request) {
            Step::Ready(verdict) => verdict,
            Step::Pending(future) => future.await,
        };
        if let Verdict::Status(_) | Verdict::Done = verdict {
            return verdict;
        }
        at += 1;
        if !Rc::ptr_eq(&plan, &request.plan) {
            let place = planned.place;
            plan = request.plan.clone();
            at = plan.phase(phase).partition_point(|hook| hook.place <= place);
        }
    }
    Verdict::Ok
}
