//! The Plan: the work that a distinct merged configuration requires.
//!
//! A walk through the sections ends in a [`Layer`]: one merged configuration, identified by its
//! host and the ordered list of matching sections. The first request with a layer compiles its
//! [`Plan`]; later ones reuse it. A plan holds, per phase, only the hooks whose `wants` is true,
//! bound to their configuration.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;
use rt::memory::taken_by;
use wire::MethodSet;

use crate::api::hooks::{Phase, Run};
use crate::config::host::Host;
use crate::config::registry::{Registry, Slots};
use crate::config::section::{Lifetime, Section, fresh_id};
use crate::core::CoreDir;

/// Most layers that a loop caches. Clients can enumerate combinations of sections; at the limit the
/// cache is cleared.
pub const LAYER_LIMIT: usize = 8192;

/// Most bytes of layers and plans that a loop caches; at the limit the cache is cleared. The size
/// of each is measured when it is created.
pub const LAYER_BYTES_LIMIT: usize = 64 * 1024 * 1024;

/// The same for a thread with one connection, of which a server can have hundreds.
pub const LAYER_BYTES_LIMIT_OF_THREAD: usize = 8 * 1024 * 1024;

/// One merged configuration.
pub struct Layer {
    /// Its id in this loop.
    pub id: u64,
    /// The host it began with.
    pub host: Arc<Host>,
    /// The merged directory configurations.
    pub dir: Slots,
    /// Its lifetime.
    pub lifetime: Lifetime,
    /// Its own size in bytes, with its plan.
    bytes: Cell<usize>,
    plan: OnceCell<Rc<Plan>>,
}

impl Layer {
    /// The bytes that it keeps alive if a holder outlives its place in the cache; 0 if it comes
    /// from the configuration alone, since the number of those is limited.
    pub fn foreign_bytes(&self) -> usize {
        if self.lifetime == Lifetime::Configuration { 0 } else { self.bytes.get() }
    }
}

/// The work of a merged configuration, phase by phase.
pub struct Plan {
    /// The layer's id.
    pub id: u64,
    /// The host's server configurations.
    pub server: Slots,
    /// The merged directory configurations.
    pub dir: Slots,
    /// The core's directory configuration.
    pub core: Arc<CoreDir>,
    /// The methods of `Satisfy Any`.
    pub satisfy_any: MethodSet,
    phases: [Box<[PlannedHook]>; Phase::COUNT],
}

/// A bound hook in a plan.
pub struct PlannedHook {
    /// The hook.
    pub hook: Box<dyn Run>,
    /// The owning module's `FILE`.
    pub module: &'static str,
    /// [`crate::api::hooks::HookDef::pure`]
    pub pure: bool,
    /// [`crate::api::hooks::HookDef::handler`]
    pub handler: Option<&'static str>,
}

impl Plan {
    fn compile(registry: &Registry, layer: &Layer) -> Plan {
        let slot = registry.core;
        let phases = std::array::from_fn(|phase| {
            let hooks = registry.hooks.all_phases().get(phase).into_iter().flatten();
            let wanted = hooks.filter_map(|def| {
                let hook = def.bind(&layer.host.server, &layer.dir)?;
                let (module, pure, handler) = (def.module, def.pure, def.handler);
                Some(PlannedHook { hook, module, pure, handler })
            });
            wanted.collect()
        });
        Plan {
            id: layer.id,
            server: layer.host.server.clone(),
            dir: layer.dir.clone(),
            satisfy_any: registry.hooks.satisfy_any(&layer.dir),
            core: layer.dir.share::<CoreDir>(slot).unwrap_or_default(),
            phases,
        }
    }

    /// The hooks of a phase with work to do, in order.
    #[inline]
    pub fn phase(&self, phase: Phase) -> &[PlannedHook] {
        &self.phases[phase as usize]
    }
}

/// A merged configuration with its plan.
#[derive(Clone)]
pub struct Place {
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
}

impl<'p> From<&'p Section> for Part<'p> {
    fn from(section: &'p Section) -> Part<'p> {
        Part { id: section.id, dir: &section.dir, lifetime: section.lifetime }
    }
}

