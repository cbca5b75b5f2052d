//! mod_authz_core.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_core.html>

use server::module::Module;

/// `mod_authz_core.c`
pub struct AuthzCore;

impl Module for AuthzCore {
    const NAME: &'static str = "authz_core_module";
    const FILE: &'static str = "mod_authz_core.c";
    type Server = ();
    type Dir = ();
}
