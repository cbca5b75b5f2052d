//! mod_authn_file.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_file.html>

use server::module::Module;

/// `mod_authn_file.c`
pub struct AuthnFile;

impl Module for AuthnFile {
    const NAME: &'static str = "authn_file_module";
    const FILE: &'static str = "mod_authn_file.c";
    type Server = ();
    type Dir = ();
}
