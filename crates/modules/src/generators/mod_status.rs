//! mod_status.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_status.html>

use server::module::Module;

/// `mod_status.c`
pub struct Status;

impl Module for Status {
    const NAME: &'static str = "status_module";
    const FILE: &'static str = "mod_status.c";
    type Server = ();
    type Dir = ();
}
