//! The configured server and its (virtual) hosts (`server_rec`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use conf::values::VirtualHostAddress;
use conf::{Arg, Defines, Span};
use rt::SharedCache;
use wire::MethodRegistry;

use crate::api::hooks::{DefinedProviders, HookDef, Phase};
use crate::config::build::Build;
use crate::config::canonical::{self, Identity};
use crate::config::core::CoreServer;
use crate::config::registry::{Registry, Slots};
use crate::config::section::fresh_id;
use crate::config::version;
use crate::config::vhost::VhostTable;
use crate::files::contents::Contents;
use crate::files::mirror::Files;
use crate::log::sinks::Sinks;
use crate::phases::walk::DirectorySections;
use crate::request::dump::Dump;
use crate::request::http2::Http2;
use crate::request::read_policy::ReadPolicy;

/// A host that is being built.
#[derive(Clone)]
pub struct HostDraft {
    /// The position of `<VirtualHost>`; the default span for the main server.
    pub span: Span,
    /// The arguments of `<VirtualHost>`.
    pub addresses: Vec<Arg>,
    /// Server configurations.
    pub server: Slots,
    /// Directory configurations in force before any section matched (`lookup_defaults`).
    pub dir: Slots,
}

impl HostDraft {
    /// Returns a host with defaults.
    pub fn new(registry: &Registry) -> HostDraft {
        HostDraft {
            span: Span::default(),
            addresses: Vec::new(),
            server: registry.empty_server(),
            dir: registry.empty_dir(),
        }
    }
}

/// A (virtual) host, or the main server.
pub struct Host {
    /// Its index in [`Server::hosts`]; the main server is 0.
    pub id: u32,
    /// Server configurations, merged with the main server's.
    pub server: Slots,
    /// Directory configurations in force before any section matched (`lookup_defaults`).
    pub dir: Slots,
    /// The first host whose `dir` is the same.
    pub dir_id: u32,
    /// The core's server configuration.
    pub core: Arc<CoreServer>,
    /// The limits on slow clients.
    pub read_policy: ReadPolicy,
    /// Whether its clients get back what they send, in place of HTTP.
    pub echoes: bool,
    /// How it speaks HTTP/2, if it does.
    pub http2: Option<Http2>,
    /// The protocols that a client of HTTP/1.1 may prefer, as in an `Upgrade` field.
    pub upgrades: Option<Box<[u8]>>,
    /// What is logged of the traffic of its connections.
    pub dump: Dump,
    /// `<Directory>` sections, sorted for the walk.
    pub directories: DirectorySections,
    /// The file name and line of `<VirtualHost>`; `None` for the main server.
    pub defined_at: Option<(String, u32)>,
    /// The arguments of `<VirtualHost>`.
    pub addresses: Vec<Arg>,
    /// Its own names.
    pub identity: Identity,
}

impl Host {
    pub(crate) fn from_draft(
        draft: &HostDraft,
        id: u32,
        identity: Identity,
        build: &Build,
    ) -> Host {
        let slot = build.registry.core;
        let core: Arc<CoreServer> = draft.server.share(slot).unwrap_or_default();
        let place = || build.sources.place(draft.span);
        let http2 = build.registry.hooks.http2(&draft.server, &build.registry);
        Host {
            id,
            read_policy: build.registry.hooks.read_policy(&draft.server),
            echoes: build.registry.hooks.echoes(&draft.server),
            upgrades: http2.as_ref().and_then(|_| core.upgrades()),
            http2,
            dump: build.registry.hooks.dump(&draft.server, &core.log),
            dir_id: id,
            directories: DirectorySections::sort(&core.directories),
            server: draft.server.clone(),
            dir: draft.dir.clone(),
            core,
            defined_at: (id != 0).then(place),
            addresses: draft.addresses.clone(),
            identity,
        }
    }

    /// The label of its counters: its name and port.
    pub fn label(&self) -> Vec<u8> {
        let first = self.addresses.first();
        let first = first.and_then(|arg| VirtualHostAddress::parse(&arg.text).ok());
        let port = match self.identity.port {
            0 => first.and_then(|address| address.port).unwrap_or(0),
            own => own,
        };
        let mut label = self.identity.name.clone();
        if port > 0 {
            label.extend_from_slice(format!(":{port}").as_bytes());
        }
        label
    }

    /// Whether this is the main server.
    pub fn is_main(&self) -> bool {
        self.id == 0
    }
}

