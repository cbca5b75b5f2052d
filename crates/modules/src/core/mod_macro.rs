//! mod_macro: parameterised blocks of configuration.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_macro.html>
//!
//! The reader of configuration files expands macros; these rows exist for `-L` and the manual.

use server::context::{Override, Places};
use server::directive::{Row, Takes};
use server::module::Module;

/// `mod_macro.c`
pub struct Macro;

impl Module for Macro {
    const NAME: &'static str = "macro_module";
    const FILE: &'static str = "mod_macro.c";
    type Server = ();
    type Dir = ();
    const DIRECTIVES: &'static [Row<Macro>] = &[
        Row::<Macro>::new(
            "Macro",
            Takes::Section(|_, _, _| Ok(())),
            "name [par1 .. parN]",
            "Defines a macro, whose lines Use inserts.",
        )
        .standing(Places::ALL, Override::ALL),
        Row::<Macro>::new(
            "Use",
            Takes::Raw(|_, _| Ok(())),
            "name [value1 ... valueN]",
            "Inserts a macro's lines, with values for its parameters.",
        )
        .standing(Places::ALL, Override::ALL),
        Row::<Macro>::new("UndefMacro", Takes::Raw(|_, _| Ok(())), "name", "Forgets a macro.")
            .standing(Places::ALL, Override::ALL),
        Row::<Macro>::new(
            "MacroIgnoreBadNesting",
            Takes::Raw(|_, _| Ok(())),
            "",
            "Accepts sections in macros that begin or end elsewhere, without a warning.",
        )
        .standing(Places::ALL, Override::ALL),
        Row::<Macro>::new(
            "MacroIgnoreEmptyArgs",
            Takes::Raw(|_, _| Ok(())),
            "",
            "Accepts empty values of parameters, without a warning.",
        )
        .standing(Places::ALL, Override::ALL),
    ];
}
