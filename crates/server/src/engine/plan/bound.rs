//! Hooks that plans share.

use std::hash::BuildHasher;
use std::rc::Rc;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::api::hooks::{HookDef, HookTable, Phase};
use crate::api::module::AnyConfig;
use crate::config::registry::Slots;
use crate::engine::plan::PlannedHook;
use crate::explain::RecordedHook;

/// The hooks of a module under a server and a directory configuration: where these are the same, so
/// is what the hooks want and do. They are bound together, since thousands of hosts and places
/// have configurations of their own, and most hooks have no work under them.
struct Group {
    slot: usize,
    /// The configurations. They are held, so that no others come to lie at their addresses.
    server: Arc<AnyConfig>,
    dir: Arc<AnyConfig>,
    /// The hooks with work to do.
    hooks: Box<[Rc<PlannedHook>]>,
}

/// The hooks that a loop has bound.
#[derive(Default)]
pub(super) struct BoundHooks {
    groups: HashTable<Group>,
    hasher: DefaultHashBuilder,
    /// Whether each hook is bound inside one that records it.
    are_recorded: bool,
}

impl BoundHooks {
    /// Returns an empty set whose future hooks are recorded.
    pub fn recorded() -> BoundHooks {
        BoundHooks { are_recorded: true, ..BoundHooks::default() }
    }

    /// The hooks of a slot's module that have work under a host's and a layer's configurations.
    pub fn bind(
        &mut self,
        table: &HookTable,
        slot: usize,
        server: &Slots,
        dir: &Slots,
    ) -> &[Rc<PlannedHook>] {
        let (of_server, of_dir) = (server.any(slot), dir.any(slot));
        let hasher = &self.hasher;
        let address = |value: &Arc<AnyConfig>| Arc::as_ptr(value).cast::<()>();
        let hash = |slot: usize, server: &Arc<AnyConfig>, dir: &Arc<AnyConfig>| {
            hasher.hash_one((slot, address(server), address(dir)))
        };
        let is_it = |group: &Group| {
            group.slot == slot
                && Arc::ptr_eq(&group.server, of_server)
                && Arc::ptr_eq(&group.dir, of_dir)
        };
        let are_recorded = self.are_recorded;
        let rehash = |group: &Group| hash(group.slot, &group.server, &group.dir);
        let entry = self.groups.entry(hash(slot, of_server, of_dir), is_it, rehash);
        let group = entry.or_insert_with(|| Group {
            slot,
            server: of_server.clone(),
            dir: of_dir.clone(),
            hooks: bind_all(table, slot, (server, dir), are_recorded),
        });
        &group.into_mut().hooks
    }

    /// Starts over. Plans keep what they have.
    pub fn forget_all(&mut self) {
        self.groups.clear();
    }
}

/// The hooks of a slot that have work under a host's and a layer's configurations.
fn bind_all(
    table: &HookTable,
    slot: usize,
    (server, dir): (&Slots, &Slots),
    are_recorded: bool,
) -> Box<[Rc<PlannedHook>]> {
    let planned = |(phase, place, def): (Phase, usize, &HookDef)| {
        let mut hook = def.bind(server, dir)?;
        let (module, pure, handler) = (def.module, def.pure, def.handler);
        if are_recorded {
            hook = Box::new(RecordedHook { hook, phase, module, pure });
        }
        Some(Rc::new(PlannedHook { hook, phase, place, module, pure, handler }))
    };
    table.of_slot(slot).filter_map(planned).collect()
}
