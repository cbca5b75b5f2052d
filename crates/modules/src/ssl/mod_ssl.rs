//! mod_ssl.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html>

use server::module::Module;

/// `mod_ssl.c`
pub struct Ssl;

impl Module for Ssl {
    const NAME: &'static str = "ssl_module";
    const FILE: &'static str = "mod_ssl.c";
    type Server = ();
    type Dir = ();
}
