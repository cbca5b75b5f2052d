//! mod_dir.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_dir.html>

use server::module::Module;

/// `mod_dir.c`
pub struct Dir;

impl Module for Dir {
    const NAME: &'static str = "dir_module";
    const FILE: &'static str = "mod_dir.c";
    type Server = ();
    type Dir = ();
}
