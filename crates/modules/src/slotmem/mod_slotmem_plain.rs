//! mod_slotmem_plain.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_slotmem_plain.html>

use server::hooks::Hooks;
use server::module::Module;

use super::{GROUP, Provider};

/// `mod_slotmem_plain.c`
pub struct SlotmemPlain;

impl Module for SlotmemPlain {
    const NAME: &'static str = "slotmem_plain_module";
    const FILE: &'static str = "mod_slotmem_plain.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        hooks.provider(GROUP, "plain", Provider);
    }
}
