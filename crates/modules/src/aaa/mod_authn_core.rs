//! mod_authn_core.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_core.html>

use server::module::Module;

/// `mod_authn_core.c`
pub struct AuthnCore;

impl Module for AuthnCore {
    const NAME: &'static str = "authn_core_module";
    const FILE: &'static str = "mod_authn_core.c";
    type Server = ();
    type Dir = ();
}
