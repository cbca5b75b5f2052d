//! mod_unixd.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_unixd.html>

use server::module::Module;

/// `mod_unixd.c`
pub struct Unixd;

impl Module for Unixd {
    const NAME: &'static str = "unixd_module";
    const FILE: &'static str = "mod_unixd.c";
    type Server = ();
    type Dir = ();
}
