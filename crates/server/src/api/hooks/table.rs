//! The hooks of the active modules, in order.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use wire::MethodSet;

use super::{
    DirectivesRead, HookDef, MaintainHook, Phase, PostConfig, SaveHook, ServerHook, ShareHook,
    Startup, TlsHook,
};
use crate::api::filter::{FilterDef, InputFilterDef};
use crate::config::host::Server;
use crate::config::registry::{Registry, Slots};
use crate::engine::Engine;
use crate::log::{Level, LogLevels};
use crate::request::Request;
use crate::request::connection_info::ConnectionInfo;
use crate::request::dump::Dump;
use crate::request::http2::{Http2, Http2Dir};
use crate::request::read_policy::ReadPolicy;

/// Asks how a host speaks HTTP/2.
pub(super) type AskHttp2 = Box<dyn Fn(&Slots, &Registry) -> Option<Http2> + Send + Sync>;

/// Asks what a directory says about responses over HTTP/2.
pub(super) type AskHttp2Dir = Box<dyn Fn(&Slots, &Slots) -> Http2Dir + Send + Sync>;

/// Asks a module's configuration what to log of the traffic.
pub(super) type AskDump = Box<dyn Fn(&Slots) -> Dump + Send + Sync>;

/// Asks a module's configuration.
pub(super) type AskServer = Box<dyn Fn(&Slots) -> bool + Send + Sync>;

