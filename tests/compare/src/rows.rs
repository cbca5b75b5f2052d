//! The directives of sites: a table with a row for each way to write one. Add rows here for new
//! modules.

pub mod access;
mod core;
pub mod loggers;
pub mod mappers;
pub mod metadata;
pub mod rewriting;
mod tls;

use crate::choice::Choice;
use crate::identities;

/// The phase that a directive affects, for the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// URL to file.
    Name,
    /// Sections, overrides and links: the configuration in force.
    Walk,
    /// By address, host or environment.
    Access,
    /// Authentication and authorisation.
    Login,
    /// Media type, language, coding.
    Type,
    /// Environment and request fields.
    Fixup,
    /// Listings, index files, negotiation.
    Handler,
    /// Response fields, bodies, codings.
    Filter,
    /// Parsing of requests.
    Protocol,
    /// The server's own pages.
    Error,
    /// What is written to logs: never a part of responses.
    Log,
}

/// In the main server.
pub const GLOBAL: u8 = 1;
/// In a virtual host.
pub const HOST: u8 = 2;
/// In a section.
pub const SECTION: u8 = 4;
/// In an `.htaccess` file.
pub const HTACCESS: u8 = 8;
/// In a `<Location>` alone.
pub const LOCATION: u8 = 16;
/// Everywhere.
pub const ALL: u8 = GLOBAL | HOST | SECTION | HTACCESS;
/// Everywhere except in sections.
pub const SERVER: u8 = GLOBAL | HOST;
/// In sections and `.htaccess` files.
pub const DIRECTORY: u8 = SECTION | HTACCESS;

/// A way to write a directive.
pub struct Row {
    /// Its module; `core` for built-in directives.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// The phase that it affects.
    pub phase: Phase,
    /// The contexts in which it is allowed.
    pub places: u8,
    /// How often it is chosen.
    pub weight: usize,
    /// Generates the text after the name.
    pub words: fn(&mut Choice) -> String,
}

/// A row of the table.
const fn row(
    module: &'static str,
    name: &'static str,
    phase: Phase,
    places: u8,
    weight: usize,
    words: fn(&mut Choice) -> String,
) -> Row {
    Row { module, name, phase, places, weight, words }
}

/// Modules that are loaded only where a site has a directive of theirs: loaded, they make both
/// servers check access again for each URI of a request. Half of the rounds have none.
pub const BY_URI: [(&str, &str); 2] =
    [("allowmethods", "AllowMethods"), ("log_debug", "LogMessage")];

/// The modules of all sites.
pub const MODULES: [&str; 61] = [
    "access_compat",
    "actions",
    "alias",
    "allowmethods",
    "asis",
    "auth_basic",
    "auth_digest",
    "auth_form",
    "authn_anon",
    "authn_core",
    "authn_dbd",
    "authn_dbm",
    "authn_file",
    "authn_socache",
    "authz_core",
    "authz_dbd",
    "authz_dbm",
    "authz_groupfile",
    "authz_host",
    "authz_owner",
    "authz_user",
    "autoindex",
    "brotli",
    "buffer",
    "cern_meta",
    "charset_lite",
    "data",
    "dbd",
    "deflate",
    "dir",
    "env",
    "expires",
    "filter",
    "headers",
    "imagemap",
    "log_debug",
    "log_forensic",
    "macro",
    "mime",
    "mime_magic",
    "negotiation",
    "ratelimit",
    "reflector",
    "remoteip",
    "request",
    "rewrite",
    "sed",
    "session",
    "session_cookie",
    "session_crypto",
    "session_dbd",
    "setenvif",
    "socache_dbm",
    "socache_shmcb",
    "speling",
    "status",
    "substitute",
    "unique_id",
    "userdir",
    "usertrack",
    "vhost_alias",
];

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Row> + Clone {
    let rows = core::ROWS.iter().chain(access::ROWS).chain(mappers::ROWS);
    rows.chain(metadata::ROWS).chain(rewriting::ROWS).chain(tls::ROWS).chain(loggers::ROWS)
}

/// The phase of a directive or a section.
pub fn phase(name: &str) -> Phase {
    let found = rows().find(|row| row.name.eq_ignore_ascii_case(name));
    found.map(|row| row.phase).or_else(|| identities::phase(name)).unwrap_or(Phase::Walk)
}

/// The module of a directive.
pub fn module(name: &str) -> &'static str {
    let found = rows().find(|row| row.name.eq_ignore_ascii_case(name));
    found.map_or("core", |row| row.module)
}

#[cfg(test)]
mod tests {
    use super::{MODULES, rows};

    #[test]
    fn every_row_makes_one_line() {
        let mut choice = crate::choice::Choice::new(crate::random::Random::new(5), &[]);
        for row in rows() {
            for _ in 0..50 {
                let words = (row.words)(&mut choice);
                assert!(!words.contains('\n'), "{} {words}", row.name);
                assert!(
                    words.replace("\\\"", "").matches('"').count().is_multiple_of(2),
                    "{} {words}",
                    row.name
                );
            }
            assert!(row.places != 0 && row.weight > 0, "{}", row.name);
            let is_known = ["core", "ssl"].contains(&row.module) || MODULES.contains(&row.module);
            assert!(is_known, "{}", row.module);
        }
        assert!(MODULES.is_sorted());
    }
}
