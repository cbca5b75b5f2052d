//! mod_alias.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_alias.html>

use server::module::Module;

/// `mod_alias.c`
pub struct Alias;

impl Module for Alias {
    const NAME: &'static str = "alias_module";
    const FILE: &'static str = "mod_alias.c";
    type Server = ();
    type Dir = ();
}
