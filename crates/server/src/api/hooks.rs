//! Hooks: how a module participates in a request, a connection, and the server's life.
//!
//! A request hook is registered with a predicate, `wants`, which is evaluated once per distinct
//! merged configuration and never per request ([`crate::engine::plan`]). The order is Apache's: by
//! rank, then by `after` and `before`, then by load order.

mod bound;
mod echo;
mod http2;
mod phase;
mod provider;
mod step;
mod table;
mod tls;

use std::any::Any;
use std::sync::Arc;

use conf::Node;
use wire::MethodSet;

use crate::api::filter::{FilterDef, InputFilterDef};
use crate::api::module::Module;
use crate::config::build::Build;
use crate::config::host::Server;
use crate::config::registry::Slots;
use crate::engine::Engine;
use crate::request::Request;
use crate::request::connection_info::ConnectionInfo;
use crate::request::dump::Dump;
use crate::request::read_policy::ReadPolicy;

use bound::BoundHook;
pub use bound::Run;
pub use phase::Phase;
pub use provider::{DefinedProviders, provider};
pub use step::{Step, Verdict};
pub use table::HookTable;
pub use tls::{Judgement, TlsChoice, TlsHook};

/// The position of a hook in its phase (`APR_HOOK_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(pub i32);

impl Rank {
    /// `APR_HOOK_REALLY_FIRST`
    pub const REALLY_FIRST: Rank = Rank(-10);
    /// `APR_HOOK_FIRST`
    pub const FIRST: Rank = Rank(0);
    /// `APR_HOOK_MIDDLE`
    pub const MIDDLE: Rank = Rank(10);
    /// `APR_HOOK_LAST`
    pub const LAST: Rank = Rank(20);
    /// `APR_HOOK_REALLY_LAST`
    pub const REALLY_LAST: Rank = Rank(30);
}

/// A module's merged configuration for a request.
pub struct Bound<'a, M: Module> {
    /// The configuration of the (virtual) host.
    pub server: &'a M::Server,
    /// The directory configuration, with all sections merged.
    pub dir: &'a M::Dir,
}

impl<M: Module> Clone for Bound<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Bound<'_, M> {}

/// A hook of requests.
pub type RequestHook<M> = for<'r> fn(Bound<'r, M>, &'r mut Request) -> Step<'r>;

type Bind = Box<dyn Fn(&Slots, &Slots) -> Option<Box<dyn Run>> + Send + Sync>;

/// A registered request hook.
pub struct HookDef {
    /// The owning module's `FILE`.
    pub module: &'static str,
    /// The owning module's slot. `wants` and the hook depend on the configurations there alone.
    pub slot: usize,
    /// Its rank in the phase.
    pub rank: Rank,
    /// Runs after these modules' hooks of the phase (by `FILE`).
    pub after: &'static [&'static str],
    /// Runs before these.
    pub before: &'static [&'static str],
    /// Whether its effect depends only on configuration, URI path and file system: not on headers,
    /// the client, time or chance, except for declared variant keys ([`Request::depends_on`]); and
    /// it does not change the request's own fields. A response in which only pure hooks took part
    /// can be cached, and serves any query: a hook reads the query by [`Request::query`] only, and
    /// the requested host by [`Request::server_name`], which note the use.
    pub pure: bool,
    /// For [`Phase::Handler`]: the handler name that it handles; `None` for every request.
    pub handler: Option<&'static str>,
    /// For [`Phase::Handler`]: whether it shows counters by virtual host, which are maintained only
    /// if some section uses such a handler (`SetHandler`).
    pub shows_host_counts: bool,
    /// Whether `wants` depends on the server configuration alone.
    pub by_server: bool,
    bind: Bind,
}

impl HookDef {
    /// Evaluates `wants` and, if true, binds the hook to server and directory configurations.
    pub fn bind(&self, server: &Slots, dir: &Slots) -> Option<Box<dyn Run>> {
        (self.bind)(server, dir)
    }

    /// Puts the hook after those of `modules`.
    pub fn after(&mut self, modules: &'static [&'static str]) -> &mut Self {
        self.after = modules;
        self
    }

    /// Puts the hook before those of `modules`.
    pub fn before(&mut self, modules: &'static [&'static str]) -> &mut Self {
        self.before = modules;
        self
    }

    /// Declares the hook pure: see [`HookDef::pure`].
    pub fn pure(&mut self) -> &mut Self {
        self.pure = true;
        self
    }

    /// Declares that the handler shows counters by virtual host: see
    /// [`HookDef::shows_host_counts`].
    pub fn shows_host_counts(&mut self) -> &mut Self {
        self.shows_host_counts = true;
        self
    }

    /// Declares that `wants` depends on the server configuration alone.
    pub fn by_server(&mut self) -> &mut Self {
        self.by_server = true;
        self
    }

    /// Restricts a handler hook to requests whose handler has this name.
    pub fn handles(&mut self, name: &'static str) -> &mut Self {
        self.handler = Some(name);
        self
    }
}

