//! mod_headers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_headers.html>

use server::module::Module;

/// `mod_headers.c`
pub struct Headers;

impl Module for Headers {
    const NAME: &'static str = "headers_module";
    const FILE: &'static str = "mod_headers.c";
    type Server = ();
    type Dir = ();
}
