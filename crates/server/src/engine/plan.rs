//! The Plan: the work that a distinct merged configuration requires.
//!
//! A walk through the sections ends in a [`Layer`]: one merged configuration, identified by the
//! host's own and the ordered list of matching sections. A host's first request with a layer
//! compiles its [`Plan`]; later ones reuse it. A plan holds, per phase, only the hooks whose
//! `wants` is true, bound to their configuration.
//!
//! Hosts with equal configurations share layers, and plans share hooks that are bound to the same
//! configurations, so that each of thousands of hosts adds only its own settings.

mod bound;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use bound::BoundHooks;
use hashbrown::HashMap;
use rt::memory::taken_by;
use wire::MethodSet;

use crate::api::hooks::{Phase, Run};
use crate::config::core::CoreDir;
use crate::config::host::Host;
use crate::config::registry::{Registry, Slots};
use crate::config::section::{Lifetime, Section, fresh_id};
use crate::explain::Recorder;
use crate::request::http2::Http2Dir;

/// Most bytes of layers and plans that a loop caches; at the limit the cache is cleared. The size
/// of each is measured when it is created.
pub const LAYER_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The same for a thread with one connection, of which a server can have hundreds.
pub const LAYER_BYTES_LIMIT_OF_THREAD: usize = 8 * 1024 * 1024;

/// One merged configuration.
pub struct Layer {
    /// Its id in this loop.
    pub id: u64,
    /// The merged directory configurations.
    pub dir: Slots,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// The same in all loops of a generation; `None` if it does not come from the configuration
    /// alone.
    common_id: Option<u64>,
    /// Its own size in bytes, with its plans.
    bytes: Cell<usize>,
    /// By host.
    plans: RefCell<HashMap<u32, Rc<Plan>>>,
}

impl Layer {
    fn new(dir: Slots, lifetime: Lifetime, common_id: Option<u64>, bytes: usize) -> Rc<Layer> {
        let (bytes, plans) = (Cell::new(bytes), RefCell::default());
        Rc::new(Layer { id: fresh_id(), dir, lifetime, common_id, bytes, plans })
    }

    /// The id by which other loops of the generation know it ([`PlanCache::common`]).
    pub fn common_id(&self) -> Option<u64> {
        self.common_id
    }

    /// The bytes that it keeps alive if a holder outlives its place in the cache; 0 if it comes
    /// from the configuration alone, since the number of those is limited.
    pub fn foreign_bytes(&self) -> usize {
        if self.lifetime == Lifetime::Configuration { 0 } else { self.bytes.get() }
    }
}

/// The work of a merged configuration for a host, phase by phase.
pub struct Plan {
    /// Its id in this loop.
    pub id: u64,
    /// The host's server configurations.
    pub server: Slots,
    /// The merged directory configurations.
    pub dir: Slots,
    /// The core's directory configuration.
    pub core: Arc<CoreDir>,
    /// The methods of `Satisfy Any`.
    pub satisfy_any: MethodSet,
    /// Whether all hooks of the log read the head alone: [`crate::api::hooks::Hooks::on_log`].
    pub log_reads_head_alone: bool,
    /// What it says about responses over HTTP/2.
    pub http2: Http2Dir,
    /// The hooks of all phases, one phase after the other.
    hooks: Box<[Rc<PlannedHook>]>,
    /// Where each phase's hooks end.
    ends: [u16; Phase::COUNT],
}

/// A bound hook in a plan.
pub struct PlannedHook {
    /// The hook.
    pub hook: Box<dyn Run>,
    /// Its phase.
    pub phase: Phase,
    /// Its index among all hooks of its phase.
    pub place: usize,
    /// The owning module's `FILE`.
    pub module: &'static str,
    /// [`crate::api::hooks::HookDef::pure`]
    pub pure: bool,
    /// [`crate::api::hooks::HookDef::handler`]
    pub handler: Option<&'static str>,
}

impl Plan {
    fn compile(registry: &Registry, host: &Host, dir: &Slots, bound: &mut BoundHooks) -> Plan {
        let slot = registry.core;
        let (table, mut hooks) = (&registry.hooks, Vec::new());
        for slot in table.slots() {
            hooks.extend_from_slice(bound.bind(table, slot, &host.server, dir));
        }
        hooks.sort_unstable_by_key(|hook| (hook.phase, hook.place));
        let ends = Phase::ALL.map(|phase| {
            let end = hooks.partition_point(|hook| hook.phase <= phase);
            u16::try_from(end).unwrap_or(u16::MAX)
        });
        let mut of_log = hooks.iter().filter(|hook| hook.phase == Phase::LogTransaction);
        Plan {
            id: fresh_id(),
            log_reads_head_alone: of_log.all(|hook| hook.hook.reads_head_alone()),
            http2: registry.hooks.http2_dir(&host.server, dir),
            server: host.server.clone(),
            dir: dir.clone(),
            satisfy_any: registry.hooks.satisfy_any(dir),
            core: dir.share::<CoreDir>(slot).unwrap_or_default(),
            hooks: hooks.into(),
            ends,
        }
    }

