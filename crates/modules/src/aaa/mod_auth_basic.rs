//! mod_auth_basic.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_auth_basic.html>

use server::module::Module;

/// `mod_auth_basic.c`
pub struct AuthBasic;

impl Module for AuthBasic {
    const NAME: &'static str = "auth_basic_module";
    const FILE: &'static str = "mod_auth_basic.c";
    type Server = ();
    type Dir = ();
}
