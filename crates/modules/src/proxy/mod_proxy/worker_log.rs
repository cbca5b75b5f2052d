//! What the log says of workers and their connections at the levels `info` and `debug`, in Apache's
//! words: from the definition of a worker to the release of a connection.
//!
//! Source: `ap_proxy_define_worker_ex`, `balancer_post_config`, `ap_proxy_initialize_worker`,
//! `ap_proxy_determine_connection`, `connection_cleanup`.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use rt::Stream;
use server::engine::Engine;
use server::errorlog::Verbatim;
use server::host::{Host, Server};
use server::log::Level;
use server::module::Module;

use super::backend::{Options, Place, place, socket_path};
use super::scheme::Exchange;
use super::shared::{BALANCER_BYTES, WORKER_BYTES};
use super::workers::Worker;
use super::{Proxy, Settings};
use crate::proxy::mod_proxy_balancer::ProxyBalancer;

/// The protocols whose connections have no filters in Apache, which are what is complete.
const WITHOUT_FILTERS: [&str; 4] = ["FCGI", "SCGI", "AJP", "uwsgi"];

/// A line about a definition, for the log of its host once there is one.
#[derive(Clone)]
pub struct Line {
    pub level: Level,
    pub number: u32,
    pub text: String,
}

/// Logs how workers and balancers were defined, and their memory (`logs_opened`).
pub(super) fn at_start(server: &Arc<Server>) {
    of_hosts(server, |host, settings| {
        let log = |level, number, text: fmt::Arguments<'_>| {
            server.log_host(host, Proxy::FILE, level, number, text);
        };
        for line in &settings.definitions.0.lines {
            log(line.level, line.number, format_args!("{}", line.text));
        }
        let balancers = &settings.definitions.0.balancers;
        if balancers.is_empty() {
            return;
        }
        let log_balancer = |number, text: fmt::Arguments<'_>| {
            server.log_host(host, ProxyBalancer::FILE, Level::Debug, number, text);
        };
        let count = balancers.len();
        let text = format_args!("Doing balancers create: {BALANCER_BYTES}, {count} ({count})");
        log_balancer(1178, text);
        for (at, balancer) in balancers.iter().enumerate() {
            let name = Verbatim::new(&balancer.name);
            log(Level::Debug, 2337, format_args!("copying shm[{at}] for {name}"));
            let grown = balancer.parameters.growth.unwrap_or(0) as usize;
            let places = balancer.members.len() + grown;
            let text = format_args!("{name} ({name}), {WORKER_BYTES}, {places} [{at}]");
            log_balancer(1184, format_args!("Doing workers create: {text}"));
            for (at, member) in balancer.members.iter().enumerate() {
                let worker = Verbatim::new(&member.name);
                log(Level::Debug, 2338, format_args!("copying shm[{at}] for worker: {worker}"));
            }
        }
    });
}

/// Logs which workers a child process has (`child_started`).
pub(super) fn by_child(server: &Arc<Server>) {
    of_hosts(server, |host, settings| {
        if host.core.log.of(Proxy::FILE) < Level::Debug
            && host.core.log.of(ProxyBalancer::FILE) < Level::Debug
        {
            return;
        }
        let workers = &settings.workers.0;
        for balancer in &workers.balancers {
            let name = Verbatim::new(&balancer.name);
            for worker in &balancer.configured {
                let shown = with_socket(worker);
                let text =
                    format_args!("Looking at {name} -> {} initialized?", Verbatim::new(&shown));
                server.log_host(host, ProxyBalancer::FILE, Level::Debug, 1158, text);
                initialized(server, host, worker);
            }
        }
        let generic = workers.reverse.iter().chain(&workers.forward);
        workers.own.iter().chain(generic).for_each(|worker| initialized(server, host, worker));
    });
}

fn initialized(server: &Server, host: &Host, worker: &Worker) {
    let log = |number, text: fmt::Arguments<'_>| {
        server.log_host(host, Proxy::FILE, Level::Debug, number, text);
    };
    let name = with_socket(worker);
    let name = Verbatim::new(&name);
    log(925, format_args!("initializing worker {name} shared"));
    log(927, format_args!("initializing worker {name} local"));
    let (pid, place) = (std::process::id(), Place::of(worker));
    let parameters = &worker.parameters;
    let min = parameters.min.unwrap_or(0);
    // Unlike in Apache, there need not be a limit.
    let most = |limit: Option<u32>| match limit.filter(|limit| *limit > 0) {
        Some(limit) => limit.to_string(),
        None => "none".to_owned(),
    };
    let (max, smax) = (most(parameters.max), most(parameters.smax.or(parameters.max)));
    let text = format_args!("initialized pool in child {pid} for ({place})");
    log(930, format_args!("{text} min={min} max={max} smax={smax}"));
}

