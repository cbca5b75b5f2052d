//! The server's version: the `Server` field, and the last line of its pages.

use crate::config::build::Build;
use crate::config::core::Tokens;

/// The product's name in the `Server` field.
pub const PRODUCT: &str = "Tamarack";

/// The product's version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of Apache whose behaviour Tamarack follows.
pub const FOLLOWS: &str = "Apache/2.4.71";

/// The `Server` field.
pub(crate) fn banner(tokens: Tokens) -> String {
    let version = shown(VERSION, tokens);
    match tokens {
        // Modules add nothing to the field, so Full equals OS.
        Tokens::Os | Tokens::Full => format!("{PRODUCT}{version} (Unix)"),
        _ => format!("{PRODUCT}{version}"),
    }
}

/// `SERVER_SOFTWARE` as programs get it: many of them use `.htaccess` files and mod_rewrite only if
/// the name of Apache is in it.
pub(crate) fn software(tokens: Tokens) -> String {
    let (name, version) = FOLLOWS.split_once('/').unwrap_or((FOLLOWS, ""));
    format!("{} ({name}{})", banner(tokens), shown(version, tokens))
}

/// `ServerTokens`
pub(crate) fn tokens(build: &Build) -> Tokens {
    let core = build.core_config(&build.main.server);
    core.map(|core| core.globals.0.server_tokens.or(Tokens::default())).unwrap_or_default()
}

/// A slash, and as much of a version as `ServerTokens` shows.
fn shown(version: &str, tokens: Tokens) -> String {
    let parts = match tokens {
        Tokens::Product => return String::new(),
        Tokens::Major => 1,
        Tokens::Minor => 2,
        Tokens::Minimal | Tokens::Os | Tokens::Full => 3,
    };
    let version: Vec<&str> = version.split('.').take(parts).collect();
    format!("/{}", version.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_by_tokens() {
        let (own, minor) = (VERSION, VERSION.rsplit_once('.').unwrap().0);
        let major = minor.split_once('.').unwrap().0;
        for (tokens, field, software) in [
            (Tokens::Product, "Tamarack".to_owned(), "Apache"),
            (Tokens::Major, format!("Tamarack/{major}"), "Apache/2"),
            (Tokens::Minor, format!("Tamarack/{minor}"), "Apache/2.4"),
            (Tokens::Minimal, format!("Tamarack/{own}"), "Apache/2.4.71"),
            (Tokens::Os, format!("Tamarack/{own} (Unix)"), "Apache/2.4.71"),
            (Tokens::Full, format!("Tamarack/{own} (Unix)"), "Apache/2.4.71"),
        ] {
            assert_eq!(banner(tokens), field);
            assert_eq!(super::software(tokens), format!("{field} ({software})"));
        }
    }
}
