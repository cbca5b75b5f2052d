//! Hooks: how a module takes part in a request, a connection, and the server's life.
//!
//! A request hook is registered with a question, `wants`, which is asked once per distinct merged
//! configuration and never per request ([`crate::plan`]). Order is Apache's: by rank, then by
//! `after` and `before`, then by load order.

use std::any::Any;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use rt::tls::{CertificateDer, ClientHello, ServerConfig, TlsInfo};
use wire::{HeadError, MethodSet};

use crate::build::Build;
use crate::client::{Client, TlsFacts};
use crate::engine::Engine;
use crate::filter::{FilterDef, InputFilterDef};
use crate::host::{Host, Server};
use crate::module::Module;
use crate::read_policy::ReadPolicy;
use crate::request::Request;
use crate::slots::{Registry, Slots};

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
    /// client, time or chance. An answer that only pure hooks took part in can be reused.
    pub pure: bool,
    /// For [`Phase::Handler`]: the handler name it answers to; `None`: asked for every request.
    pub handler: Option<&'static str>,
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

    /// Restricts a handler hook to requests whose handler has this name.
    pub fn handles(&mut self, name: &'static str) -> &mut Self {
        self.handler = Some(name);
        self
    }
}

/// `post_config`: everything is read; check it as a whole, make shared things. Errors go to the
/// build's diagnostics.
pub type PostConfig = fn(&mut Build);