/// A worker's name, behind the path of its socket (`ap_proxy_worker_name`).
fn with_socket(worker: &Worker) -> Cow<'_, [u8]> {
    match &worker.target.socket {
        Some(path) => Cow::Owned([b"unix:", &path[..], b"|", &worker.name].concat()),
        None => Cow::Borrowed(&worker.name),
    }
}

fn of_hosts(server: &Server, each: impl Fn(&Host, &Settings)) {
    let Some(slot) = server.registry.slot_of::<Proxy>() else { return };
    for host in &server.hosts {
        if let Some(settings) = host.server.get::<Settings>(slot) {
            each(host, settings);
        }
    }
}

/// A connection that a request has, if the log says so; dropping it logs that it has not any more.
pub struct Taken {
    engine: Rc<Engine>,
    host: Arc<Host>,
    /// What messages call its protocol.
    scheme: String,
    /// Where the worker is.
    place: String,
}

impl Taken {
    /// Logs that the exchange has got a connection, or room for one, and where its URL leads.
    ///
    /// # Errors
    /// The status of the response, if that is nowhere.
    pub(super) fn of(
        exchange: &mut Exchange<'_>,
        options: &Options<'_>,
    ) -> Result<Option<Box<Taken>>, u16> {
        if exchange.request.host.core.log.of(Proxy::FILE) < Level::Debug {
            return Ok(None);
        }
        let to = place(exchange)?;
        let request = &*exchange.request;
        let taken = Taken {
            engine: request.engine.clone(),
            host: request.host.clone(),
            scheme: options.shown_name(exchange).to_string(),
            place: Place::of(exchange.worker).to_string(),
        };
        let Taken { scheme, place, .. } = &taken;
        taken.log(942, format_args!("{scheme}: has acquired connection for ({place})"));
        let log = |number, text: fmt::Arguments<'_>| {
            request.log::<Proxy>(Level::Debug, number, text);
        };
        log(944, format_args!("connecting {} to {to}", Verbatim::new(exchange.url)));
        if let Some(path) = exchange.socket {
            let scheme = Verbatim::new(exchange.scheme());
            let path = socket_path(request, path);
            let path = path.display();
            let text = format_args!("{scheme}: has determined UDS as {path} (for {})", taken.place);
            taken.log(2545, text);
        }
        log(947, format_args!("connecting {} to {to} ({to})", Verbatim::new(path(exchange.url))));
        Ok(Some(Box::new(taken)))
    }

    /// Logs that there is a new connection.
    pub(super) fn connected(&self, stream: &Stream, socket: Option<&Path>, to: &Place<'_>) {
        let scheme = &self.scheme;
        let address = match (socket, stream.peer_addr()) {
            (Some(path), _) => {
                let what = "connection established with Unix domain socket";
                self.log(2823, format_args!("{scheme}: {what} {} ({to})", path.display()));
                path.display().to_string()
            }
            (None, address) => {
                let address =
                    address.map_or_else(|_| to.to_string(), |address| address.to_string());
                let what = "connection established with";
                self.log(2824, format_args!("{scheme}: {what} {address} ({to})"));
                address
            }
        };
        if !WITHOUT_FILTERS.contains(&scheme.as_str()) {
            let host = Verbatim::new(&to.host);
            self.log(962, format_args!("{scheme}: connection complete to {address} ({host})"));
        }
    }

    fn log(&self, number: u32, text: fmt::Arguments<'_>) {
        self.engine.server.log_host(&self.host, Proxy::FILE, Level::Debug, number, text);
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let Taken { scheme, place, .. } = &*self;
        self.log(943, format_args!("{scheme}: has released connection for ({place})"));
    }
}

/// Path and query of a URL.
fn path(url: &[u8]) -> &[u8] {
    let rest = url.windows(3).position(|three| three == b"://").map_or(0, |at| at + 3);
    let rest = url.get(rest..).unwrap_or_default();
    let slash = rest.iter().position(|byte| *byte == b'/');
    slash.and_then(|at| rest.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_follow_the_authority() {
        let of = |url: &str| String::from_utf8_lossy(path(url.as_bytes())).into_owned();
        assert_eq!(of("http://a:80/b/c?d=/e"), "/b/c?d=/e");
        assert_eq!((of("http://a").as_str(), of("a:443").as_str()), ("", ""));
    }
}
