//! mod_env.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_env.html>

use server::module::Module;

/// `mod_env.c`
pub struct Env;

impl Module for Env {
    const NAME: &'static str = "env_module";
    const FILE: &'static str = "mod_env.c";
    type Server = ();
    type Dir = ();
}