/// How TLS comes to connections (mod_ssl).
#[derive(Clone, Copy)]
pub struct TlsHook {
    /// Whether connections of this client speak TLS, by the address they came to.
    pub is_on: fn(&Client, &Server) -> bool,
    /// The configuration for a client, by its first message; `None` refuses it.
    pub choose: fn(&Client, &Server, &ClientHello<'_>) -> Option<TlsChoice>,
    /// Which of the host's certificates the handshake showed.
    pub shown: fn(&Server, &TlsChoice, &TlsInfo<'_>) -> usize,
    /// What is to be thought of the certificates that a client sent.
    pub judge: fn(&Engine, &TlsChoice, &[CertificateDer<'static>]) -> Judgement,
    /// Whether a request on this connection may be for this host; asked once per connection and
    /// host.
    pub admit: fn(&Client, &Server, &TlsFacts, &Host) -> Result<(), Box<HeadError>>,
}

/// What a handshake is done with.
pub struct TlsChoice {
    /// For rustls.
    pub config: Arc<ServerConfig>,
    /// The host whose configuration it is: [`Host::id`].
    pub host: u32,
    /// The place of the certificate that suits the client in TLS 1.3.
    pub certificate: usize,
}

/// Whether a client may go on with the certificates that it sent.
pub enum Judgement {
    /// It may; the text says why they are not trusted, if they are not.
    Admit(Option<String>),
    /// It may not, for this reason.
    Refuse(String),
    /// Somebody has to be asked first.
    Wait(Pin<Box<dyn Future<Output = Judgement>>>),
}

/// Makes what all children share, before the fork: ticket keys, session caches. Errors end the
/// start with the text.
pub type ShareHook = fn(&Server, &mpm::Shared) -> Result<(), String>;

/// Called in the supervisor about once a minute: rotates what is shared.
pub type MaintainHook = fn(&Server, &mpm::Shared);

/// Called with the configuration that serves.
pub type ServerHook = fn(&Arc<Server>);

/// Everything that the active modules registered.
#[derive(Default)]
pub struct HookTable {
    phases: [Vec<HookDef>; Phase::COUNT],
    post_config: Vec<PostConfig>,
    filters: Vec<Arc<FilterDef>>,
    input_filters: Vec<Arc<InputFilterDef>>,
    providers: HashMap<(&'static str, &'static str), Arc<dyn Any + Send + Sync>>,
    tls: Option<TlsHook>,
    shared: Vec<ShareHook>,
    maintain: Vec<MaintainHook>,
    logs_opened: Vec<ServerHook>,
    child_started: Vec<ServerHook>,
    every_second: Vec<fn(&Engine)>,
    read_policy: Option<Box<dyn Fn(&Slots) -> ReadPolicy + Send + Sync>>,
    satisfy: Option<Box<dyn Fn(&Slots) -> MethodSet + Send + Sync>>,
    /// Some hook decides access by URI, not by configuration alone: then authorisation is never
    /// inherited by subrequests and internal redirects (`AP_AUTH_INTERNAL_PER_URI`).
    pub auth_by_uri: bool,
}

impl HookTable {
    /// The hooks of a phase, in order.
    pub fn phase(&self, phase: Phase) -> &[HookDef] {
        &self.phases[phase as usize]
    }

    /// All phases, indexed by [`Phase`].
    pub fn all_phases(&self) -> &[Vec<HookDef>; Phase::COUNT] {
        &self.phases
    }

    /// The `post_config` hooks in load order.
    pub fn post_config(&self) -> &[PostConfig] {
        &self.post_config
    }

    /// A filter by name; names are case-insensitive.
    pub fn filter(&self, name: &[u8]) -> Option<&Arc<FilterDef>> {
        self.filters.iter().find(|filter| filter.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// An input filter by name; names are case-insensitive.
    pub fn input_filter(&self, name: &[u8]) -> Option<&Arc<InputFilterDef>> {
        self.input_filters.iter().find(|filter| filter.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// A provider (`ap_lookup_provider`); names are case-insensitive.
    pub fn provider<T: Any + Send + Sync>(&self, group: &str, name: &str) -> Option<Arc<T>> {
        let (_, found) = self.providers.iter().find(|((in_group, called), _)| {
            *in_group == group && called.eq_ignore_ascii_case(name)
        })?;
        found.clone().downcast::<T>().ok()
    }

    /// All providers of a group, with their names.
    pub fn providers<T: Any + Send + Sync>(&self, group: &str) -> Vec<(&'static str, Arc<T>)> {
        let of_group = self.providers.iter().filter(|((in_group, _), _)| *in_group == group);
        of_group.filter_map(|((_, n), p)| Some((*n, p.clone().downcast::<T>().ok()?))).collect()
    }

    /// How TLS comes to connections, if anybody offers it.
    pub fn tls(&self) -> Option<TlsHook> {
        self.tls
    }

    /// How slowly clients of a host may send.
    pub fn read_policy(&self, server: &Slots) -> ReadPolicy {
        self.read_policy.as_ref().map(|ask| ask(server)).unwrap_or_default()
    }

    /// What each loop does every second, and at its end.
    pub fn every_second(&self) -> &[fn(&Engine)] {
        &self.every_second
    }

    /// What makes shared things before the fork.
    pub fn shared(&self) -> &[ShareHook] {
        &self.shared
    }

    /// What the supervisor does once a minute.
    pub fn maintain(&self) -> &[MaintainHook] {
        &self.maintain
    }

    /// What is done when the logs are open, before the fork.
    pub fn logs_opened(&self) -> &[ServerHook] {
        &self.logs_opened
    }

    /// What every child does before it serves.
    pub fn child_started(&self) -> &[ServerHook] {
        &self.child_started
    }

    /// The methods that `Satisfy Any` is in force for in a directory (mod_access_compat tells).
    pub fn satisfy_any(&self, dir: &Slots) -> MethodSet {
        self.satisfy.as_ref().map_or(MethodSet::EMPTY, |ask| ask(dir))
    }

    /// Orders each phase; `load_order` lists the modules' `FILE`s.
    pub(crate) fn sort(&mut self, load_order: &[&'static str]) {
        for phase in &mut self.phases {
            let place = |file: &str| load_order.iter().position(|f| *f == file);
            phase.sort_by_key(|hook| (hook.rank, place(hook.module)));
            settle(phase);
        }
    }
}

/// Moves each hook behind those it must follow, and otherwise keeps the order.
fn settle(hooks: &mut Vec<HookDef>) {
    let mut waiting: Vec<HookDef> = std::mem::take(hooks);
    while !waiting.is_empty() {
        let must_wait = |hook: &HookDef| {
            waiting.iter().any(|other| {
                other.module != hook.module
                    && (hook.after.contains(&other.module) || other.before.contains(&hook.module))
            })
        };
        // A cycle can only be a mistake of ours; then the order by rank stands.
        let next = waiting.iter().position(|hook| !must_wait(hook)).unwrap_or(0);
        hooks.push(waiting.remove(next));
    }
}

/// Providers that the configuration itself makes (`<AuthnProviderAlias>`), beside those that modules
/// registered.
#[derive(Clone, Default)]
pub struct DefinedProviders(Vec<DefinedProvider>);

#[derive(Clone)]
struct DefinedProvider {
    group: &'static str,
    name: String,
    value: Arc<dyn Any + Send + Sync>,
}

impl DefinedProviders {
    /// Adds a provider; a later one of the same name takes the earlier one's place.
    pub fn define<T: Any + Send + Sync>(&mut self, group: &'static str, name: String, value: T) {
        self.0.push(DefinedProvider { group, name, value: Arc::new(value) });
    }

    /// A provider by name; names are case-insensitive.
    pub fn find<T: Any + Send + Sync>(&self, group: &str, name: &str) -> Option<Arc<T>> {
        let is_it = |of: &&DefinedProvider| of.group == group && of.name.eq_ignore_ascii_case(name);
        self.0.iter().rev().find(is_it)?.value.clone().downcast::<T>().ok()
    }
}

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

/// Looks a provider up in a registry; the usual call while configuration is read.
pub fn provider<T: Any + Send + Sync>(reg: &Registry, group: &str, name: &str) -> Option<Arc<T>> {
    reg.hooks.provider(group, name)
}
