//! `<If>`, `<ElseIf>`, `<Else>`, and those inside the ones that hold.
//!
//! Apache caches each walk, one level of nesting a walk, and a subrequest or internal redirect
//! compares its walks with those of the request before it by their number (`prep_walk_cache`).
//! Where base and sections are the same it takes the result of that walk, without a look at the
//! sections nested in it. Where they are not it merges again, and authorisation, which is skipped
//! under the same merged configuration, is asked again. So a nested section that grants access does
//! not count in a subrequest, and one that is anywhere makes a denied error document denied.
//!
//! Source: `ap_if_walk_sub`, `prep_walk_cache` (server/request.c).

use std::rc::Rc;

use super::{enter, gathered::Gathered};
use crate::config::section::{Matches, Section, fresh_id};
use crate::phases::expr;
use crate::phases::matching::Stop;
use crate::plan::Layer;
use crate::request::Request;

/// The most that `<If>` may be nested.
const IF_DEPTH_LIMIT: usize = 32;

/// The walks of a request, one for each level of nesting, in the order in which they were made.
pub type IfWalks = Option<Rc<Vec<IfWalk>>>;

/// One level of one walk.
#[derive(Clone)]
pub struct IfWalk {
    /// Which sections held.
    held: Vec<u64>,
    /// The configuration before them, and which copy of it.
    base: (u64, u64),
    /// What they made of it, and which copy of that.
    result: (Rc<Layer>, u64),
}

/// Merges the sections whose conditions hold.
///
/// # Errors
/// As [`locations`](super::locations).
pub fn ifs(request: &mut Request) -> Result<(), Stop> {
    if request.plan.core.ifs.is_empty() {
        return Ok(());
    }
    let before = (request.layer.clone(), request.copy);
    let made = request.if_walks.clone();
    let done = enter_ifs(request);
    if done == Err(Stop::Later) {
        // The walk will begin again, and nothing may be merged twice.
        enter_copy(request, before);
        request.if_walks = made;
    }
    done
}

/// Notes the walk before the last as Apache makes it: it would be the same as the last. False where
/// that can't be known without evaluating the conditions again.
pub fn repeat(request: &mut Request) -> bool {
    if request.prev.is_some() || request.main.is_some() {
        return false;
    }
    match &mut request.if_walks {
        Some(walks) if walks.len() == 1 => {
            let walks = Rc::make_mut(walks);
            walks.extend_from_within(..);
            true
        }
        walks => walks.is_none(),
    }
}

fn enter_ifs(request: &mut Request) -> Result<(), Stop> {
    let mut done = 0;
    for _ in 0..IF_DEPTH_LIMIT {
        let core = request.plan.core.clone();
        let Some(fresh) = core.ifs.get(done..).filter(|fresh| !fresh.is_empty()) else {
            return Ok(());
        };
        done = core.ifs.len();
        let mut matching = Gathered::default();
        let mut held = Vec::new();
        for section in fresh {
            if condition_holds(section, request)? {
                matching.add(request, section);
                held.push(section.id);
            }
        }
        let base = (request.layer.id, request.copy);
        if let Some(known) = known(request).filter(|known| known.base == base && known.held == held)
        {
            enter_copy(request, known.result.clone());
            note(request, known);
            return Ok(());
        }
        let result = matching.onto(request, &request.layer);
        let copy = if held.is_empty() { request.copy } else { fresh_id() };
        enter_copy(request, (result.clone(), copy));
        note(request, IfWalk { held, base, result: (result, copy) });
    }
    Err(Stop::Status(500))
}

/// The walk that Apache compares the next one with: that of the same number of the request before
/// this one, else the last of this one.
fn known(request: &Request) -> Option<IfWalk> {
    if request.engine.server.registry.hooks.auth_by_uri {
        return None;
    }
    let made = request.if_walks.as_deref();
    let number = made.map_or(0, Vec::len);
    let of_prev = request.prev.as_ref().and_then(|prev| prev.if_walks.as_deref());
    let of_main = || request.main.as_ref().and_then(|main| main.if_walks.as_deref());
    let same_number = of_prev.or_else(of_main).and_then(|walks| walks.get(number));
    same_number.or_else(|| made?.last()).cloned()
}

fn note(request: &mut Request, walk: IfWalk) {
    Rc::make_mut(request.if_walks.get_or_insert_default()).push(walk);
}

fn enter_copy(request: &mut Request, (layer, copy): (Rc<Layer>, u64)) {
    enter(request, layer);
    request.copy = copy;
}

fn condition_holds(section: &Section, request: &mut Request) -> Result<bool, Stop> {
    let Matches::If(condition) = &section.matches else { return Ok(false) };
    request.pure = false;
    for earlier in &condition.none_of {
        if expr::holds(earlier, request)? {
            return Ok(false);
        }
    }
    condition.holds.as_ref().map_or(Ok(true), |expr| expr::holds(expr, request))
}
