//! mod_so.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_so.html>

use server::module::Module;

/// `mod_so.c`
pub struct So;

impl Module for So {
    const NAME: &'static str = "so_module";
    const FILE: &'static str = "mod_so.c";
    type Server = ();
    type Dir = ();
}
