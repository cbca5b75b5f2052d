//! mod_setenvif.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_setenvif.html>

use server::module::Module;

/// `mod_setenvif.c`
pub struct Setenvif;

impl Module for Setenvif {
    const NAME: &'static str = "setenvif_module";
    const FILE: &'static str = "mod_setenvif.c";
    type Server = ();
    type Dir = ();
}
