//! mod_deflate.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_deflate.html>

use server::module::Module;

/// `mod_deflate.c`
pub struct Deflate;

impl Module for Deflate {
    const NAME: &'static str = "deflate_module";
    const FILE: &'static str = "mod_deflate.c";
    type Server = ();
    type Dir = ();
}