    /// The hooks of a phase with work to do, in order.
    #[inline]
    pub fn phase(&self, phase: Phase) -> &[Rc<PlannedHook>] {
        let phase = phase as usize;
        let begin = phase.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.hooks.get(usize::from(begin)..usize::from(self.ends[phase])).unwrap_or_default()
    }
}

/// A merged configuration with a host's plan.
#[derive(Clone)]
pub struct Place {
    /// The host.
    pub host: Arc<Host>,
    /// The configuration.
    pub layer: Rc<Layer>,
    /// Its plan.
    pub plan: Rc<Plan>,
}

/// A section or a layer as the input of a merge. Both share one kind of id.
#[derive(Clone, Copy)]
pub struct Part<'p> {
    id: u64,
    dir: &'p Slots,
    lifetime: Lifetime,
    common_id: CommonId,
}

/// The id by which other loops know a part.
#[derive(Clone, Copy)]
enum CommonId {
    /// The id of a section, if it was read before the fork.
    Section,
    /// That of a layer.
    Layer(Option<u64>),
}

impl<'p> From<&'p Section> for Part<'p> {
    fn from(section: &'p Section) -> Part<'p> {
        let common_id = CommonId::Section;
        Part { id: section.id, dir: &section.dir, lifetime: section.lifetime, common_id }
    }
}

impl<'p> From<&'p Layer> for Part<'p> {
    fn from(layer: &'p Layer) -> Part<'p> {
        let common_id = CommonId::Layer(layer.common_id);
        Part { id: layer.id, dir: &layer.dir, lifetime: layer.lifetime, common_id }
    }
}

/// The layers and plans of one loop.
pub struct PlanCache {
    registry: Arc<Registry>,
    /// By [`Host::dir_id`].
    roots: RefCell<HashMap<u32, Rc<Layer>>>,
    layers: RefCell<HashMap<(u64, u64), Rc<Layer>>>,
    /// The layers of the configuration alone, by their common id.
    common: RefCell<HashMap<u64, Rc<Layer>>>,
    /// Ids of sections that were read before the fork are below this.
    section_ids: u64,
    bound: RefCell<BoundHooks>,
    recorder: Option<Rc<Recorder>>,
    /// The size of the layers with their plans.
    bytes: Cell<usize>,
    bytes_limit: usize,
    generation: Cell<u64>,
}

impl PlanCache {
    /// Returns an empty cache for the configurations of a registry's modules, of little more than
    /// `bytes_limit`. Ids of sections that were read before the fork are below `section_ids`.
    pub fn new(registry: Arc<Registry>, section_ids: u64, bytes_limit: usize) -> PlanCache {
        PlanCache {
            registry,
            roots: RefCell::default(),
            layers: RefCell::default(),
            common: RefCell::default(),
            section_ids,
            bound: RefCell::default(),
            recorder: None,
            bytes: Cell::new(0),
            bytes_limit,
            generation: Cell::new(0),
        }
    }

    /// Returns a cache whose merges and hooks are recorded.
    pub(super) fn recorded(self, recorder: Rc<Recorder>) -> PlanCache {
        let bound = RefCell::new(BoundHooks::recorded());
        PlanCache { bound, recorder: Some(recorder), ..self }
    }

    /// The initial place of a host's requests.
    pub fn place(&self, host: &Arc<Host>) -> Place {
        let layer = self.root(host);
        let plan = self.plan(host, &layer);
        Place { host: host.clone(), layer, plan }
    }

    /// The initial layer of a host's requests.
    pub fn root(&self, host: &Host) -> Rc<Layer> {
        let mut roots = self.roots.borrow_mut();
        let new = || {
            let id = mixed(ROOT, host.dir_id.into());
            let layer = Layer::new(host.dir.clone(), Lifetime::Configuration, Some(id), 0);
            self.common.borrow_mut().insert(id, layer.clone());
            layer
        };
        roots.entry(host.dir_id).or_insert_with(new).clone()
    }

    /// The layer that has this common id, if this loop has made it.
    pub fn common(&self, common_id: u64) -> Option<Rc<Layer>> {
        self.common.borrow().get(&common_id).cloned()
    }

