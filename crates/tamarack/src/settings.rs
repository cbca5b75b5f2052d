//! Extracts the supervisor's settings from the modules of a configuration.

use std::ffi::CString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use conf::Tree;
use modules::arch::mod_unixd::{self, Unixd, spawner};
use modules::core::mod_watchdog::Watchdog;
use modules::mappers::mod_rewrite;
use modules::mpm::{self as mpms, Kind, Listen, Numbers};
use modules::ssl::mod_ssl;
use modules::wsgi::mod_wsgi;
use mpm::affinity::{Affinity, Cpus, Plan, Roots, Topology};
use mpm::settings::DEFAULT_BACKLOG;
use mpm::{AcceptFilter, Companion, Identity, ListenAddress, Listener, Settings, Shape, Spare};
use nix::unistd::{Gid, getgrouplist};
use server::core::{Globals, MutexSetting};
use server::host::Server;
use server::log::Level;
use server::module::Module;

/// The default of `PidFile`.
const DEFAULT_PID_FILE: &str = "logs/httpd.pid";

/// httpd's default user.
const NOBODY: &str = "#-1";

/// The supervisor's settings.
pub fn of(server: &Arc<Server>) -> Result<Settings, String> {
    let listeners = listeners(server);
    if listeners.is_empty() {
        return Err("no listening sockets available, shutting down".to_owned());
    }
    let globals = globals(server);
    let (kind, numbers) = Numbers::of(server).ok_or("no MPM is active")?;
    // A thread of worker serves one connection, a loop of event or loop more.
    let programs_max = match kind {
        Kind::Worker => numbers.max_request_workers,
        Kind::Prefork | Kind::Event | Kind::Loop => numbers.admitted(),
    };
    let wait = settings(server).and_then(|mpm| mpm.graceful_shutdown_timeout_s.0.get().copied());
    let affinity = affinity(globals);
    Ok(Settings {
        listeners,
        identity: identity(server)?,
        chroot: unixd(server).and_then(|unixd| unixd.chroot.0.get().cloned()),
        core_dump_directory: globals.core_dump_directory.get().cloned(),
        pid_file: pid_file(server),
        shape: shape(kind, &numbers, server),
        spare: matches!(kind, Kind::Worker | Kind::Prefork).then(|| Spare {
            least: numbers.min_spare,
            most: numbers.max_spare,
            processes_max: numbers.processes_max(),
        }),
        listener_buckets: buckets(server),
        admitted: numbers.admitted(),
        nearly_admitted: numbers.admitted().saturating_sub(numbers.min_spare),
        blocking_threads: numbers.threads_per_child,
        thread_stack_bytes: thread_stack(globals),
        server_limit: numbers.server_limit,
        graceful_shutdown_timeout: wait
            .filter(|seconds| *seconds > 0)
            .map(|seconds| Duration::from_secs(seconds.into())),
        stall_limit: stall_limit(server),
        max_connections_per_child: globals.max_connections_per_child.or(0),
        counted_hosts: server.counted_hosts(),
        extended_status: globals.extended_status.or(false),
        affinity,
        companions: companions(server, programs_max)?,
    })
}

/// Those of programs: `RewriteMap prg:`, what starts programs for requests, of which as many run as
/// connections are served, and what runs WSGI applications.
fn companions(server: &Arc<Server>, programs_max: usize) -> Result<Vec<Companion>, String> {
    let mut companions = mod_rewrite::companions(server)?;
    companions.extend(spawner::companion(server, programs_max)?);
    companions.extend(mod_wsgi::companion(server, identity(server)?)?);
    Ok(companions)
}

/// `LoopStallTimeout`
fn stall_limit(server: &Server) -> Option<Duration> {
    let watchdog = of_module::<Watchdog>(server)?;
    Some(watchdog.stall_limit()).filter(|limit| !limit.is_zero())
}

/// `CPUAffinity` and `CPUAffinityAdapt`
fn affinity(globals: &Globals) -> Affinity {
    let default = Affinity::default();
    Affinity {
        setting: globals.cpu_affinity.get().cloned().unwrap_or(default.setting),
        adapt: globals.cpu_affinity_adapt.or(default.adapt),
    }
}

/// The number of loops on this machine.
fn loops(affinity: &Affinity) -> usize {
    let topology = Topology::read(&Roots::default());
    Plan::loops_wanted(&topology, &Cpus::detect(), &affinity.setting)
}

/// `-t -D DUMP_CPU`
pub fn cpu_report(server: &Arc<Server>) -> Result<String, String> {
    let settings = of(server)?;
    let topology = Topology::read(&Roots::default());
    let cpus = Cpus::detect();
    Ok(mpm::affinity::report::report(&topology, &cpus, settings.shape, &settings.affinity))
}

