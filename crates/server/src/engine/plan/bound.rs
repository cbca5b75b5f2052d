//! Hooks that plans share.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::hooks::{HookDef, Phase, Run};
use crate::api::module::AnyConfig;
use crate::config::registry::Slots;
use crate::engine::plan::PlannedHook;
use crate::explain::RecordedHook;

/// A hook with its server and directory configurations: where these are the same, so is what it
/// wants and does.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    hook: *const HookDef,
    server: *const (),
    dir: *const (),
}

/// What came of binding a hook.
struct Bound {
    /// `None` where the hook has no work.
    hook: Option<Rc<PlannedHook>>,
    /// Held, so that no other configuration comes to lie at their addresses.
    _server: Arc<AnyConfig>,
    _dir: Arc<AnyConfig>,
}

/// The hooks that a loop has bound.
#[derive(Default)]
pub(super) struct BoundHooks {
    known: HashMap<Key, Bound>,
    /// Whether each hook is bound inside one that records it.
    are_recorded: bool,
}

impl BoundHooks {
    /// Returns an empty set whose future hooks are recorded.
    pub fn recorded() -> BoundHooks {
        BoundHooks { known: HashMap::new(), are_recorded: true }
    }

    /// A hook, which has this place in its phase, with a host's and a layer's configurations, if it
    /// has work under them.
    pub fn bind(
        &mut self,
        def: &HookDef,
        (phase, place): (Phase, usize),
        server: &Slots,
        dir: &Slots,
    ) -> Option<Rc<PlannedHook>> {
        let (of_server, of_dir) = (server.any(def.slot)?, dir.any(def.slot)?);
        let key = Key {
            hook: def,
            server: Arc::as_ptr(of_server).cast(),
            dir: Arc::as_ptr(of_dir).cast(),
        };
        let are_recorded = self.are_recorded;
        let bind = || {
            let planned = |mut hook: Box<dyn Run>| {
                let (module, pure, handler) = (def.module, def.pure, def.handler);
                if are_recorded {
                    hook = Box::new(RecordedHook { hook, phase, module, pure });
                }
                Rc::new(PlannedHook { hook, place, module, pure, handler })
            };
            Bound {
                hook: def.bind(server, dir).map(planned),
                _server: of_server.clone(),
                _dir: of_dir.clone(),
            }
        };
        self.known.entry(key).or_insert_with(bind).hook.clone()
    }

    /// Starts over. Plans keep what they have.
    pub fn forget_all(&mut self) {
        self.known.clear();
    }
}
