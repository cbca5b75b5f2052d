//! What a form of balancer-manager changes. Source: `balancer_process_balancer_worker`.

use std::time::Duration;

use conf::values::{Unit, timeout};
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;

use super::Shown;
use super::form::Form;
use crate::atoi::atoi;
use crate::mappers::mod_imagemap::number;
use crate::proxy::mod_proxy::balancer::sticky;
use crate::proxy::mod_proxy::checks::{INTERVAL_MIN, Method, URI_BYTES};
use crate::proxy::mod_proxy::growth::NotAdded;
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::workers::{Balancer, Worker};
use crate::proxy::mod_proxy_balancer::ProxyBalancer;

/// The longest route, bytes.
const ROUTE_BYTES: usize = 63;
/// The longest `stickysession`, bytes.
const STICKY_BYTES: usize = 62;
/// The longest `timeout`, seconds.
const TIMEOUT_S: i32 = 7200;
/// The most attempts, and the last set.
const HIGHEST: i32 = 99;

/// The fields of the status, in the order in which they are set.
const FLAGS: [(&str, Status); 7] = [
    ("w_status_I", Status::IGNORE_ERRORS),
    ("w_status_N", Status::DRAIN),
    ("w_status_D", Status::DISABLED),
    ("w_status_H", Status::HOT_STANDBY),
    ("w_status_R", Status::HOT_SPARE),
    ("w_status_S", Status::STOPPED),
    ("w_status_C", Status::HC_FAIL),
];

/// Changes a balancer, and a worker of it.
///
/// # Errors
/// The status of the response.
pub(super) fn apply(
    request: &Request,
    shown: &Shown<'_>,
    balancer: &Balancer,
    worker: Option<&Worker>,
    form: &Form,
) -> Result<(), u16> {
    if let Some(worker) = worker {
        request.log::<ProxyBalancer>(Level::Debug, 1192, format_args!("settings worker params"));
        let was_usable = worker.state.status().is_usable();
        change_worker(balancer, worker, form);
        change_checks(shown, worker, form);
        if !was_usable && worker.state.status().is_usable() {
            reset(balancer);
        }
    }
    request.log::<ProxyBalancer>(Level::Debug, 1193, format_args!("settings balancer params"));
    change_balancer(balancer, form);
    match (form.get("b_wyes"), form.get("b_nwrkr")) {
        (Some(b"1"), Some(url)) => add(request, balancer, url),
        _ => Ok(()),
    }
}

fn change_worker(balancer: &Balancer, worker: &Worker, form: &Form) {
    let state = &worker.state;
    if let Some(value) = form.get("w_lf") {
        let (factor, _) = number(value.trim_ascii_start()).unwrap_or_default();
        let factor = factor * 100.0;
        if (100.0..10_001.0).contains(&factor) {
            state.set_load_factor(factor as u32);
            restart(balancer);
        }
    }
    if let Some(route) = form.get("w_wr") {
        state.set_route(short(route, ROUTE_BYTES));
    }
    if let Some(route) = form.get("w_rr") {
        state.set_redirect(short(route, ROUTE_BYTES));
    }
    for (key, bit) in FLAGS {
        match form.get(key).map(atoi) {
            Some(0) => state.clear(bit),
            Some(_) => state.set(bit),
            None => {}
        }
    }
    if let Some(set @ 0..=HIGHEST) = form.get("w_ls").map(atoi) {
        state.set_lbset(set as u8);
    }
}

/// Sets the balance of the members to their factors (`recalc_factors`).
fn restart(balancer: &Balancer) {
    let _held = balancer.state.lock();
    let mut members = balancer.members();
    if let (Some(only), None) = (members.next(), members.next()) {
        only.state.set_load_factor(100);
    }
    for member in balancer.members() {
        member.state.set_lbstatus(member.state.load_factor().into());
    }
}

fn change_checks(shown: &Shown<'_>, worker: &Worker, form: &Form) {
    let state = &worker.state;
    let interval = form.get("w_hi").and_then(|value| timeout(value, Unit::Milliseconds));
    if let Some(interval) = interval.filter(|interval| *interval >= INTERVAL_MIN) {
        state.set_check_interval_us(interval.as_micros() as u64);
    }
    let (passes, fails) = state.checks_needed();
    let count = |key: &str, old: u64| match form.get(key).map(atoi) {
        Some(count @ 1..) => count as u64,
        _ => old,
    };
    state.set_checks_needed(count("w_hp", passes), count("w_hf", fails));
    let method = form.get("w_hm").and_then(Method::of_name);
    if let Some(method) = method.filter(|method| method.is_available(shown.has_ajp)) {
        state.set_check_method(method.number());
    }
    if let Some(uri) = form.get("w_hu") {
        state.set_check_uri(short(uri, URI_BYTES));
    }
    if let (Some(conditions), Some(name)) = (shown.conditions, form.get("w_he")) {
        let is_known = conditions.iter().any(|one| one.name == name);
        state.set_check_condition(if is_known { name } else { b"" });
    }
    if matches!(Method::of_number(state.check_method()), Method::None | Method::Tcp) {
        state.set_check_condition(b"");
    }
}

/// A text, or an empty one if it is too long.
fn short(text: &[u8], most: usize) -> &[u8] {
    if text.len() <= most { text } else { b"" }
}

fn change_balancer(balancer: &Balancer, form: &Form) {
    let old = balancer.state.current();
    let mut new = old.clone();
    if let Some(name) = form.get("b_lbm")
        && let Some(place) = balancer.methods.iter().position(|(known, _)| known.as_bytes() == name)
    {
        new.method = place;
    }
    if let Some(seconds @ 0..=TIMEOUT_S) = form.get("b_tmo").map(atoi) {
        new.timeout = (seconds > 0).then(|| Duration::from_secs(seconds as u64));
    }
    if let Some(attempts @ 0..=HIGHEST) = form.get("b_max").map(atoi) {
        new.max_attempts = Some(attempts as u32);
    }
    if let Some(value) = form.get("b_sforce") {
        new.no_failover = atoi(value) != 0;
    }
    match form.get("b_ss") {
        Some(b"-") => new.sticky = None,
        Some(value) if !value.is_empty() && value.len() <= STICKY_BYTES => {
            new.sticky = Some(sticky(value));
        }
        _ => {}
    }
    if new != old {
        balancer.state.change(&new);
        if new.method != old.method {
            reset(balancer);
        }
    }
}

/// Resets what the method decides by; that is nothing in those that decide by the balance.
fn reset(balancer: &Balancer) {
    let method = balancer.methods.get(balancer.state.current().method);
    if method.is_some_and(|(name, _)| *name == "bytraffic") {
        balancer.members().for_each(|member| member.state.clear_traffic());
    }
}

/// Adds a member, which is disabled at first.
fn add(request: &Request, balancer: &Balancer, url: &[u8]) -> Result<(), u16> {
    let added = balancer.add_member(url);
    added.map_err(|why| {
        let number = match why {
            NotAdded::NoPlace => 10164,
            NotAdded::Invalid => 10163,
        };
        let (name, url) = (Verbatim::new(&balancer.name), Verbatim::new(url));
        let text = format_args!("{name}: failed to add worker {url}");
        request.log::<ProxyBalancer>(Level::Error, number, text);
        400
    })
}