/// `-t -D DUMP_CERTS`, in httpd's layout.
pub fn certificates(server: &Server) -> String {
    let mut out = "Server certificates:\n".to_owned();
    // httpd's list of hosts begins with the main server, and continues in reverse order.
    let hosts = server.hosts.iter().take(1).chain(server.hosts.iter().skip(1).rev());
    for file in hosts.flat_map(|host| mod_ssl::certificate_files(server, host)) {
        let _ = writeln!(out, "  {}", String::from_utf8_lossy(file));
    }
    out
}

/// The shape of the active MPM.
fn shape(kind: Kind, numbers: &Numbers, server: &Server) -> Shape {
    let processes = numbers.start_servers.max(buckets(server).min(numbers.processes_max()));
    match kind {
        Kind::Event => {
            let cpus = loops(&affinity(globals(server)));
            let said = settings(server);
            let start = said.is_some_and(|mpm| mpm.start_servers.0.is_set());
            let start = start.then_some(numbers.start_servers);
            Shape::event(cpus, start, Some(numbers.server_limit))
        }
        Kind::Worker => Shape::Worker { processes, threads: numbers.threads_per_child },
        Kind::Prefork => Shape::Prefork { processes },
        Kind::Loop => Shape::Loop,
    }
}

/// The number of listening sockets per address in prefork and worker: one for each group of CPUs
/// that `ListenCoresBucketsRatio` defines, or one (`ap_listeners_buckets`).
fn buckets(server: &Server) -> usize {
    let ratio = settings(server).and_then(|mpm| mpm.buckets_ratio.0.get().copied());
    let Some(ratio) = ratio.and_then(|ratio| usize::try_from(ratio).ok()) else { return 1 };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    (cpus / ratio.max(1)).max(1)
}

/// The smallest usable stack of a thread in bytes; smaller values are raised to it.
const STACK_BYTES_LEAST: usize = 256 * 1024;

/// `ThreadStackSize`
fn thread_stack(globals: &Globals) -> Option<usize> {
    let bytes = *globals.thread_stack_bytes.get()?;
    (bytes > 0).then(|| bytes.max(STACK_BYTES_LEAST))
}

fn globals(server: &Server) -> &Globals {
    &server.main().core.globals.0
}

fn of_module<M: Module>(server: &Server) -> Option<&M::Server> {
    server.main().server.get(server.registry.slot_of::<M>()?)
}

/// The active MPM's configuration.
fn settings(server: &Server) -> Option<&mpms::Settings> {
    mpms::active(&server.registry, &server.main().server).map(|(_, settings)| settings)
}

fn unixd(server: &Server) -> Option<&mod_unixd::Settings> {
    of_module::<Unixd>(server)
}

/// `User` and `Group`; only a supervisor that runs as root uses them.
///
/// # Errors
/// The supervisor runs as root, and there is a `User` without `Group`.
fn identity(server: &Server) -> Result<Option<Identity>, String> {
    let unixd = unixd(server);
    let user = unixd.and_then(|unixd| unixd.user.0.get());
    if !mpm::privileges::is_root() {
        return Ok(None);
    }
    let Some((unixd, user)) = unixd.zip(user) else { return Ok(None) };
    let Some(group) = unixd.group.0.get().copied() else {
        let why = "User is set without Group, so children would stay root";
        return Err(format!(
            "AH02156: setgid: unable to set group id to Group {}: {why}",
            u32::MAX
        ));
    };
    let name = user.name.as_deref().and_then(|name| CString::new(name).ok());
    let groups = name.map(|name| getgrouplist(&name, Gid::from_raw(group)));
    let groups = match groups {
        Some(Ok(groups)) => groups.iter().map(|group| group.as_raw()).collect(),
        None => vec![group],
        Some(Err(errno)) => {
            let name = user.name.as_deref().unwrap_or_default();
            let text = format!("getgrouplist: unable to find the groups of user {name}: {errno}");
            server::errorlog::of_process(Some(server), Level::Error, 2157, &text);
            vec![group]
        }
    };
    Ok(Some(Identity { user: user.id, group, groups }))
}

/// `PidFile`
pub fn pid_file(server: &Server) -> PathBuf {
    let named = globals(server).pid_file.get().cloned();
    named.unwrap_or_else(|| server.server_root.join(DEFAULT_PID_FILE))
}