/// A complete configuration: read-only, shared by all loops of a process.
pub struct Server {
    /// The active modules.
    pub registry: Arc<Registry>,
    /// The names set by `Define`.
    pub defines: Defines,
    /// The macros that `.htaccess` files may use.
    pub macros: conf::Macros,
    /// The base of relative file names.
    pub server_root: PathBuf,
    /// The main server, then the virtual hosts in order.
    pub hosts: Vec<Arc<Host>>,
    /// The hosts by address and name.
    pub vhosts: VhostTable,
    /// Whether some request may have a hook in [`crate::api::hooks::Phase::PreTranslateName`].
    pub has_pre_translate: bool,
    /// Methods in addition to Apache's (`RegisterHttpMethod`).
    pub methods: MethodRegistry,
    /// Providers that the configuration defines.
    pub defined: DefinedProviders,
    /// The log targets.
    pub sinks: Arc<Sinks>,
    /// The `Server` field.
    pub banner: String,
    /// `SERVER_SOFTWARE` of programs.
    pub software: String,
    /// Whether responses are counted by virtual host, since some section shows such counters.
    pub counts_hosts: bool,
    /// `RegexDefaultOptions`
    pub regex_flags: pcre::Flags,
    /// The contents of files in this process's memory.
    pub contents: Contents,
    /// The mirror of the file system.
    pub files: Arc<Files>,
    /// Responses that all processes and threads of the generation share; none if a thread serves
    /// many connections, since its own cache fills soon enough.
    pub shared_responses: OnceLock<SharedCache>,
    /// The ids of the configuration's sections are below this.
    pub section_ids: u64,
}

impl Server {
    /// Assembles the server of a finished build, which gets warnings about its hosts.
    pub(crate) fn assemble(build: &mut Build) -> Server {
        let server = Server::of(build);
        canonical::warn_of_unresolved(&server, build);
        server
    }

    fn of(build: &Build) -> Server {
        let registry = build.registry.clone();
        let main = Identity::of(&build.main, None, build);
        let all = std::iter::once(&build.main).chain(&build.hosts).zip(0u32..);
        let mut first_with = HashMap::new();
        let hosts: Vec<Arc<Host>> = all
            .map(|(draft, id)| {
                let identity = match id {
                    0 => main.clone(),
                    _ => Identity::of(draft, Some(&main), build),
                };
                let dir_id = *first_with.entry(draft.dir.addresses()).or_insert(id);
                Arc::new(Host { dir_id, ..Host::from_draft(draft, id, identity, build) })
            })
            .collect();
        let may_run = |hook: &HookDef| {
            let wanted = |host: &Arc<Host>| hook.bind(&host.server, &host.dir).is_some();
            !hook.by_server || hosts.iter().any(wanted)
        };
        let tokens = version::tokens(build);
        let has_pre_translate = registry.hooks.phase(Phase::PreTranslateName).iter().any(may_run);
        Server {
            contents: Contents::default(),
            files: Arc::default(),
            shared_responses: OnceLock::new(),
            section_ids: fresh_id(),
            vhosts: VhostTable::new(&hosts),
            has_pre_translate,
            registry,
            defines: build.defines.clone(),
            macros: build.macros.clone(),
            server_root: build.server_root.clone(),
            methods: build.methods.clone(),
            defined: build.defined.clone(),
            sinks: build.sinks.clone(),
            banner: version::banner(tokens),
            software: version::software(tokens),
            counts_hosts: build.counts_hosts,
            regex_flags: build.regex_flags,
            hosts,
        }
    }

    /// The labels of the hosts with counters, by index; empty if no section shows such counters.
    pub fn counted_hosts(&self) -> Vec<Vec<u8>> {
        let hosts = self.hosts.iter().filter(|_| self.counts_hosts);
        hosts.map(|host| host.label()).collect()
    }

    /// Creates the state that all children share, before the fork.
    pub fn share(&self, shared: &mpm::Shared) -> Result<(), String> {
        self.registry.hooks.shared().iter().try_for_each(|hook| hook(self, shared))
    }

    /// Rotates shared state. The supervisor calls this about once a minute.
    pub fn maintain(&self, shared: &mpm::Shared) {
        for hook in self.registry.hooks.maintain() {
            hook(self, shared);
        }
    }

    /// Calls hooks of the server's life.
    pub fn call(self: &Arc<Self>, hooks: &[crate::api::hooks::ServerHook]) {
        for hook in hooks {
            hook(self);
        }
    }

    /// The main error log's descriptor, which becomes the processes' standard error.
    pub fn main_error_log(&self) -> Option<std::os::fd::OwnedFd> {
        let id = self.main().core.error_log.get()?;
        self.sinks.get(*id)?.try_clone_fd()
    }

    /// The main server.
    pub fn main(&self) -> &Arc<Host> {
        &self.hosts[0]
    }
}
