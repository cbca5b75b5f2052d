//! Hosts whose clients get back what they send, in place of HTTP (mod_echo).

use super::Hooks;
use super::table::HookTable;
use crate::api::module::Module;
use crate::config::registry::Slots;

impl<M: Module> Hooks<'_, M> {
    /// Registers whether clients of a host get back what they send.
    pub fn echoes(&mut self, ask: fn(&M::Server) -> bool) {
        let slot = self.slot;
        self.table.echoes =
            Some(Box::new(move |server| server.get::<M::Server>(slot).is_some_and(ask)));
    }
}

impl HookTable {
    /// Whether clients of a host get back what they send.
    pub fn echoes(&self, server: &Slots) -> bool {
        self.echoes.as_ref().is_some_and(|ask| ask(server))
    }
}
