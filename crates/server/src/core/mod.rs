//! The core: what Apache's `core.c` knows, as a module like any other; and `http_core.c`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/core.html>

pub mod dir_config;
pub mod etag;
mod http;
pub mod options;
pub(crate) mod rows;
mod sections;
pub mod server_config;

pub use dir_config::{AllowOverride, CoreDir};
pub use http::HttpCore;
pub use options::{OptionFlags, Options};
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
    const DIRECTIVES: &'static [Row<Core>] = rows::ALL;
}
