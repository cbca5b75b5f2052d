//! mod_macro.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_macro.html>

use server::module::Module;

/// `mod_macro.c`
pub struct Macro;

impl Module for Macro {
    const NAME: &'static str = "macro_module";
    const FILE: &'static str = "mod_macro.c";
    type Server = ();
    type Dir = ();
}
