//! The server's version: the `Server` field, and the last line of its pages.

use crate::config::build::Build;
use crate::config::core::Tokens;

/// The product's name in the `Server` field.
pub const PRODUCT: &str = "Tamarack";

/// The product's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Apache whose behaviour Tamarack follows.
pub const FOLLOWS: &str = "Apache/2.4.71";

/// The `Server` field according to `ServerTokens`.
pub(crate) fn banner(build: &Build) -> String {
    let core = build.core_config(&build.main.server);
    let tokens = core.map(|core| core.globals.0.server_tokens.or(Tokens::default()));
    let mut parts = VERSION.split('.');
    let (major, minor) = (parts.next().unwrap_or("0"), parts.next().unwrap_or("0"));
    match tokens.unwrap_or_default() {
        Tokens::Product => PRODUCT.to_owned(),
        Tokens::Major => format!("{PRODUCT}/{major}"),
        Tokens::Minor => format!("{PRODUCT}/{major}.{minor}"),
        Tokens::Minimal => format!("{PRODUCT}/{VERSION}"),
        // Modules add nothing to the field, so Full equals OS.
        Tokens::Os | Tokens::Full => format!("{PRODUCT}/{VERSION} (Unix)"),
    }
}
