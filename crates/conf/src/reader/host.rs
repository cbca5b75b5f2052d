//! The server for which the reader reads.

use std::path::Path;

use bstr::BStr;

use crate::diag::Diagnostic;
use crate::tree::Arg;

/// Queries about modules and directives, for `IfModule`, `IfDirective` and `LoadModule`.
pub trait Host {
    /// Whether the module is active. Both forms of name are allowed: `alias_module` and
    /// `mod_alias.c`.
    fn module_active(&self, name: &BStr) -> bool;

    /// Whether an active module or the core has this directive or section (`<Directory`), ignoring
    /// case. Includes those that the reader executes: if `<IfVersion`, `<Macro`, `Use` or
    /// `UndefMacro` is not known, the reader leaves it alone.
    fn directive_known(&self, name: &BStr) -> bool;

    /// `LoadModule name file`: activates the module. `file` is absolute.
    ///
    /// # Errors
    /// The finding to report if the module does not exist. The reader adds the `Include` lines.
    fn load_module(&mut self, name: &Arg, file: &Path) -> Result<(), Box<Diagnostic>>;

    /// `LoadFile file`. Shared objects are not loaded; by default this does nothing.
    ///
    /// # Errors
    /// The message for the administrator.
    fn load_file(&mut self, file: &Path) -> Result<(), String> {
        let _ = file;
        Ok(())
    }

    /// Whether an `.htaccess` may contain this condition or macro, by the override classes allowed
    /// there.
    fn allowed(&self, name: &BStr) -> bool {
        let _ = name;
        true
    }

    /// The number of the first text of an `.htaccess`, so that its spans can be told from others
    /// ([`crate::Sources::numbered_from`]).
    fn first_file(&self) -> u32 {
        0
    }

    /// Is one that it may not hold left out with a warning (`AllowOverride Nonfatal=Override`)?
    fn forgives(&self) -> bool {
        false
    }
}
