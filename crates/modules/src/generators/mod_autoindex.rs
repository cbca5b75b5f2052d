//! mod_autoindex.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_autoindex.html>

use server::module::Module;

/// `mod_autoindex.c`
pub struct Autoindex;

impl Module for Autoindex {
    const NAME: &'static str = "autoindex_module";
    const FILE: &'static str = "mod_autoindex.c";
    type Server = ();
    type Dir = ();
}