    fn common_id(&self, part: Part<'_>) -> Option<u64> {
        match part.common_id {
            CommonId::Layer(id) => id,
            CommonId::Section => (part.lifetime == Lifetime::Configuration
                && part.id < self.section_ids)
                .then_some(part.id),
        }
    }

    /// Merges a section, or several joined ones, into a layer. The result is cached as long as both
    /// are.
    pub fn merge(&self, outer: &Layer, inner: Part<'_>) -> Rc<Layer> {
        let merge = |outer: &Slots, inner: &Slots| self.registry.merge_dir(outer, inner);
        self.made_of(outer.into(), inner, merge)
    }

    /// Joins two sections. The result is cached as long as both are.
    pub fn join(&self, first: Part<'_>, second: Part<'_>) -> Rc<Layer> {
        let join = |first: &Slots, second: &Slots| self.registry.join_dir(first, second);
        self.made_of(first, second, join)
    }

    fn made_of(
        &self,
        outer: Part<'_>,
        inner: Part<'_>,
        make: impl Fn(&Slots, &Slots) -> Slots,
    ) -> Rc<Layer> {
        let key = (outer.id, inner.id);
        if let Some(found) = self.layers.borrow().get(&key) {
            return found.clone();
        }
        let (dir, bytes) = taken_by(|| make(outer.dir, inner.dir));
        let bytes = bytes + size_of::<Layer>();
        let common_id = self.common_id(outer).zip(self.common_id(inner));
        let common_id = common_id.map(|(outer, inner)| mixed(outer, inner));
        let layer = Layer::new(dir, outer.lifetime.max(inner.lifetime), common_id, bytes);
        if let Some(recorder) = &self.recorder {
            recorder.merged(layer.id, key);
        }
        if layer.lifetime == Lifetime::Request {
            return layer;
        }
        if self.bytes.get() + bytes > self.bytes_limit {
            self.forget_all();
        }
        self.bytes.set(self.bytes.get() + bytes);
        self.layers.borrow_mut().insert(key, layer.clone());
        if let Some(id) = common_id {
            self.common.borrow_mut().insert(id, layer.clone());
        }
        layer
    }

    /// A host's plan of a layer, compiled on first use.
    pub fn plan(&self, host: &Host, layer: &Layer) -> Rc<Plan> {
        if let Some(plan) = layer.plans.borrow().get(&host.id) {
            return plan.clone();
        }
        let mut bound = self.bound.borrow_mut();
        let compile = || {
            let plan = Rc::new(Plan::compile(&self.registry, host, &layer.dir, &mut bound));
            layer.plans.borrow_mut().insert(host.id, plan.clone());
            plan
        };
        let (plan, bytes) = taken_by(compile);
        layer.bytes.set(layer.bytes.get() + bytes);
        if layer.lifetime != Lifetime::Request {
            self.bytes.set(self.bytes.get() + bytes);
        }
        plan
    }

    /// A number that advances when layers are removed: others that hold some should let them go.
    pub fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// Removes everything that was merged, directly or indirectly, from a section that no longer
    /// exists.
    pub fn forget_section(&self, section: u64) {
        self.generation.set(self.generation.get() + 1);
        let mut layers = self.layers.borrow_mut();
        // A merged layer is younger than its inputs.
        let mut by_age: Vec<_> = layers.iter().map(|(key, layer)| (layer.id, *key)).collect();
        by_age.sort_unstable();
        let mut gone = HashSet::new();
        for (id, key) in by_age {
            let of_gone = |part| part == section || gone.contains(&part);
            if (of_gone(key.0) || of_gone(key.1))
                && let Some(layer) = layers.remove(&key)
            {
                gone.insert(id);
                self.bytes.set(self.bytes.get().saturating_sub(layer.bytes.get()));
            }
        }
        self.bound.borrow_mut().forget_all();
    }

    /// Clears the cache.
    pub fn forget_all(&self) {
        self.generation.set(self.generation.get() + 1);
        self.layers.borrow_mut().clear();
        self.common.borrow_mut().clear();
        for root in self.roots.borrow().values() {
            root.plans.borrow_mut().clear();
            self.common.borrow_mut().extend(root.common_id.map(|id| (id, root.clone())));
        }
        self.bound.borrow_mut().forget_all();
        self.bytes.set(0);
    }
}

/// The first part of a root's common id.
const ROOT: u64 = u64::MAX;

/// The id of a combination of two parts (two rounds of the mixer of MurmurHash3).
fn mixed(outer: u64, inner: u64) -> u64 {
    let mix = |mut id: u64| {
        id = (id ^ (id >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
        id = (id ^ (id >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
        id ^ (id >> 33)
    };
    mix(mix(outer.wrapping_add(0x9e37_79b9_7f4a_7c15)).rotate_left(31) ^ inner)
}
