//! mod_socache_shmcb.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_socache_shmcb.html>

use server::module::Module;

/// `mod_socache_shmcb.c`
pub struct SocacheShmcb;

impl Module for SocacheShmcb {
    const NAME: &'static str = "socache_shmcb_module";
    const FILE: &'static str = "mod_socache_shmcb.c";
    type Server = ();
    type Dir = ();
}
