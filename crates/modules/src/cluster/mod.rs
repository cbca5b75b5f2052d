//! Servers that tell each other how busy they are (`modules/cluster`).

mod address;
pub mod mod_heartbeat;
pub mod mod_heartmonitor;

use server::module::{ErasedModule, module};

/// The modules of this family.
pub(super) fn modules() -> [&'static dyn ErasedModule; 2] {
    [module::<mod_heartbeat::Sender>(), module::<mod_heartmonitor::Heartmonitor>()]
}