/// The hooks, providers and filters of the active modules.
#[derive(Default)]
pub struct HookTable {
    pub(super) phases: [Vec<HookDef>; Phase::COUNT],
    /// By slot, the phase of each hook of that module, and its place in it.
    by_slot: Vec<Vec<(Phase, usize)>>,
    pub(super) post_config: Vec<PostConfig>,
    pub(super) filters: Vec<Arc<FilterDef>>,
    pub(super) input_filters: Vec<Arc<InputFilterDef>>,
    pub(super) providers: HashMap<(&'static str, &'static str), Arc<dyn Any + Send + Sync>>,
    pub(super) tls: Option<TlsHook>,
    pub(super) proxy_header: Option<fn(&ConnectionInfo, &Server) -> bool>,
    pub(super) shared: Vec<ShareHook>,
    pub(super) saved: Vec<SaveHook>,
    pub(super) maintain: Vec<MaintainHook>,
    pub(super) logs_opened: Vec<ServerHook>,
    pub(super) child_started: Vec<ServerHook>,
    pub(super) child_ended: Vec<fn(u32)>,
    pub(super) every_second: Vec<fn(&Engine)>,
    pub(super) answered: Vec<fn(&Request)>,
    pub(crate) log_id: Option<fn(&Request) -> Vec<u8>>,
    pub(super) read_policy: Option<Box<dyn Fn(&Slots) -> ReadPolicy + Send + Sync>>,
    pub(super) echoes: Option<Box<dyn Fn(&Slots) -> bool + Send + Sync>>,
    pub(super) http2: Option<AskHttp2>,
    pub(super) http2_dir: Option<AskHttp2Dir>,
    pub(super) dump: Option<(&'static str, AskDump)>,
    pub(super) forwards: Option<AskServer>,
    /// Names of handlers besides those of hooks; one that ends in `:` is a prefix.
    pub(super) handler_names: Vec<&'static str>,
    pub(super) directives_read: Vec<DirectivesRead>,
    pub(super) startup: Vec<(Startup, &'static str)>,
    pub(super) satisfy: Option<Box<dyn Fn(&Slots) -> MethodSet + Send + Sync>>,
    /// Whether some hook decides access by URI instead of by configuration alone: then subrequests
    /// and internal redirects never inherit authorisation (`AP_AUTH_INTERNAL_PER_URI`).
    pub auth_by_uri: bool,
    /// Whether some hook is registered by URI although it decides nothing: then they inherit it
    /// only where Apache does not merge their sections again.
    pub merges_by_uri: bool,
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

    /// Whether the handler of this name shows counters by virtual host.
    pub fn shows_host_counts(&self, name: &[u8]) -> bool {
        let named = |hook: &&HookDef| hook.handler.is_some_and(|own| own.as_bytes() == name);
        self.phase(Phase::Handler).iter().find(named).is_some_and(|hook| hook.shows_host_counts)
    }

    /// Adds an output filter.
    pub(crate) fn add_filter(&mut self, filter: FilterDef) {
        self.filters.push(Arc::new(filter));
    }

    /// Whether an active module has a handler of this name.
    pub fn provides_handler(&self, name: &[u8]) -> bool {
        let is_named = |hook: &HookDef| hook.handler.is_some_and(|own| own.as_bytes() == name);
        let fits = |own: &str| match own.ends_with(':') {
            true => name.starts_with(own.as_bytes()),
            false => name == own.as_bytes(),
        };
        self.phase(Phase::Handler).iter().any(is_named)
            || self.handler_names.iter().any(|own| fits(own))
    }

    /// Whether a host forwards requests for URLs of any scheme.
    pub fn forwards(&self, server: &Slots) -> bool {
        self.forwards.as_ref().is_some_and(|ask| ask(server))
    }

    /// The filter of this name; names are case-insensitive.
    pub fn filter(&self, name: &[u8]) -> Option<&Arc<FilterDef>> {
        self.filters.iter().find(|filter| filter.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The input filter of this name; names are case-insensitive.
    pub fn input_filter(&self, name: &[u8]) -> Option<&Arc<InputFilterDef>> {
        self.input_filters.iter().find(|filter| filter.name.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The provider of this name (`ap_lookup_provider`); names are case-insensitive.
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

    /// The TLS hook, if a module has registered one.
    pub fn tls(&self) -> Option<TlsHook> {
        self.tls
    }

    /// The limits on slow clients of a host.
    pub fn read_policy(&self, server: &Slots) -> ReadPolicy {
        self.read_policy.as_ref().map(|ask| ask(server)).unwrap_or_default()
    }

    /// How a host speaks HTTP/2; `None` if no module provides it.
    pub fn http2(&self, server: &Slots, registry: &Registry) -> Option<Http2> {
        self.http2.as_ref().and_then(|ask| ask(server, registry))
    }

    /// What a host's and a directory's configuration say about responses over HTTP/2.
    pub fn http2_dir(&self, server: &Slots, dir: &Slots) -> Http2Dir {
        self.http2_dir.as_ref().map(|ask| ask(server, dir)).unwrap_or_default()
    }

    /// What is logged of the traffic of a host's connections, at its log levels.
    pub fn dump(&self, server: &Slots, levels: &LogLevels) -> Dump {
        match &self.dump {
            Some((module, ask)) if levels.of(module) >= Level::Trace7 => ask(server),
            _ => Dump::default(),
        }
    }

    /// The functions that are called with all directives as read.
    pub fn directives_read(&self) -> &[DirectivesRead] {
        &self.directives_read
    }

    /// The hooks of the server's life, with the `FILE`s of their modules.
    pub fn startup(&self) -> &[(Startup, &'static str)] {
        &self.startup
    }

    /// Group and name of each provider, sorted.
    pub fn provider_names(&self) -> Vec<(&'static str, &'static str)> {
        let mut names: Vec<_> = self.providers.keys().copied().collect();
        names.sort_unstable();
        names
    }

    /// Whether a connection begins with a header of the PROXY protocol.
    pub fn expects_proxy_header(&self, connection: &ConnectionInfo, server: &Server) -> bool {
        self.proxy_header.is_some_and(|ask| ask(connection, server))
    }

    /// The functions that each loop calls every second, and at its end.
    pub fn every_second(&self) -> &[fn(&Engine)] {
        &self.every_second
    }

    /// The functions that note a timed response.
    pub fn answered(&self) -> &[fn(&Request)] {
        &self.answered
    }

    /// The functions that create shared state before the fork.
    pub fn shared(&self) -> &[ShareHook] {
        &self.shared
    }

    /// The functions that the supervisor calls once a minute.
    pub fn maintain(&self) -> &[MaintainHook] {
        &self.maintain
    }

    /// The functions that keep things in files.
    pub fn saved(&self) -> &[SaveHook] {
        &self.saved
    }

    /// The functions that are called when the logs are open, before the fork.
    pub fn logs_opened(&self) -> &[ServerHook] {
        &self.logs_opened
    }

    /// The functions that every child calls before it serves.
    pub fn child_started(&self) -> &[ServerHook] {
        &self.child_started
    }

    /// The functions that the supervisor calls with the process id of a child that has ended.
    pub fn child_ended(&self) -> &[fn(u32)] {
        &self.child_ended
    }

    /// The methods with `Satisfy Any` in a directory (from mod_access_compat).
    pub fn satisfy_any(&self, dir: &Slots) -> MethodSet {
        self.satisfy.as_ref().map_or(MethodSet::EMPTY, |ask| ask(dir))
    }

    /// Sorts each phase; `load_order` lists the modules' `FILE`s.
    pub(crate) fn sort(&mut self, load_order: &[&'static str]) {
        for phase in &mut self.phases {
            let place = |file: &str| load_order.iter().position(|f| *f == file);
            phase.sort_by_key(|hook| (hook.rank, place(hook.module)));
            settle(phase);
        }
        self.by_slot = vec![Vec::new(); load_order.len()];
        for (phase, hooks) in Phase::ALL.into_iter().zip(&self.phases) {
            for (place, hook) in hooks.iter().enumerate() {
                if let Some(own) = self.by_slot.get_mut(hook.slot) {
                    own.push((phase, place));
                }
            }
        }
    }

    /// The hooks of the module in a slot, each with its phase and its place in that.
    pub fn of_slot(&self, slot: usize) -> impl Iterator<Item = (Phase, usize, &HookDef)> {
        let own = self.by_slot.get(slot).into_iter().flatten();
        own.filter_map(|(phase, place)| Some((*phase, *place, self.phase(*phase).get(*place)?)))
    }

    /// The slots of modules.
    pub fn slots(&self) -> std::ops::Range<usize> {
        0..self.by_slot.len()
    }
}

/// Moves what a hook must follow directly before it, and otherwise keeps the order.
///
/// Source: `tsort` (apr_hooks.c)
fn settle(hooks: &mut Vec<HookDef>) {
    let mut waiting: Vec<HookDef> = std::mem::take(hooks);
    while !waiting.is_empty() {
        let mut next = 0;
        // A cycle is a programming error; the order by rank remains.
        for _ in 0..waiting.len() {
            let Some(earlier) = waiting.iter().position(|other| follows(&waiting[next], other))
            else {
                break;
            };
            next = earlier;
        }
        hooks.push(waiting.remove(next));
    }
}

/// Whether a hook must run after another.
fn follows(hook: &HookDef, other: &HookDef) -> bool {
    other.module != hook.module
        && (hook.after.contains(&other.module) || other.before.contains(&hook.module))
}
