//! Makes the workers of each host, once its configuration is complete.
//!
//! Source: `merge_proxy_config`, `child_init`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use conf::Node;
use server::build::Build;
use server::merge::Own;

use super::backend::{SOURCE_PORT, STATUS};
use super::balancing::BalancingProvider;
use super::define::{BalancerDefinition, Definition};
use super::growth::{Ground, Spare};
use super::lbmethod::MethodProvider;
use super::scheme::{GROUP, SchemeProvider, TUNNELS, UPGRADES};
use super::shared::{BalancerState, State};
use super::status::Status;
use super::target::Target;
use super::workers::{Balancer, Worker, Workers};
use super::{Proxy, Settings, balancer, balancing, lbmethod, worker};

/// Makes the workers of all hosts (`post_config`).
pub(super) fn workers(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Proxy>() else { return };
    if !is_used(build) {
        return;
    }
    let schemes: Vec<(&'static str, SchemeProvider)> = {
        let provided = |group| build.registry.hooks.providers::<SchemeProvider>(group);
        let all = provided(UPGRADES).into_iter().chain(provided(GROUP));
        all.map(|(name, scheme)| (name, *scheme)).collect()
    };
    let tunnels: Option<SchemeProvider> = {
        let all = build.registry.hooks.providers::<SchemeProvider>(TUNNELS);
        all.into_iter().map(|(_, provider)| *provider).next()
    };
    let upgrades = build.registry.hooks.providers::<SchemeProvider>(UPGRADES);
    let upgrades = upgrades.into_iter().map(|(_, provider)| *provider).next();
    let core = build.core_config(&build.main.server);
    let run_dir = core.and_then(|core| core.globals.0.runtime_dir.get().cloned());
    let mut methods: Vec<(&'static str, MethodProvider)> = {
        let all = build.registry.hooks.providers::<MethodProvider>(lbmethod::GROUP);
        all.into_iter().map(|(name, method)| (name, *method)).collect()
    };
    methods.sort_by_key(|(name, _)| *name);
    let (group, name) = balancing::PROVIDER;
    let balancing = build.provider::<BalancingProvider>(group, name).map(|provider| *provider);
    let run_dir = run_dir.unwrap_or_else(|| PathBuf::from(RUNTIME_DIR));
    let ground = Arc::new(Ground { schemes: schemes.clone(), run_dir: run_dir.clone() });
    let methods = methods.into();
    let mut maker = Maker { run_dir, schemes, methods, ground, made: 0, balancers: 0 };
    let reverse = maker.generic("proxy:reverse");
    let mut of_main: Option<Workers> = None;
    build.edit_servers::<Settings>(slot, |settings| {
        let own = maker.defined(settings);
        let mut workers = match &of_main {
            // That of the main server is the first.
            None => {
                of_main = Some(own.copy());
                own
            }
            Some(main) if settings.inherits_workers() => main.with(own),
            Some(_) => own,
        };
        workers.reverse = Some(reverse.clone());
        workers.forward = settings.requests.or(false).then(|| maker.generic("proxy:forward"));
        workers.schemes.clone_from(&maker.schemes);
        workers.balancing = balancing;
        workers.tunnels = tunnels;
        workers.upgrades = upgrades;
        workers.run_dir.clone_from(&maker.run_dir);
        settings.workers = Own(Arc::new(workers));
    });
}

/// Whether there is a worker, or any request may be proxied.
fn is_used(build: &Build) -> bool {
    let hosts = build.hosts.iter().chain([&build.main]);
    let mut settings = hosts.filter_map(|host| build.server_config::<Proxy>(&host.server));
    settings.any(|settings| settings.may_proxy.0 || !settings.definitions.0.is_empty())
}

/// Notes whether any request may be proxied (`directives_read`).
pub(super) fn note_use(build: &mut Build, nodes: &[Node]) {
    let Some(slot) = build.registry.slot_of::<Proxy>() else { return };
    if nodes.iter().any(may_proxy) {
        build.edit_servers::<Settings>(slot, |settings| settings.may_proxy = Own(true));
    }
    if nodes.iter().any(mentions_notes) {
        build.edit_servers::<Settings>(slot, |settings| settings.has_notes = Own(true));
    }
}

/// Whether a directive, or one in it, mentions a note of connections.
fn mentions_notes(node: &Node) -> bool {
    let text = node.args.bytes();
    let mentions = |name: &[u8]| text.windows(name.len()).any(|window| window == name);
    mentions(SOURCE_PORT) || mentions(STATUS) || node.children.iter().flatten().any(mentions_notes)
}

/// Whether a directive, or one in it, can make a request a proxied one. Directives of `.htaccess`
/// files are not known: there each that may override something may.
fn may_proxy(node: &Node) -> bool {
    let text = node.args.bytes();
    let mentions =
        |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    match node.name.to_string().to_ascii_lowercase().as_str() {
        "proxypass" | "proxypassmatch" | "allowoverridelist" => true,
        "proxyrequests" | "proxyexpressenable" => mentions(b"on"),
        "rewriterule" => {
            let flags = text.rsplit(|byte| *byte == b'[').next().unwrap_or_default();
            let word = |flag: &[u8]| flag.trim_ascii().to_ascii_lowercase();
            let mut flags = flags.split(|byte| matches!(byte, b',' | b']')).map(word);
            flags.any(|flag| matches!(&flag[..], b"p" | b"proxy" | [b'h', ..]))
        }
        "sethandler" | "addhandler" | "action" | "script" => mentions(b"proxy:") || mentions(b"%{"),
        "allowoverride" => !mentions(b"none"),
        _ => node.children.iter().flatten().any(may_proxy),
    }
}

