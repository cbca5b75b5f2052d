//! Makes the workers of each host, once its configuration is complete.
//!
//! Source: `merge_proxy_config`, `child_init`.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU16;

use conf::Node;
use server::build::Build;
use server::merge::Own;

use super::define::{BalancerDefinition, Definition, Definitions};
use super::scheme::{GROUP, SchemeProvider};
use super::status::Status;
use super::target::Target;
use super::workers::{Balancer, State, Worker, Workers};
use super::{Proxy, Settings, worker};

/// Makes the workers of all hosts (`post_config`).
pub(super) fn workers(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Proxy>() else { return };
    let schemes: Vec<(&'static str, SchemeProvider)> = {
        let all = build.registry.hooks.providers::<SchemeProvider>(GROUP);
        all.into_iter().map(|(name, scheme)| (name, *scheme)).collect()
    };
    let core = build.core_config(&build.main.server);
    let run_dir = core.and_then(|core| core.globals.0.runtime_dir.get().cloned());
    let mut maker =
        Maker { run_dir: run_dir.unwrap_or_else(|| PathBuf::from(RUNTIME_DIR)), schemes, made: 0 };
    let reverse = maker.generic("proxy:reverse");
    let mut of_main: Option<Workers> = None;
    build.edit_servers::<Settings>(slot, |settings| {
        let own = maker.defined(&settings.definitions.0);
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
        workers.run_dir.clone_from(&maker.run_dir);
        settings.workers = Own(Arc::new(workers));
    });
}

/// Notes whether any request may be proxied (`directives_read`).
pub(super) fn note_use(build: &mut Build, nodes: &[Node]) {
    let Some(slot) = build.registry.slot_of::<Proxy>() else { return };
    let may_proxy = nodes.iter().any(may_proxy);
    build.edit_servers::<Settings>(slot, |settings| settings.may_proxy = Own(may_proxy));
}

/// Whether a directive, or one in it, can make a request a proxied one. Directives of `.htaccess`
/// files are not known: there each that may override something may.
fn may_proxy(node: &Node) -> bool {
    let text = node.args.bytes();
    let mentions =
        |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    match node.name.to_string().to_ascii_lowercase().as_str() {
        "proxypass" | "proxypassmatch" | "allowoverridelist" => true,
        "proxyrequests" => mentions(b"on"),
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

/// The base of relative names of sockets, if DefaultRuntimeDir is not set.
const RUNTIME_DIR: &str = "/var/run/apache2";

struct Maker {
    run_dir: PathBuf,
    schemes: Vec<(&'static str, SchemeProvider)>,
    /// Workers so far.
    made: usize,
}

impl Maker {
    fn defined(&mut self, definitions: &Definitions) -> Workers {
        let own = definitions.workers.iter().map(|one| self.worker(one)).collect();
        let balancers = definitions.balancers.iter().map(|one| self.balancer(one)).collect();
        Workers { own, balancers, ..Workers::default() }
    }

    fn balancer(&mut self, defined: &BalancerDefinition) -> Arc<Balancer> {
        Arc::new(Balancer {
            name: defined.name.clone(),
            parameters: defined.parameters.clone(),
            members: defined.members.iter().map(|one| self.worker(one)).collect(),
        })
    }

    fn worker(&mut self, defined: &Definition) -> Arc<Worker> {
        let mut target = defined.target.clone();
        if let Some(socket) = &mut target.socket {
            let path = self.run_dir.join(std::ffi::OsStr::from_bytes(socket));
            *socket = path.as_os_str().as_bytes().to_vec();
        }
        let is_it = |(name, _): &&(&str, SchemeProvider)| name.as_bytes() == target.scheme;
        let scheme = self.schemes.iter().find(is_it).map(|(_, scheme)| *scheme);
        let status = AtomicU16::new(defined.parameters.status.bits());
        self.made += 1;
        Arc::new(Worker {
            name: defined.name.clone(),
            target,
            parameters: defined.parameters.clone(),
            scheme,
            is_pattern: defined.is_pattern,
            is_generic: false,
            number: self.made - 1,
            state: Arc::new(State { status, ..State::default() }),
        })
    }

    /// A worker of any URL.
    fn generic(&mut self, name: &str) -> Arc<Worker> {
        let parameters =
            worker::Parameters { status: Status::IGNORE_ERRORS, ..worker::Parameters::default() };
        let target = Target {
            socket: None,
            scheme: b"*".to_vec(),
            user: None,
            host: b"*".to_vec(),
            port: None,
            path: Vec::new(),
        };
        let status = AtomicU16::new(parameters.status.bits());
        self.made += 1;
        Arc::new(Worker {
            name: name.as_bytes().to_vec(),
            target,
            state: Arc::new(State { status, ..State::default() }),
            parameters,
            scheme: None,
            is_pattern: false,
            is_generic: true,
            number: self.made - 1,
        })
    }
}

impl Workers {
    /// The same workers.
    fn copy(&self) -> Workers {
        Workers { own: self.own.clone(), balancers: self.balancers.clone(), ..Workers::default() }
    }

    /// These, followed by those that a virtual host defines itself.
    fn with(&self, own: Workers) -> Workers {
        let mut all = self.copy();
        let is_new = |name: &[u8]| own.balancers.iter().all(|balancer| balancer.name != name);
        all.balancers.retain(|balancer| is_new(&balancer.name));
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