/// `Listen`, with related settings.
pub fn listeners(server: &Server) -> Vec<Listener> {
    let Some(mpm) = settings(server) else { return Vec::new() };
    let globals = globals(server);
    let listener = |listen: &Listen| Listener {
        address: match listen.socket() {
            Some(socket) => ListenAddress::Socket(socket),
            None => ListenAddress::Any { port: listen.port },
        },
        protocol: listen.protocol.as_str().into(),
        backlog: mpm.backlog.0.or(DEFAULT_BACKLOG),
        accept_filter: accept_filter(globals, &listen.protocol),
        send_buffer_bytes: mpm.send_buffer_bytes.0.or(0),
        receive_buffer_bytes: mpm.receive_buffer_bytes.0.or(0),
    };
    mpm.listen.0.iter().map(listener).collect()
}

/// `AcceptFilter`: the value for the protocol, by default `data` for http and https, and none for
/// others (`find_accf_name`, server/listen.c).
fn accept_filter(globals: &Globals, protocol: &str) -> AcceptFilter {
    let is_held_back = match globals.accept_filters.get(protocol.as_bytes()) {
        Some(said) => !said.eq_ignore_ascii_case(b"none"),
        None => matches!(protocol, "http" | "https"),
    };
    if is_held_back { AcceptFilter::Data } else { AcceptFilter::None }
}

/// `-t -D DUMP_RUN_CFG`, in httpd's layout.
pub fn run_config(server: &Server, tree: &Tree) -> String {
    let mut out = format!("ServerRoot: \"{}\"\n", server.server_root.display());
    let core = &server.main().core;
    if let Some(root) = core.document_root.get() {
        let _ = writeln!(out, "Main DocumentRoot: \"{}\"", String::from_utf8_lossy(root));
    }
    if let Some(target) = core.error_log.get().and_then(|id| server.sinks.target(*id)) {
        let _ = writeln!(out, "Main ErrorLog: \"{target}\"");
    }
    out.push_str(&mutexes(server));
    let _ = writeln!(out, "PidFile: \"{}\"", pid_file(server).display());
    out.push_str(&String::from_utf8_lossy(&tree.dump_defines()));
    out.push_str(&run_identity(server));
    out
}

/// `Mutex` lines, for scripts: locks here are atomics, whatever the configuration.
fn mutexes(server: &Server) -> String {
    let globals = globals(server);
    let unset = MutexSetting { mechanism: "default", folder: None, omit_pid: false };
    let default = globals.mutexes.get(b"default".as_slice()).unwrap_or(&unset);
    let folder = default.folder.clone().unwrap_or_else(|| {
        let folder = globals.runtime_dir.get();
        let folder = folder.map_or(Path::new("/var/run/apache2"), |folder| folder.as_path());
        format!("{}/", folder.display().to_string().trim_end_matches('/'))
    });
    let shown = |name: &str, setting: &MutexSetting| {
        let folder = match (&setting.folder, setting.mechanism) {
            (Some(folder), _) => folder,
            // A semaphore has no file.
            (None, "posixsem") if name != "default" => "",
            (None, _) => &folder,
        };
        let omit_pid = if setting.omit_pid { "[OmitPid]" } else { "" };
        format!("Mutex {name}: dir=\"{folder}\" mechanism={} {omit_pid}\n", setting.mechanism)
    };
    let mut out = shown("default", default);
    let of_rewrite = server.registry.is_active("rewrite_module").then_some(&"rewrite-map");
    let of_tls = ["ssl-cache", "ssl-stapling", "ssl-stapling-refresh"];
    let of_tls = of_tls.iter().filter(|_| server.registry.is_active("ssl_module"));
    for name in std::iter::once(&"watchdog-callback").chain(of_rewrite).chain(of_tls) {
        match globals.mutexes.get(name.as_bytes()) {
            Some(setting) => out.push_str(&shown(name, setting)),
            None => {
                let _ = writeln!(out, "Mutex {name}: using_defaults");
            }
        }
    }
    out
}

/// `User` and `Group` lines, which only root uses.
fn run_identity(server: &Server) -> String {
    let unixd = unixd(server);
    let user = unixd.and_then(|unixd| unixd.user.0.get());
    let group = unixd.and_then(|unixd| unixd.group.0.get()).copied();
    let found = group.and_then(|group| nix::unistd::Group::from_gid(group.into()).ok().flatten());
    let user_name = match user {
        Some(user) => user.name.as_deref().unwrap_or_default().to_owned(),
        None => NOBODY.to_owned(),
    };
    let group_name = match group {
        Some(_) => found.map_or_else(String::new, |group| group.name),
        None => NOBODY.to_owned(),
    };
    let user = user.map_or(u32::MAX, |user| user.id);
    let group = group.unwrap_or(u32::MAX);
    let unused = if nix::unistd::geteuid().is_root() { "" } else { " not_used" };
    format!(
        "User: name=\"{user_name}\" id={user}{unused}\nGroup: name=\"{group_name}\" \
         id={group}{unused}\n"
    )
}
