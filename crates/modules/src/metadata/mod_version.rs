//! mod_version.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_version.html>

use server::module::Module;

/// `mod_version.c`
pub struct Version;

impl Module for Version {
    const NAME: &'static str = "version_module";
    const FILE: &'static str = "mod_version.c";
    type Server = ();
    type Dir = ();
}
