//! The core: what Apache's `core.c` and `http_core.c` know, as a module like any other.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/core.html>

mod dir_config;
mod server_config;

pub use dir_config::{AllowOverride, CoreDir, OptionFlags, Options};
pub use server_config::{CoreServer, EncodedSlashes, ServerName};

use crate::directive::Row;
use crate::module::Module;

/// `core.c`: always there.
pub struct Core;

impl Module for Core {
    const NAME: &'static str = "core_module";
    const FILE: &'static str = "core.c";
    type Server = CoreServer;
    type Dir = CoreDir;
    const DIRECTIVES: &'static [Row<Core>] = &[];
}