impl<'p> From<&'p Layer> for Part<'p> {
    fn from(layer: &'p Layer) -> Part<'p> {
        Part { id: layer.id, dir: &layer.dir, lifetime: layer.lifetime }
    }
}

/// The layers and plans of one loop.
pub struct PlanCache {
    registry: Arc<Registry>,
    roots: RefCell<HashMap<u32, Rc<Layer>>>,
    layers: RefCell<HashMap<(u64, u64), Rc<Layer>>>,
    /// The size of the layers with their plans.
    bytes: Cell<usize>,
    bytes_limit: usize,
}

impl PlanCache {
    /// Returns an empty cache for the configurations of a registry's modules, of little more than
    /// `bytes_limit`.
    pub fn new(registry: Arc<Registry>, bytes_limit: usize) -> PlanCache {
        PlanCache {
            registry,
            roots: RefCell::default(),
            layers: RefCell::default(),
            bytes: Cell::new(0),
            bytes_limit,
        }
    }

    /// The initial place of a host's requests.
    pub fn place(&self, host: &Arc<Host>) -> Place {
        let layer = self.root(host);
        let plan = self.plan(&self.registry, &layer);
        Place { layer, plan }
    }

    /// The initial layer of a host's requests.
    pub fn root(&self, host: &Arc<Host>) -> Rc<Layer> {
        let mut roots = self.roots.borrow_mut();
        let root = roots.entry(host.id).or_insert_with(|| {
            Rc::new(Layer {
                id: fresh_id(),
                host: host.clone(),
                dir: host.dir.clone(),
                lifetime: Lifetime::Configuration,
                bytes: Cell::new(0),
                plan: OnceCell::new(),
            })
        });
        root.clone()
    }

    /// Merges a section, or several joined ones, into a layer. The result is cached as long as both
    /// are.
    pub fn merge(&self, outer: &Layer, inner: Part<'_>) -> Rc<Layer> {
        let merge = |outer: &Slots, inner: &Slots| self.registry.merge_dir(outer, inner);
        self.made_of(&outer.host, outer.into(), inner, merge)
    }

    /// Joins two sections for a request to `host`. The result is cached as long as both are.
    pub fn join(&self, host: &Arc<Host>, first: Part<'_>, second: Part<'_>) -> Rc<Layer> {
        let join = |first: &Slots, second: &Slots| self.registry.join_dir(first, second);
        self.made_of(host, first, second, join)
    }

    fn made_of(
        &self,
        host: &Arc<Host>,
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
        let layer = Rc::new(Layer {
            id: fresh_id(),
            host: host.clone(),
            dir,
            lifetime: outer.lifetime.max(inner.lifetime),
            bytes: Cell::new(bytes),
            plan: OnceCell::new(),
        });
        if layer.lifetime == Lifetime::Request {
            return layer;
        }
        let is_full = self.bytes.get() + bytes > self.bytes_limit;
        if is_full || self.layers.borrow().len() >= LAYER_LIMIT {
            self.forget_all();
        }
        self.bytes.set(self.bytes.get() + bytes);
        self.layers.borrow_mut().insert(key, layer.clone());
        layer
    }

    /// A layer's plan, compiled on first use.
    pub fn plan(&self, registry: &Registry, layer: &Layer) -> Rc<Plan> {
        let compile = || {
            let (plan, bytes) = taken_by(|| Rc::new(Plan::compile(registry, layer)));
            layer.bytes.set(layer.bytes.get() + bytes);
            if layer.lifetime != Lifetime::Request {
                self.bytes.set(self.bytes.get() + bytes);
            }
            plan
        };
        layer.plan.get_or_init(compile).clone()
    }

    /// Removes everything that was merged, directly or indirectly, from a section that no longer
    /// exists.
    pub fn forget_section(&self, section: u64) {
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
    }

    /// Clears the cache.
    pub fn forget_all(&self) {
        self.layers.borrow_mut().clear();
        self.bytes.set(0);
    }
}