/// `lbmethod`, if it is not set.
pub const DEFAULT_METHOD: &[u8] = b"byrequests";
/// The base of relative names of sockets, if DefaultRuntimeDir is not set.
pub const RUNTIME_DIR: &str = "/var/run/apache2";

struct Maker {
    run_dir: PathBuf,
    schemes: Vec<(&'static str, SchemeProvider)>,
    /// Sorted by name.
    methods: Arc<[(&'static str, MethodProvider)]>,
    ground: Arc<Ground>,
    /// Workers so far.
    made: usize,
    /// Balancers so far.
    balancers: usize,
}

impl Maker {
    fn defined(&mut self, settings: &Settings) -> Workers {
        let definitions = &settings.definitions.0;
        let added = worker::Parameters {
            timeout: settings.timeout.get().copied(),
            io_buffer: settings.io_buffer.get().copied(),
            receive_buffer: settings.receive_buffer.get().copied(),
            ..worker::Parameters::default()
        };
        let own = definitions.workers.iter().map(|one| self.worker(one, false)).collect();
        let balancers =
            definitions.balancers.iter().map(|one| self.balancer(one, &added)).collect();
        Workers { own, balancers, ..Workers::default() }
    }

    fn balancer(
        &mut self,
        defined: &BalancerDefinition,
        added: &worker::Parameters,
    ) -> Arc<Balancer> {
        self.balancers += 1;
        let nonce = defined.parameters.nonce.clone().unwrap_or_else(new_nonce);
        let parameters = balancer::Parameters { nonce: Some(nonce), ..defined.parameters.clone() };
        let name = defined.parameters.method.as_deref().unwrap_or(DEFAULT_METHOD);
        let is_it =
            |(known, _): &(&str, MethodProvider)| known.as_bytes().eq_ignore_ascii_case(name);
        let method = self.methods.iter().position(is_it).unwrap_or(self.methods.len());
        Arc::new(Balancer {
            name: defined.name.clone(),
            configured: defined.members.iter().map(|one| self.worker(one, true)).collect(),
            number: self.balancers - 1,
            methods: self.methods.clone(),
            method,
            spares: (0..parameters.growth.unwrap_or(0)).map(|_| self.spare(added)).collect(),
            path: defined.path.clone(),
            state: BalancerState::new(&parameters, method),
            parameters,
        })
    }

    fn worker(&mut self, defined: &Definition, is_member: bool) -> Arc<Worker> {
        let mut target = defined.target.clone();
        if let Some(socket) = &mut target.socket {
            let path = self.run_dir.join(std::ffi::OsStr::from_bytes(socket));
            *socket = path.as_os_str().as_bytes().to_vec();
        }
        let is_it = |(name, _): &&(&str, SchemeProvider)| name.as_bytes() == target.scheme;
        let scheme = self.schemes.iter().find(is_it).map(|(_, scheme)| *scheme);
        self.made += 1;
        Arc::new(Worker {
            name: defined.name.clone(),
            target,
            parameters: defined.parameters.clone(),
            scheme,
            is_pattern: defined.is_pattern,
            is_generic: false,
            is_member,
            number: self.made - 1,
            state: Arc::new(match is_member {
                true => State::new(&defined.parameters),
                false => State::of_worker(&defined.parameters),
            }),
        })
    }

    /// A place for a member that is added after start.
    fn spare(&mut self, parameters: &worker::Parameters) -> Spare {
        Spare::new(Arc::new(self.blank("", parameters.clone(), true)), self.ground.clone())
    }

    /// A worker of any URL.
    fn generic(&mut self, name: &str) -> Arc<Worker> {
        let parameters =
            worker::Parameters { status: Status::IGNORE_ERRORS, ..worker::Parameters::default() };
        Arc::new(Worker { is_generic: true, ..self.blank(name, parameters, false) })
    }

    /// A worker without a URL.
    fn blank(&mut self, name: &str, parameters: worker::Parameters, is_member: bool) -> Worker {
        let target = Target {
            socket: None,
            scheme: b"*".to_vec(),
            user: None,
            host: b"*".to_vec(),
            port: None,
            path: Vec::new(),
        };
        self.made += 1;
        Worker {
            name: name.as_bytes().to_vec(),
            target,
            state: Arc::new(State::of_worker(&parameters)),
            parameters,
            scheme: None,
            is_pattern: false,
            is_generic: false,
            is_member,
            number: self.made - 1,
        }
    }
}

/// A random nonce (`apr_uuid_get`).
fn new_nonce() -> Vec<u8> {
    let bytes = crate::metadata::mod_unique_id::random();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    let parts = parts.map(|part| hex.get(part).unwrap_or_default());
    parts.join("-").into_bytes()
}

impl Workers {
    /// The same workers.
    fn copy(&self) -> Workers {
        Workers { own: self.own.clone(), balancers: self.balancers.clone(), ..Workers::default() }
    }

    /// These, followed by those that a virtual host defines itself: of balancers with the same name
    /// the first one counts.
    fn with(&self, own: Workers) -> Workers {
        let mut all = self.copy();
        all.balancers.extend(own.balancers);
        all.own.extend(own.own);
        all
    }
}

impl Settings {
    /// Whether a virtual host has the workers of the main server.
    fn inherits_workers(&self) -> bool {
        self.inherits_mappings.or(true) || self.inherits_balancers.or(true)
    }
}
