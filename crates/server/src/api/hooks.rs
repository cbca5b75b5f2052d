//! Hooks: how a module takes part in a request, a connection, and the server's life.
//!
//! A request hook is registered with a question, `wants`, which is asked once per distinct merged
//! configuration and never per request ([`crate::plan`]). Order is Apache's: by rank, then by
//! `after` and `before`, then by load order.

mod provider;
mod table;
mod tls;

use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use wire::MethodSet;

use crate::api::filter::{FilterDef, InputFilterDef};
use crate::api::module::Module;
use crate::config::build::Build;
use crate::config::host::Server;
use crate::config::registry::Slots;
use crate::engine::Engine;
use crate::request::Request;
use crate::request::read_policy::ReadPolicy;

pub use provider::{DefinedProviders, provider};
pub use table::HookTable;
pub use tls::{Judgement, TlsChoice, TlsHook};

/// The phases of a request, in Apache's order (docs/decisions, reference of phases).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(usize)]
pub enum Phase {
    /// After the head was read; on the host's own configuration. Run all.
    PostReadRequest,
    /// Before anything else is known; mod_cache's place. Run first.
    QuickHandler,
    /// On the still escaped URL. Run first.
    PreTranslateName,
    /// URL to file name. Run first.
    TranslateName,
    /// File name to configuration; OPTIONS * and TRACE answer here. Run first.
    MapToStorage,
    /// All sections are merged. Run all.
    PostPerdirConfig,
    /// Main request only. Run all.
    HeaderParser,
    /// Access by anything but identity. Run all.
    AccessChecker,
    /// Authorisation without a user. Run first.
    AccessCheckerEx,
    /// Whether authentication must run even if access was granted. Run first.
    ForceAuthn,
    /// Authentication. Run first.
    CheckUserId,
    /// Authorisation. Run first.
    AuthChecker,
    /// The media type, handler and encodings. Run first.
    TypeChecker,
    /// Last changes before the answer. Run all.
    Fixups,
    /// Output filters of an ordinary answer. Run all.
    InsertFilter,
    /// Output filters of an error answer. Run all.
    InsertErrorFilter,
    /// The answer itself. Run first.
    Handler,
    /// After the answer was sent. Run all.
    LogTransaction,
}

impl Phase {
    /// How many there are.
    pub const COUNT: usize = Phase::LogTransaction as usize + 1;
}

/// Where in its phase a hook stands (`APR_HOOK_*`).
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

/// What a hook decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not mine: ask the next.
    Declined,
    /// Done my part (in a run-first phase: and nobody else need be asked).
    Ok,
    /// The request is answered; go straight to logging.
    Done,
    /// The request ends with this status (RFC 9110 §15).
    Status(u16),
}

/// What a hook answers: at once, or when a future is done.
pub enum Answer<'r> {
    /// At once.
    Now(Verdict),
    /// It has to wait (a password hash, a look-up, a subrequest); only then is anything boxed.
    Wait(Pin<Box<dyn Future<Output = Verdict> + 'r>>),
}

impl Answer<'_> {
    /// [`Verdict::Declined`]
    pub const DECLINED: Answer<'static> = Answer::Now(Verdict::Declined);
    /// [`Verdict::Ok`]
    pub const OK: Answer<'static> = Answer::Now(Verdict::Ok);
    /// [`Verdict::Done`]
    pub const DONE: Answer<'static> = Answer::Now(Verdict::Done);

    /// [`Verdict::Status`]
    pub const fn status(status: u16) -> Answer<'static> {
        Answer::Now(Verdict::Status(status))
    }
}

/// A module's configuration as merged for the request at hand.
pub struct Bound<'a, M: Module> {
    /// Of the (virtual) host.
    pub server: &'a M::Server,
    /// Of the directory, with all sections merged.
    pub dir: &'a M::Dir,
}

impl<M: Module> Clone for Bound<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<M: Module> Copy for Bound<'_, M> {}

