//! What the reader has to ask the server that it reads for.

use std::path::Path;

use bstr::BStr;

use crate::diag::Diagnostic;
use crate::tree::Arg;

/// Answers about modules and directives, which `IfModule`, `IfDirective` and `LoadModule` need.
pub trait Host {
    /// Is the module active? The name is either form: `alias_module` or `mod_alias.c`.
    fn module_active(&self, name: &BStr) -> bool;

    /// Does an active module (or the core) have this directive or section (`<Directory`)? Case does
    /// not count. To be answered for what the reader executes as well: `<IfVersion`, `<Macro`,
    /// `Use` and `UndefMacro` are left alone when it is not known.
    fn directive_known(&self, name: &BStr) -> bool;

    /// `LoadModule name file`: makes the module active. `file` is absolute.
    ///
    /// # Errors
    /// What is to be reported when there is no such module here; the reader adds the way there.
    fn load_module(&mut self, name: &Arg, file: &Path) -> Result<(), Box<Diagnostic>>;

    /// `LoadFile file`. Shared objects are not loaded; the default accepts and does nothing.
    ///
    /// # Errors
    /// The message for the administrator.
    fn load_file(&mut self, file: &Path) -> Result<(), String> {
        let _ = file;
        Ok(())
    }

    /// May an `.htaccess` hold this condition or macro, by the classes that are allowed there?
    fn allowed(&self, name: &BStr) -> bool {
        let _ = name;
        true
    }
}
