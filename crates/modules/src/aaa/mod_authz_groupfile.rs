//! mod_authz_groupfile.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_groupfile.html>

use server::module::Module;

/// `mod_authz_groupfile.c`
pub struct AuthzGroupfile;

impl Module for AuthzGroupfile {
    const NAME: &'static str = "authz_groupfile_module";
    const FILE: &'static str = "mod_authz_groupfile.c";
    type Server = ();
    type Dir = ();
}
