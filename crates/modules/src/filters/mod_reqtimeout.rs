//! mod_reqtimeout.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_reqtimeout.html>

use server::module::Module;

/// `mod_reqtimeout.c`
pub struct Reqtimeout;

impl Module for Reqtimeout {
    const NAME: &'static str = "reqtimeout_module";
    const FILE: &'static str = "mod_reqtimeout.c";
    type Server = ();
    type Dir = ();
}
