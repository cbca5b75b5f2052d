//! When workers are checked: by a task of one loop of one process, which holds a lease.
//!
//! Source: `hc_watchdog_callback`.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rt::Handle;
use rustix::io::Errno;
use server::engine::Engine;
use server::errorlog::Verbatim;
use server::host::{Host, Server};
use server::log::Level;
use server::module::Module;

use super::check::{Check, Failed};
use super::verdict::{self, Change};
use super::{ProxyHcheck, Settings};
use crate::proxy::mod_proxy::backend::{self, Place};
use crate::proxy::mod_proxy::checks::Method;
use crate::proxy::mod_proxy::status::Status;
use crate::proxy::mod_proxy::workers::Worker;
use crate::proxy::mod_proxy::{self, Proxy, shared, tls};
use crate::ssl::mod_ssl::{Ssl, backends};

/// The time between two looks at all workers (`AP_WD_TM_SLICE`).
const SLICE: Duration = Duration::from_millis(100);

/// Whether a loop of this process makes the checks.
static TAKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Whether this loop is the one.
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Renews the lease, or takes it; the loop that has it makes the checks.
pub(super) fn every_second(engine: &Engine) {
    if engine.draining.get() {
        return;
    }
    if !OWN.get() {
        if !has_balancers(&engine.server) || TAKEN.swap(true, Ordering::Relaxed) {
            return;
        }
        OWN.set(true);
        let (server, handle) = (engine.server.clone(), engine.handle.clone());
        engine.handle.spawn_local(run(server, handle));
    }
}

fn has_balancers(server: &Server) -> bool {
    let slot = server.registry.slot_of::<Proxy>();
    let settings = |host: &Arc<Host>| {
        let settings = host.server.get::<mod_proxy::Settings>(slot?)?;
        Some(!settings.workers.0.balancers.is_empty())
    };
    server.hosts.iter().filter_map(settings).any(|has| has)
}

async fn run(server: Arc<Server>, handle: Handle) {
    let text = format_args!("_proxy_hcheck_ watchdog started.");
    server.log(ProxyHcheck::FILE, Level::Debug, 3258, text);
    loop {
        if shared::take_lease(handle.clock().wall_s()) {
            look(&server, &handle);
        }
        handle.sleep(SLICE).await;
    }
}

/// Begins the checks that are due.
fn look(server: &Arc<Server>, handle: &Handle) {
    let Some(slot) = server.registry.slot_of::<Proxy>() else { return };
    for host in &server.hosts {
        let Some(settings) = host.server.get::<mod_proxy::Settings>(slot) else { continue };
        for balancer in &settings.workers.0.balancers {
            let is_due = |worker: &&Arc<Worker>| is_due((server, host), worker, handle);
            for worker in balancer.members().filter(is_due) {
                worker.state.set_checked_at_us(handle.clock().wall_us());
                let timeout = worker.parameters.timeout.or(settings.timeout.get().copied());
                let timeout = timeout.unwrap_or_else(|| host.core.timeout());
                let (server, host) = (server.clone(), host.clone());
                let task = check(server, host, handle.clone(), worker.clone(), timeout);
                handle.spawn_local(task);
            }
        }
    }
}

fn is_due((server, host): (&Server, &Host), worker: &Worker, handle: &Handle) -> bool {
    let state = &worker.state;
    if Method::of_number(state.check_method()) == Method::None
        || state.status().has(Status::STOPPED)
    {
        return false;
    }
    let now = handle.clock().wall_us();
    match state.checked_at_us() {
        // The first one is made after an interval.
        0 => {
            state.set_checked_at_us(now);
            let (scheme, place) = (Verbatim::new(&worker.target.scheme), Place::of(worker));
            let text = format_args!("Creating hc worker for {scheme}://{place}");
            server.log_host(host, ProxyHcheck::FILE, Level::Debug, 3248, text);
            false
        }
        last => now > last.saturating_add(state.check_interval_us()),
    }
}

async fn check(
    server: Arc<Server>,
    host: Arc<Host>,
    handle: Handle,
    worker: Arc<Worker>,
    timeout: Duration,
) {
    let name = Verbatim::new(&worker.name);
    let log = |level, number, text: std::fmt::Arguments<'_>| {
        server.log_host(&host, ProxyHcheck::FILE, level, number, text);
    };
    log(Level::Debug, 3256, format_args!("Health checking {name}"));
    let method = Method::of_number(worker.state.check_method());
    let slot = server.registry.slot_of::<ProxyHcheck>();
    let own = slot.and_then(|slot| host.server.get::<Settings>(slot));
    let wanted = worker.state.check_condition();
    let condition = own.and_then(|own| own.conditions.0.iter().find(|one| one.name == wanted));
    let expression = condition.map(|condition| &*condition.expression);
    let config = backends::of_checks(&server, &host);
    let status_line = |line: &[u8]| {
        log(Level::Debug, 3254, format_args!("{}", Verbatim::new(line)));
    };
    let log_line: &dyn Fn(&[u8]) = &status_line;
    let check =
        Check { worker: &worker, method, condition: expression, timeout, tls: config, log_line };
    let passed = match check.passes().await {
        Ok(passed) => passed,
        Err(Failed::Tls) if server.registry.slot_of::<Ssl>().is_none() => {
            log(Level::Error, 3252, format_args!("mod_ssl not configured?"));
            false
        }
        Err(Failed::Tls) => {
            let place = Place::of(&worker);
            let what = format!("{place} ({})", Verbatim::new(&place.host));
            let text = format_args!("HCOH: failed to enable ssl support for {what}");
            server.log_host(&host, Proxy::FILE, Level::Error, 961, text);
            false
        }
        Err(Failed::Handshake(name, error)) => {
            tls::tell((&server, &host), &Place::of(&worker), &name, &error);
            false
        }
        Err(Failed::Condition(why)) => {
            let condition = Verbatim::new(&wanted);
            let text = format_args!("Error on checking condition {condition} for {name} ({name})");
            log(Level::Info, 3301, format_args!("{text}: {why}"));
            false
        }
        Err(Failed::Unreachable(error)) => {
            tell_unreachable((&server, &host), &worker, method, &error).await;
            false
        }
        Err(Failed::Io(error)) => {
            log(Level::Debug, 3300, format_args!("Health check of {name} failed: {error}"));
            false
        }
    };
    let status = i32::from(!passed);
    let shown = method.name();
    log(Level::Debug, 3251, format_args!("Health check {shown} Status ({status}) for {name}."));
    match verdict::count(&worker.state, passed, handle.clock().wall_us()) {
        Some(Change::Enabled) => {
            log(Level::Info, 3302, format_args!("Threaded Health check ENABLING {name}"));
        }
        Some(Change::Disabled) => {
            log(Level::Info, 3303, format_args!("Threaded Health check DISABLING {name}"));
        }
        None => {}
    }
}

/// Logs that there is no connection for a check.
async fn tell_unreachable(
    (server, host): (&Server, &Host),
    worker: &Worker,
    method: Method,
    error: &io::Error,
) {
    let (scheme, place) = (protocol(method), Place::of(worker));
    let errno = Errno::from_io_error(error).unwrap_or(Errno::TIMEDOUT);
    let address = backend::last_address(worker, &place).await;
    let text = format_args!("{scheme}: attempt to connect to {address} ({place}) failed");
    server.log_host_error(host, Proxy::FILE, Level::Error, 957, Some(errno), text);
}

/// What messages about connections call the protocol of a check.
fn protocol(method: Method) -> &'static str {
    match method {
        Method::Tcp => "HCTCP",
        Method::Cping => "HCCPING",
        _ => "HCOH",
    }
}
