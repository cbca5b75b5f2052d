//! mod_authz_host.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_host.html>

use server::module::Module;

/// `mod_authz_host.c`
pub struct AuthzHost;

impl Module for AuthzHost {
    const NAME: &'static str = "authz_host_module";
    const FILE: &'static str = "mod_authz_host.c";
    type Server = ();
    type Dir = ();
}
