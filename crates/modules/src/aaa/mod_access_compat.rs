//! mod_access_compat.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_access_compat.html>

use server::module::Module;

/// `mod_access_compat.c`
pub struct AccessCompat;

impl Module for AccessCompat {
    const NAME: &'static str = "access_compat_module";
    const FILE: &'static str = "mod_access_compat.c";
    type Server = ();
    type Dir = ();
}