/// `post_config`: checks the whole configuration and creates shared state. Errors go to the build's
/// diagnostics.
pub type PostConfig = fn(&mut Build);

/// Called with all directives as read, once they have been applied.
pub type DirectivesRead = fn(&mut Build, &[Node]);

/// A hook of the server's life that is listed by its module ([`HookTable::startup`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Startup {
    /// `post_config`
    PostConfig,
    /// `open_logs`
    OpenLogs,
    /// `child_init`
    ChildInit,
}

/// Creates the state that all children share, before the fork: ticket keys, session caches. An
/// error ends startup with this message.
pub type ShareHook = fn(&Server, &mpm::Shared) -> Result<(), String>;
/// See [`Hooks::save`].
pub type SaveHook = fn(&Server) -> Result<(), String>;

/// Called in the supervisor about once a minute: rotates shared state.
pub type MaintainHook = fn(&Server, &mpm::Shared);

/// Called with the configuration that is in use.
pub type ServerHook = fn(&Arc<Server>);

/// Registers a module's hooks.
pub struct Hooks<'t, M: Module> {
    slot: usize,
    table: &'t mut HookTable,
    module: std::marker::PhantomData<fn() -> M>,
}

impl<'t, M: Module> Hooks<'t, M> {
    pub(crate) fn new(slot: usize, table: &'t mut HookTable) -> Hooks<'t, M> {
        Hooks { slot, table, module: std::marker::PhantomData }
    }

    /// Registers a request hook; `wants` is evaluated once per merged configuration.
    pub fn on(
        &mut self,
        phase: Phase,
        rank: Rank,
        wants: fn(Bound<'_, M>) -> bool,
        run: RequestHook<M>,
    ) -> &mut HookDef {
        self.add(phase, rank, wants, (run, |_| false))
    }

    /// Registers a hook of [`Phase::LogTransaction`]. `reads_head_alone` is evaluated once per
    /// merged configuration: whether the hook reads only what a cached response needs no copy of,
    /// which are the head, the host, the client, the configuration, the status and the numbers of
    /// bytes.
    pub fn on_log(
        &mut self,
        rank: Rank,
        wants: fn(Bound<'_, M>) -> bool,
        reads_head_alone: fn(Bound<'_, M>) -> bool,
        run: RequestHook<M>,
    ) -> &mut HookDef {
        self.add(Phase::LogTransaction, rank, wants, (run, reads_head_alone))
    }

    fn add(
        &mut self,
        phase: Phase,
        rank: Rank,
        wants: fn(Bound<'_, M>) -> bool,
        (run, reads_head_alone): (RequestHook<M>, fn(Bound<'_, M>) -> bool),
    ) -> &mut HookDef {
        let slot = self.slot;
        let bind: Bind = Box::new(move |server, dir| {
            let server = server.share::<M::Server>(slot)?;
            let dir = dir.share::<M::Dir>(slot)?;
            if !wants(Bound { server: &server, dir: &dir }) {
                return None;
            }
            Some(Box::new(BoundHook::<M> { server, dir, run, reads_head_alone }))
        });
        let hooks = &mut self.table.phases[phase as usize];
        hooks.push(HookDef {
            module: M::FILE,
            slot,
            rank,
            after: &[],
            before: &[],
            pure: false,
            handler: None,
            shows_host_counts: false,
            by_server: false,
            bind,
        });
        let last = hooks.len() - 1;
        &mut hooks[last]
    }

    /// Registers a handler for requests whose handler is `name` (`SetHandler name`).
    pub fn handler(&mut self, name: &'static str, run: RequestHook<M>) -> &mut HookDef {
        self.on(Phase::Handler, Rank::MIDDLE, |_| true, run).handles(name)
    }

    /// Registers the maker of identifiers for log lines (`ap_hook_generate_log_id`).
    pub fn log_id(&mut self, make: fn(&Request) -> Vec<u8>) {
        self.table.log_id = Some(make);
    }

    /// Registers TLS.
    pub fn offers_tls(&mut self, hook: TlsHook) {
        self.table.tls = Some(hook);
    }

    /// Registers whether a connection begins with a header of the PROXY protocol.
    pub fn expects_proxy_header(&mut self, ask: fn(&ConnectionInfo, &Server) -> bool) {
        self.table.proxy_header = Some(ask);
    }

    /// Registers the limits on slow clients of a host (mod_reqtimeout).
    pub fn read_policy(&mut self, ask: fn(&M::Server) -> ReadPolicy) {
        let slot = self.slot;
        self.table.read_policy = Some(Box::new(move |server| {
            server.get::<M::Server>(slot).map(ask).unwrap_or_default()
        }));
    }

    /// Registers what is logged of the traffic of connections, by the host of their address
    /// (mod_dumpio).
    pub fn dumps(&mut self, ask: fn(&M::Server) -> Dump) {
        let slot = self.slot;
        self.table.dump = Some((
            M::FILE,
            Box::new(move |server| server.get::<M::Server>(slot).map(ask).unwrap_or_default()),
        ));
    }

    /// Registers a function that is called with all directives as read.
    pub fn directives_read(&mut self, hook: DirectivesRead) {
        self.table.directives_read.push(hook);
    }

    /// Registers a function that each loop calls every second, and at its end.
    pub fn every_second(&mut self, run: fn(&Engine)) {
        self.table.every_second.push(run);
    }

    /// Registers a function for counters and notes, called after each response if responses are
    /// timed. Of the request only head, host and client are certain to be set. Cheaper than a hook
    /// of `LogTransaction`, which requires the whole request even for a cached response.
    pub fn answered(&mut self, run: fn(&Request)) {
        self.table.answered.push(run);
    }

    /// Registers a function that the supervisor calls before it forks children, at every start and
    /// restart.
    pub fn share(&mut self, hook: ShareHook) {
        self.table.shared.push(hook);
    }

    /// Registers a function that the supervisor calls before it reads the configuration again, and
    /// when the server ends: for what is kept in files.
    pub fn save(&mut self, hook: SaveHook) {
        self.table.saved.push(hook);
    }

    /// Registers a function that the supervisor calls about once a minute.
    pub fn maintain(&mut self, hook: MaintainHook) {
        self.table.maintain.push(hook);
    }

    /// Registers a function that the supervisor calls at every start and restart, once the logs are
    /// open (`ap_hook_open_logs`): for remarks about the configuration.
    pub fn logs_opened(&mut self, hook: ServerHook) {
        self.table.logs_opened.push(hook);
        self.table.startup.push((Startup::OpenLogs, M::FILE));
    }

    /// Registers a function that every child calls before it serves (`ap_hook_child_init`).
    pub fn child_started(&mut self, hook: ServerHook) {
        self.table.child_started.push(hook);
        self.table.startup.push((Startup::ChildInit, M::FILE));
    }

    /// Registers a function that the supervisor calls with the process id of a child that has
    /// ended, however it did.
    pub fn child_ended(&mut self, hook: fn(u32)) {
        self.table.child_ended.push(hook);
    }

    /// Registers the source of the methods with `Satisfy Any` (`ap_satisfies`).
    pub fn satisfies_any(&mut self, ask: fn(&M::Dir) -> MethodSet) {
        let slot = self.slot;
        let ask = move |dir: &Slots| dir.get::<M::Dir>(slot).map_or(MethodSet::EMPTY, ask);
        self.table.satisfy = Some(Box::new(ask));
    }

    /// Declares that this module decides access by URI (`AP_AUTH_INTERNAL_PER_URI`).
    pub fn decides_access_by_uri(&mut self) {
        self.table.auth_by_uri = true;
    }

    /// Declares that this module's access hooks decide nothing, but that Apache registers them by
    /// URI, and so merges sections again for subrequests and internal redirects to other names.
    pub fn merges_by_uri(&mut self) {
        self.table.merges_by_uri = true;
    }

    /// Registers a function that is called when the configuration is read.
    pub fn post_config(&mut self, run: PostConfig) {
        self.table.post_config.push(run);
        self.table.startup.push((Startup::PostConfig, M::FILE));
    }

    /// Registers an output filter that the configuration can name.
    pub fn output_filter(&mut self, filter: FilterDef) {
        self.table.filters.push(Arc::new(filter));
    }

    /// Registers an input filter that the configuration can name.
    pub fn input_filter(&mut self, filter: InputFilterDef) {
        self.table.input_filters.push(Arc::new(filter));
    }

    /// Registers a provider (`ap_register_provider`): a value that other modules look up by group
    /// and name when the configuration is read, such as `authn` / `file`.
    pub fn provider<T: Any + Send + Sync>(
        &mut self,
        group: &'static str,
        name: &'static str,
        provider: T,
    ) {
        self.table.providers.insert((group, name), Arc::new(provider));
    }
}

/// Always true: for hooks of every configuration.
pub fn always<M: Module>(_: Bound<'_, M>) -> bool {
    true
}
