//! What the configuration as a whole says, and the companion that it needs.

use std::collections::HashSet;
use std::sync::Arc;

use bstr::BStr;
use conf::Span;
use mpm::companion::Task;
use mpm::{Companion, Identity, Line};
use server::build::Build;
use server::host::Server;

use super::companion::{self, GroupPlan, Plan};
use super::runtime::{Group, Runtime};
use super::script::host_name;
use super::{Settings, Wsgi};
use crate::mpm::{Kind, Numbers};

/// Threads of a process group (`threads`).
const THREADS: usize = 15;

/// The most threads of a process of embedded mode.
const EMBEDDED_THREADS_MAX: usize = 16;

/// Checks what concerns several directives.
pub(super) fn check(build: &mut Build) {
    let mut faults: Vec<(Span, &str)> = Vec::new();
    let mut names: HashSet<Vec<u8>> = HashSet::new();
    let hosts = std::iter::once(&build.main).chain(&build.hosts);
    let settings: Vec<&Settings> =
        hosts.filter_map(|host| build.server_config::<Wsgi>(&host.server)).collect();
    for group in settings.iter().flat_map(|settings| &settings.groups.0) {
        if !names.insert(group.name.clone()) {
            faults.push((group.span, "Name duplicates previous WSGI daemon definition."));
        }
    }
    for import in settings.iter().flat_map(|settings| &settings.imports.0) {
        let is_known = import.process_group.is_empty() || names.contains(&import.process_group);
        if !is_known {
            faults.push((import.span, "WSGI process group not yet configured."));
        }
    }
    for (span, fault) in faults {
        build.error(span, fault);
    }
}

/// The companion that starts the processes of applications; `None` if the module is not loaded.
/// `identity` is that of the children.
///
/// # Errors
/// Its line can't be created.
pub fn companion(
    server: &Arc<Server>,
    identity: Option<Identity>,
) -> Result<Option<Companion>, String> {
    let Some(slot) = server.registry.slot_of::<Wsgi>() else { return Ok(None) };
    let Some(main) = server.main().server.share::<Settings>(slot) else { return Ok(None) };
    let line = Line::new().map_err(|error| format!("no line to a companion: {error}"))?;
    let line = Arc::new(line);
    let counts = |index: u32| main.runtime.0.counts().get()?.of(usize::try_from(index).ok()?);
    let mut groups = vec![Group::new(0, None, None, counts(0))];
    let mut plans = vec![GroupPlan { identity: identity.clone(), ..plan_of_embedded(server) }];
    for host in &server.hosts {
        let Some(settings) = host.server.share::<Settings>(slot) else { continue };
        for daemon in &settings.groups.0 {
            let index = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let (processes, threads) =
                (daemon.processes.unwrap_or(1), daemon.threads.unwrap_or(THREADS));
            let own = (!host.is_main()).then(|| host_name(host));
            groups.push(Group::new(index, Some(daemon.clone()), own, counts(index)));
            plans.push(GroupPlan {
                daemon: Some(daemon.clone()),
                identity: daemon.identity(identity.as_ref()),
                processes,
                processes_max: processes,
                threads,
                is_multiprocess: daemon.processes.is_some(),
                imports: Vec::new(),
            });
        }
    }
    add_imports(server, slot, &mut plans);
    let plan = Arc::new(Plan {
        groups: plans,
        python: main.python.0.clone(),
        interpreters: main.interpreters.0.clone(),
        software: server.software.clone(),
        loops_max: Numbers::of(server).map_or(1, |(_, numbers)| numbers.max_request_workers),
        server: Arc::downgrade(server),
        mpm: Numbers::of(server).map_or("event", |(kind, _)| kind_name(kind)),
    });
    main.runtime.0.set(Runtime { line: line.clone(), groups });
    Ok(Some(Companion {
        name: "companion that runs WSGI applications".to_owned(),
        line,
        task: Task::Function(Arc::new(move |line, counts, _| companion::run(&plan, line, counts))),
    }))
}

/// Tells each group which scripts it loads at its start.
fn add_imports(server: &Server, slot: usize, plans: &mut [GroupPlan]) {
    for host in &server.hosts {
        let Some(settings) = host.server.share::<Settings>(slot) else { continue };
        for import in &settings.imports.0 {
            let plan = plans.iter_mut().find(|plan| plan.name() == import.process_group);
            if let Some(plan) = plan {
                plan.imports.push((import.application_group.clone(), import.path.clone()));
            }
        }
    }
}

fn plan_of_embedded(server: &Server) -> GroupPlan {
    let (processes_max, threads) = embedded_size(server);
    GroupPlan {
        daemon: None,
        identity: None,
        processes: 1,
        processes_max,
        threads,
        is_multiprocess: processes_max > 1,
        imports: Vec::new(),
    }
}

/// The most processes of embedded mode, and the threads of each: as many requests as the server
/// takes at once.
fn embedded_size(server: &Server) -> (usize, usize) {
    let Some((kind, numbers)) = Numbers::of(server) else { return (1, 1) };
    let threads = match kind {
        Kind::Prefork => 1,
        _ => numbers.threads_per_child.clamp(1, EMBEDDED_THREADS_MAX),
    };
    (numbers.max_request_workers.div_ceil(threads).max(1), threads)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Worker => "worker",
        Kind::Prefork => "prefork",
        Kind::Event => "event",
        Kind::Loop => "loop",
    }
}

impl GroupPlan {
    /// Its name; empty for embedded mode.
    pub fn name(&self) -> &[u8] {
        self.daemon.as_ref().map_or(&[], |daemon| &daemon.name)
    }

    /// Its name in messages.
    pub fn label(&self) -> String {
        match self.name() {
            [] => "embedded mode".to_owned(),
            name => format!("'{}'", BStr::new(name)),
        }
    }
}
