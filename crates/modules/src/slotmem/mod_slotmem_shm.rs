//! mod_slotmem_shm.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_slotmem_shm.html>

use server::hooks::Hooks;
use server::module::Module;

use super::{GROUP, Provider};

/// `mod_slotmem_shm.c`
pub struct SlotmemShm;

impl Module for SlotmemShm {
    const NAME: &'static str = "slotmem_shm_module";
    const FILE: &'static str = "mod_slotmem_shm.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider(GROUP, "shm", Provider);
    }
}
