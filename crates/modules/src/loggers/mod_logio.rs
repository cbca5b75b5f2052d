//! mod_logio.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_logio.html>

use server::module::Module;

/// `mod_logio.c`
pub struct Logio;

impl Module for Logio {
    const NAME: &'static str = "logio_module";
    const FILE: &'static str = "mod_logio.c";
    type Server = ();
    type Dir = ();
}
