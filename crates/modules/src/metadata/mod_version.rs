//! mod_version: configuration that depends on the server's version.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_version.html>
//!
//! The reader of configuration files evaluates it; the row exists for `-L` and the manual.

use server::context::{Override, Places};
use server::directive::{Row, Takes};
use server::module::Module;

/// `mod_version.c`
pub struct Version;

impl Module for Version {
    const NAME: &'static str = "version_module";
    const FILE: &'static str = "mod_version.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<Version>] = &[Row::<Version>::new(
        "IfVersion",
        Takes::Section(|cx, _, nodes| {
            cx.apply(nodes);
            Ok(())
        }),
        "[[!]operator] version",
        "Encloses directives for certain versions of Apache; the version here is 2.4.71.",
    )
    .standing(Places::ALL, Override::ALL)];
}
