//! The Plan: what a distinct merged configuration really has to do.
//!
//! Walking a request through its sections ends in a [`Layer`]: one merged configuration, known by
//! the host it began with and the ordered list of sections that matched. The first request that
//! arrives there compiles its [`Plan`]; the others find it. A plan holds, per phase, only the hooks
//! whose `wants` said yes, with their configuration bound.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use wire::MethodSet;

use crate::core::{Core, CoreDir};
use crate::hooks::{Phase, Run};
use crate::host::Host;
use crate::section::fresh_id;
use crate::slots::{Registry, Slots};

/// The most layers that a loop keeps. Clients can enumerate combinations of sections; at the limit
/// the cache starts over.
pub const LAYER_LIMIT: usize = 8192;

/// One merged configuration.
pub struct Layer {
    /// Its identity in this loop.
    pub id: u64,
    /// The host it began with.
    pub host: Arc<Host>,
    /// The merged directory configurations.
    pub dir: Slots,
    plan: OnceCell<Rc<Plan>>,
}

/// What a merged configuration has to do, phase by phase.
pub struct Plan {
    /// The layer's identity.
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
    /// [`crate::hooks::HookDef::pure`]
    pub pure: bool,
    /// [`crate::hooks::HookDef::handler`]
    pub handler: Option<&'static str>,
}

impl Plan {
    fn compile(registry: &Registry, layer: &Layer) -> Plan {
        let slot = registry.slot_of::<Core>().unwrap_or(0);
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

    /// The hooks of a phase that have work here, in order.
    pub fn phase(&self, phase: Phase) -> &[PlannedHook] {
        &self.phases[phase as usize]
    }
}

/// A merged configuration with its plan.
#[derive(Clone)]
pub struct Place {
    /// The configuration.
    pub layer: Rc<Layer>,
    /// What it has to do.
    pub plan: Rc<Plan>,
}

/// The layers and plans of one loop.
pub struct PlanCache {
    registry: Arc<Registry>,
    roots: RefCell<HashMap<u32, Rc<Layer>>>,
    layers: RefCell<HashMap<(u64, u64), Rc<Layer>>>,
}

impl PlanCache {
    /// An empty cache for the configurations of a registry's modules.
    pub fn new(registry: Arc<Registry>) -> PlanCache {
        PlanCache { registry, roots: RefCell::default(), layers: RefCell::default() }
    }

    /// Where a host's requests begin.
    pub fn place(&self, host: &Arc<Host>) -> Place {
        let layer = self.root(host);
        let plan = self.plan(&self.registry, &layer);
        Place { layer, plan }
    }

    /// The layer that a host's requests begin with.
    pub fn root(&self, host: &Arc<Host>) -> Rc<Layer> {
        let mut roots = self.roots.borrow_mut();
        let root = roots.entry(host.id).or_insert_with(|| {
            Rc::new(Layer {
                id: fresh_id(),
                host: host.clone(),
                dir: host.dir.clone(),
                plan: OnceCell::new(),
            })
        });
        root.clone()
    }

    /// The layer that `section` (by identity) makes of `outer`.
    pub fn inside(
        &self,
        registry: &Registry,
        outer: &Layer,
        section: u64,
        dir: &Slots,
    ) -> Rc<Layer> {
        let key = (outer.id, section);
        if let Some(found) = self.layers.borrow().get(&key) {
            return found.clone();
        }
        let layer = Rc::new(Layer {
            id: fresh_id(),
            host: outer.host.clone(),
            dir: registry.merge_dir(&outer.dir, dir),
            plan: OnceCell::new(),
        });
        let mut layers = self.layers.borrow_mut();
        if layers.len() >= LAYER_LIMIT {
            layers.clear();
        }
        layers.insert(key, layer.clone());
        layer
    }

    /// A layer's plan, compiled on first use.
    pub fn plan(&self, registry: &Registry, layer: &Layer) -> Rc<Plan> {
        layer.plan.get_or_init(|| Rc::new(Plan::compile(registry, layer))).clone()
    }
}
