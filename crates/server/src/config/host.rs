//! The server as configured, and its (virtual) hosts (`server_rec`).

use std::path::PathBuf;
use std::sync::Arc;

use conf::values::VirtualHostAddress;
use conf::{Arg, Defines, Span};
use wire::MethodRegistry;

use crate::api::hooks::{DefinedProviders, Phase};
use crate::config::build::Build;
use crate::config::canonical::Identity;
use crate::config::registry::{Registry, Slots};
use crate::config::version;
use crate::config::vhost::VhostTable;
use crate::core::CoreServer;
use crate::files::contents::Contents;
use crate::files::mirror::Files;
use crate::log::sinks::Sinks;
use crate::phases::walk::DirectorySections;
use crate::request::read_policy::ReadPolicy;

/// A host while the configuration is being built.
#[derive(Clone)]
pub struct HostDraft {
    /// Where `<VirtualHost>` stands; the default span for the main server.
    pub span: Span,
    /// The arguments of `<VirtualHost>`.
    pub addresses: Vec<Arg>,
    /// Server configurations.
    pub server: Slots,
    /// Directory configurations in force before any section matched (`lookup_defaults`).
    pub dir: Slots,
}

impl HostDraft {
    /// A host of which nothing is said.
    pub fn new(registry: &Registry) -> HostDraft {
        HostDraft {
            span: Span::default(),
            addresses: Vec::new(),
            server: registry.empty_server(),
            dir: registry.empty_dir(),
        }
    }
}

/// A (virtual) host; the main server is one too.
pub struct Host {
    /// Its place in [`Server::hosts`]; the main server is 0.
    pub id: u32,
    /// Server configurations, merged with the main server's.
    pub server: Slots,
    /// Directory configurations in force before any section matched (`lookup_defaults`).
    pub dir: Slots,
    /// The core's server configuration.
    pub core: Arc<CoreServer>,
    /// How slowly clients may send.
    pub read_policy: ReadPolicy,
    /// `<Directory>` sections, sorted for the walk.
    pub directories: DirectorySections,
    /// Where `<VirtualHost>` stands: file name and line; `None` for the main server.
    pub defined_at: Option<(String, u32)>,
    /// The arguments of `<VirtualHost>`.
    pub addresses: Vec<Arg>,
    /// By what it speaks of itself.
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
        Host {
            id,
            read_policy: build.registry.hooks.read_policy(&draft.server),
            directories: DirectorySections::sort(&core.directories),
            server: draft.server.clone(),
            dir: draft.dir.clone(),
            core,
            defined_at: (id != 0).then(place),
            addresses: draft.addresses.clone(),
            identity,
        }
    }

    /// What its counters are shown under: its name and port.
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

/// A whole configuration, checked and merged: read-only, shared by all loops of a process.
pub struct Server {
    /// The active modules.
    pub registry: Arc<Registry>,
    /// The names that `Define` set.
    pub defines: Defines,
    /// The macros that `.htaccess` files may use.
    pub macros: conf::Macros,
    /// What relative file names are relative to.
    pub server_root: PathBuf,
    /// The main server, then the virtual hosts in order.
    pub hosts: Vec<Arc<Host>>,
    /// Which host answers where and to what name.
    pub vhosts: VhostTable,
    /// Whether any module takes part in [`crate::api::hooks::Phase::PreTranslateName`].
    pub has_pre_translate: bool,
    /// Methods beside Apache's own (`RegisterHttpMethod`).
    pub methods: MethodRegistry,
    /// Providers that the configuration itself makes.
    pub defined: DefinedProviders,
    /// Where log lines go.
    pub sinks: Arc<Sinks>,
    /// The `Server` field.
    pub banner: String,
    /// Whether answers are counted by virtual host: some place shows such counters.
    pub counts_hosts: bool,
    /// `RegexDefaultOptions`
    pub regex_flags: pcre::Flags,
    /// What this process keeps in memory of files.
    pub contents: Contents,
    /// The mirror of the file system.
    pub files: Arc<Files>,
}

impl Server {
    /// The server that a finished build describes.
    pub(crate) fn assemble(build: &Build) -> Server {
        let registry = build.registry.clone();
        let main = Identity::of(&build.main, None, build);
        let all = std::iter::once(&build.main).chain(&build.hosts).zip(0u32..);
        let hosts: Vec<Arc<Host>> = all
            .map(|(draft, id)| {
                let identity = match id {
                    0 => main.clone(),
                    _ => Identity::of(draft, Some(&main), build),
                };
                Arc::new(Host::from_draft(draft, id, identity, build))
            })
            .collect();
        Server {
            contents: Contents::default(),
            files: Arc::default(),
            vhosts: VhostTable::new(&hosts),
            has_pre_translate: !registry.hooks.phase(Phase::PreTranslateName).is_empty(),
            registry,
            defines: build.defines.clone(),
            macros: build.macros.clone(),
            server_root: build.server_root.clone(),
            methods: build.methods.clone(),
            defined: build.defined.clone(),
            sinks: build.sinks.clone(),
            banner: version::banner(build),
            counts_hosts: build.counts_hosts,
            regex_flags: build.regex_flags,
            hosts,
        }
    }

    /// The labels of the hosts that are counted one by one, by their place; none where no place
    /// shows such counters.
    pub fn counted_hosts(&self) -> Vec<Vec<u8>> {
        let hosts = self.hosts.iter().filter(|_| self.counts_hosts);
        hosts.map(|host| host.label()).collect()
    }

    /// Makes what all children share, before they are forked.
    pub fn share(&self, shared: &mpm::Shared) -> Result<(), String> {
        self.registry.hooks.shared().iter().try_for_each(|hook| hook(self, shared))
    }

    /// What the supervisor does about once a minute: rotates what is shared.
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