/// A hook that takes part in requests.
pub type RequestHook<M> = for<'r> fn(Bound<'r, M>, &'r mut Request) -> Answer<'r>;

/// A hook bound to a configuration, ready to run.
pub trait Run {
    /// Runs it.
    fn run<'r>(&'r self, request: &'r mut Request) -> Answer<'r>;
}

struct BoundHook<M: Module> {
    server: Arc<M::Server>,
    dir: Arc<M::Dir>,
    run: RequestHook<M>,
}

impl<M: Module> Run for BoundHook<M> {
    fn run<'r>(&'r self, request: &'r mut Request) -> Answer<'r> {
        (self.run)(Bound { server: &self.server, dir: &self.dir }, request)
    }
}

type Bind = Box<dyn Fn(&Slots, &Slots) -> Option<Box<dyn Run>> + Send + Sync>;

/// A registered request hook.
pub struct HookDef {
    /// The owning module's `FILE`.
    pub module: &'static str,
    /// Its place in the phase.
    pub rank: Rank,
    /// Runs after these modules' hooks of the phase (by `FILE`).
    pub after: &'static [&'static str],
    /// Runs before these.
    pub before: &'static [&'static str],
    /// What it does depends on configuration, URI path and file system alone: not on headers, the
    /// client, time or chance, but for facets that it declares ([`Request::depends_on`]), and it
    /// leaves the request's own fields alone. An answer that only pure hooks took part in can be
    /// reused.
    pub pure: bool,
    /// For [`Phase::Handler`]: the handler name it answers to; `None`: asked for every request.
    pub handler: Option<&'static str>,
    /// For [`Phase::Handler`]: it shows counters by virtual host, which are kept only where some
    /// place has such a handler (`SetHandler`).
    pub shows_host_counts: bool,
    bind: Bind,
}

impl HookDef {
    /// Asks `wants` and, if yes, binds the hook to (server, directory) configurations.
    pub fn bind(&self, server: &Slots, dir: &Slots) -> Option<Box<dyn Run>> {
        (self.bind)(server, dir)
    }

    /// The same hook, after those of `modules`.
    pub fn after(&mut self, modules: &'static [&'static str]) -> &mut Self {
        self.after = modules;
        self
    }

    /// The same hook, before those of `modules`.
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

    /// Restricts a handler hook to requests whose handler has this name.
    pub fn handles(&mut self, name: &'static str) -> &mut Self {
        self.handler = Some(name);
        self
    }
}

/// `post_config`: everything is read; check it as a whole, make shared things. Errors go to the
/// build's diagnostics.
pub type PostConfig = fn(&mut Build);

/// Makes what all children share, before the fork: ticket keys, session caches. Errors end the
/// start with the text.
pub type ShareHook = fn(&Server, &mpm::Shared) -> Result<(), String>;

/// Called in the supervisor about once a minute: rotates what is shared.
pub type MaintainHook = fn(&Server, &mpm::Shared);

/// Called with the configuration that serves.
pub type ServerHook = fn(&Arc<Server>);

/// Where a module registers its hooks.
pub struct Hooks<'t, M: Module> {
    slot: usize,
    table: &'t mut HookTable,
    module: std::marker::PhantomData<fn() -> M>,
}

