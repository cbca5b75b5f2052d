//! The methods by which members of balancers are chosen (`modules/proxy/balancers`).

pub mod mod_lbmethod_bybusyness;
pub mod mod_lbmethod_byrequests;
pub mod mod_lbmethod_bytraffic;
pub mod mod_lbmethod_heartbeat;

use std::sync::Arc;

use server::build::Build;
use server::errorlog::Verbatim;
use server::module::Module;

use super::mod_proxy::Proxy;
use super::mod_proxy::lbmethod::Choice;
use super::mod_proxy::workers::Worker;

/// Refuses to start without mod_proxy, with this number of the message.
fn need_proxy<M: Module>(build: &mut Build, number: u32) {
    if build.for_real && build.registry.slot_of::<Proxy>().is_none() {
        let name = M::FILE.trim_end_matches(".c");
        build.error_without_place(format!("AH{number}: mod_proxy must be loaded for {name}"));
    }
}

/// Raises the balance of each candidate by its factor, and lowers that of the chosen one by their
/// sum: over time each is chosen in proportion. `is_better` compares a candidate with the best one
/// so far.
fn by_balance<'c>(
    choice: &Choice<'c>,
    is_better: impl Fn(&Worker, &Worker) -> bool,
) -> Option<&'c Arc<Worker>> {
    let mut total = 0;
    let best = choice.best(|member, best| {
        let factor = i64::from(member.state.load_factor());
        member.state.set_lbstatus(member.state.lbstatus() + factor);
        total += factor;
        best.is_none_or(|best| is_better(member, best))
    })?;
    log_best(choice, best);
    best.state.set_lbstatus(best.state.lbstatus() - total);
    Some(best)
}

fn log_best(choice: &Choice<'_>, best: &Worker) {
    let (busy, balance) = (best.state.busy(), best.state.lbstatus());
    let (method, name) = (choice.method, Verbatim::new(&best.name));
    choice.log(
        10123,
        format_args!(
            "proxy: {method} selected worker \"{name}\" : busy {busy} : lbstatus {balance}"
        ),
    );
}
