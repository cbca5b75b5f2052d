//! mod_negotiation.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_negotiation.html>

use server::module::Module;

/// `mod_negotiation.c`
pub struct Negotiation;

impl Module for Negotiation {
    const NAME: &'static str = "negotiation_module";
    const FILE: &'static str = "mod_negotiation.c";
    type Server = ();
    type Dir = ();
}
