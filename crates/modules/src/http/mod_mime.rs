//! mod_mime.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_mime.html>

use server::module::Module;

/// `mod_mime.c`
pub struct Mime;

impl Module for Mime {
    const NAME: &'static str = "mime_module";
    const FILE: &'static str = "mod_mime.c";
    type Server = ();
    type Dir = ();
}
