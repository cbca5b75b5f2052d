//! Hooks that plans share.

use std::rc::Rc;
use std::sync::Arc;

use hashbrown::HashMap;

use crate::api::hooks::HookDef;
use crate::api::module::AnyConfig;
use crate::config::registry::Slots;
use crate::engine::plan::PlannedHook;

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
pub(super) struct BoundHooks(HashMap<Key, Bound>);

impl BoundHooks {
    /// A hook with a host's and a layer's configurations, if it has work under them.
    pub fn bind(&mut self, def: &HookDef, server: &Slots, dir: &Slots) -> Option<Rc<PlannedHook>> {
        let (of_server, of_dir) = (server.any(def.slot)?, dir.any(def.slot)?);
        let key = Key {
            hook: def,
            server: Arc::as_ptr(of_server).cast(),
            dir: Arc::as_ptr(of_dir).cast(),
        };
        let bind = || {
            let planned = |hook| {
                let (module, pure, handler) = (def.module, def.pure, def.handler);
                Rc::new(PlannedHook { hook, module, pure, handler })
            };
            Bound {
                hook: def.bind(server, dir).map(planned),
                _server: of_server.clone(),
                _dir: of_dir.clone(),
            }
        };
        self.0.entry(key).or_insert_with(bind).hook.clone()
    }

    /// Starts over. Plans keep what they have.
    pub fn forget_all(&mut self) {
        self.0.clear();
    }
}
