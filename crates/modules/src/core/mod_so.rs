//! mod_so: `LoadModule` activates a built-in module.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_so.html>
//!
//! The reader of configuration files executes these directives; these rows exist for `-L` and the
//! manual.

use server::context::{Override, Places};
use server::directive::{Row, State, Takes};
use server::module::Module;

/// `mod_so.c`
pub struct So;

impl Module for So {
    const NAME: &'static str = "so_module";
    const FILE: &'static str = "mod_so.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<So>] = &[
        Row::<So>::new(
            "LoadModule",
            Takes::Two(|_, _, _| Ok(())),
            "module filename",
            "Activates a module by its name; the file is ignored.",
        )
        .standing(Places::HOST, Override::NONE),
        Row::<So>::new(
            "LoadFile",
            Takes::Each(|_, _| Ok(())),
            "filename [filename] ...",
            "Loads libraries that Apache's modules need.",
        )
        .standing(Places::HOST, Override::NONE)
        .state(State::Accepted("shared objects are never loaded")),
    ];
}
