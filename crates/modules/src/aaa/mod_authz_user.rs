//! mod_authz_user.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_user.html>

use server::module::Module;

/// `mod_authz_user.c`
pub struct AuthzUser;

impl Module for AuthzUser {
    const NAME: &'static str = "authz_user_module";
    const FILE: &'static str = "mod_authz_user.c";
    type Server = ();
    type Dir = ();
}
