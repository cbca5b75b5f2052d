//! mod_filter.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_filter.html>

use server::module::Module;

/// `mod_filter.c`
pub struct Filter;

impl Module for Filter {
    const NAME: &'static str = "filter_module";
    const FILE: &'static str = "mod_filter.c";
    type Server = ();
    type Dir = ();
}
