//! `ServerRoot`: what relative file names are relative to.

use std::path::PathBuf;

use super::build::Build;
use crate::files::path::as_path;

impl Build {
    /// A file name, relative to ServerRoot unless absolute (`ap_server_root_relative`).
    pub fn path(&self, name: &[u8]) -> PathBuf {
        self.server_root.join(as_path(name))
    }
}
