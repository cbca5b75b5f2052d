//! `<If>`, `<ElseIf>`, `<Else>`, and sections nested in those that hold.
//!
//! Apache caches each walk, with a walk per level of nesting, and a subrequest or internal redirect
//! compares its walks by number with those of the request before it (`prep_walk_cache`). If base
//! and sections are the same, it uses the result of that walk, without examining the sections
//! nested in it. Otherwise it merges again, and authorisation, which is skipped under the same
//! merged configuration, is repeated. So a nested section that grants access does not apply to a
//! subrequest, and any nested section denies the error document of a denied request.
//!
//! Source: `ap_if_walk_sub`, `prep_walk_cache` (server/request.c).

use std::rc::Rc;

use super::{enter, gathered::Gathered};
use crate::config::section::{Matches, Section, fresh_id};
use crate::engine::plan::Layer;
use crate::explain;
use crate::phases::expr;
use crate::phases::matching::Stop;
use crate::request::Request;

/// Deepest nesting of `<If>`.
const IF_DEPTH_LIMIT: usize = 32;

/// The walks of a request, one for each level of nesting, in order.
pub type IfWalks = Option<Rc<Vec<IfWalk>>>;

/// One level of a walk.
#[derive(Clone)]
pub struct IfWalk {
    /// The ids of the sections that held.
    held: Vec<u64>,
    /// The configuration before them, and its copy number.
    base: (u64, u64),
    /// The result, and its copy number.
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

/// Repeats the walk before the last as Apache would, which gives the same result as the last.
/// Returns false if that can't be known without evaluating the conditions again.
pub fn repeat(request: &mut Request) -> bool {
    let is_first = request.prev.is_none() && request.main.is_none();
    match &mut request.if_walks {
        Some(walks) if walks.len() == 1 && is_first => {
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
        let mut is_chain_over = false;
        for section in fresh {
            if condition_holds(section, request, &mut is_chain_over)? {
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
        if request.engine.recording().is_some() {
            let layers = [&*request.layer, &*result];
            explain::section_walk(request, "conditions", b"", fresh, layers);
        }
        let copy = if held.is_empty() { request.copy } else { fresh_id() };
        enter_copy(request, (result.clone(), copy));
        note(request, IfWalk { held, base, result: (result, copy) });
    }
    Err(Stop::Status(500))
}

/// The walk that Apache compares with the next one: the walk of the same number of the previous
/// request, or else the last of this one.
fn known(request: &Request) -> Option<IfWalk> {
    let hooks = &request.engine.server.registry.hooks;
    if hooks.auth_by_uri || hooks.merges_by_uri {
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

/// Whether a section applies. `is_chain_over` tells whether one of its chain before it does; each
/// condition is evaluated at most once, since that can change the request.
fn condition_holds(
    section: &Section,
    request: &mut Request,
    is_chain_over: &mut bool,
) -> Result<bool, Stop> {
    let Matches::If(condition) = &section.matches else { return Ok(false) };
    request.depends.pure = false;
    if condition.is_else && *is_chain_over {
        return Ok(false);
    }
    let holds = match &condition.holds {
        Some(expr) => expr::holds_at(expr, &condition.place, request)?,
        None => true,
    };
    *is_chain_over = holds;
    Ok(holds)
}