impl<'t, M: Module> Hooks<'t, M> {
    pub(crate) fn new(slot: usize, table: &'t mut HookTable) -> Hooks<'t, M> {
        Hooks { slot, table, module: std::marker::PhantomData }
    }

    /// A request hook: `wants` is asked once per merged configuration.
    pub fn on(
        &mut self,
        phase: Phase,
        rank: Rank,
        wants: fn(Bound<'_, M>) -> bool,
        run: RequestHook<M>,
    ) -> &mut HookDef {
        let slot = self.slot;
        let bind: Bind = Box::new(move |server, dir| {
            let server = server.share::<M::Server>(slot)?;
            let dir = dir.share::<M::Dir>(slot)?;
            if !wants(Bound { server: &server, dir: &dir }) {
                return None;
            }
            Some(Box::new(BoundHook::<M> { server, dir, run }))
        });
        let hooks = &mut self.table.phases[phase as usize];
        hooks.push(HookDef {
            module: M::FILE,
            rank,
            after: &[],
            before: &[],
            pure: false,
            handler: None,
            shows_host_counts: false,
            bind,
        });
        let last = hooks.len() - 1;
        &mut hooks[last]
    }

    /// A handler for requests whose handler has `name` (`SetHandler name`).
    pub fn handler(&mut self, name: &'static str, run: RequestHook<M>) -> &mut HookDef {
        self.on(Phase::Handler, Rank::MIDDLE, |_| true, run).handles(name)
    }

    /// Offers TLS.
    pub fn offers_tls(&mut self, hook: TlsHook) {
        self.table.tls = Some(hook);
    }

    /// Tells how slowly clients of a host may send (mod_reqtimeout).
    pub fn read_policy(&mut self, ask: fn(&M::Server) -> ReadPolicy) {
        let slot = self.slot;
        self.table.read_policy = Some(Box::new(move |server| {
            server.get::<M::Server>(slot).map(ask).unwrap_or_default()
        }));
    }

    /// Called in each loop every second, and at its end.
    pub fn every_second(&mut self, run: fn(&Engine)) {
        self.table.every_second.push(run);
    }

    /// Called after each answer where answers are timed, for counters and notes: of the request its
    /// head, its host and its client are sure to be known, and no more. Cheaper than a hook of
    /// `LogTransaction`, for which an answer that was kept is told in full.
    pub fn answered(&mut self, run: fn(&Request)) {
        self.table.answered.push(run);
    }

    /// Called by the supervisor before children are forked, at every start and restart.
    pub fn share(&mut self, hook: ShareHook) {
        self.table.shared.push(hook);
    }

    /// Called by the supervisor about once a minute.
    pub fn maintain(&mut self, hook: MaintainHook) {
        self.table.maintain.push(hook);
    }

    /// Called by the supervisor at every start and restart when the logs are open
    /// (`ap_hook_open_logs`): for what is to be said of the configuration there.
    pub fn logs_opened(&mut self, hook: ServerHook) {
        self.table.logs_opened.push(hook);
    }

    /// Called in every child before it serves (`ap_hook_child_init`).
    pub fn child_started(&mut self, hook: ServerHook) {
        self.table.child_started.push(hook);
    }

    /// Tells the methods that `Satisfy Any` is in force for (`ap_satisfies`).
    pub fn satisfies_any(&mut self, ask: fn(&M::Dir) -> MethodSet) {
        let slot = self.slot;
        let ask = move |dir: &Slots| dir.get::<M::Dir>(slot).map_or(MethodSet::EMPTY, ask);
        self.table.satisfy = Some(Box::new(ask));
    }

    /// Declares that this module decides access by URI (`AP_AUTH_INTERNAL_PER_URI`).
    pub fn decides_access_by_uri(&mut self) {
        self.table.auth_by_uri = true;
    }

    /// Called when everything is read.
    pub fn post_config(&mut self, run: PostConfig) {
        self.table.post_config.push(run);
    }

    /// An output filter that configuration can name.
    pub fn output_filter(&mut self, filter: FilterDef) {
        self.table.filters.push(Arc::new(filter));
    }

    /// An input filter that configuration can name.
    pub fn input_filter(&mut self, filter: InputFilterDef) {
        self.table.input_filters.push(Arc::new(filter));
    }

    /// A provider (`ap_register_provider`): something that another module looks up by group and
    /// name when configuration is read, as `authn` / `file`.
    pub fn provider<T: Any + Send + Sync>(
        &mut self,
        group: &'static str,
        name: &'static str,
        provider: T,
    ) {
        self.table.providers.insert((group, name), Arc::new(provider));
    }
}

/// Always: for hooks that every configuration wants.
pub fn always<M: Module>(_: Bound<'_, M>) -> bool {
    true
}
