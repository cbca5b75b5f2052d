//! The instruction counts of the request path. A benchmark fails above its limit: a change that
//! shortens the path stores the new number here; one that lengthens it gives the reason in its
//! commit.
//!
//! Counted with the profile of `optimised.toml`. With another compiler or processor the counts are
//! shown but not checked.

/// The compiler's version and the processor.
pub const COUNTED_WITH: &str = "1.95.0 x86_64";

/// Instructions for wrk's head, including host and path, as the first one of a connection.
pub const HEAD_WRK: u64 = 2_200;

/// The same after one that is the same.
pub const HEAD_WRK_AGAIN: u64 = 1_330;

/// Instructions for a browser's head of 14 fields, including host and path, as the first one of a
/// connection.
pub const HEAD_BROWSER: u64 = 8_200;

/// The same after one that is the same.
pub const HEAD_BROWSER_AGAIN: u64 = 2_220;

/// Instructions for a connection of [`FEW`] requests: the loop's start, the accept, two requests
/// that go through the phases, and the first one whose path is known.
pub const CONNECTION_FEW: u64 = 350_000;

/// Instructions for a connection of [`MANY`] requests for one file, all with the same head.
pub const CONNECTION_MANY: u64 = 8_170_000;

/// The same, when no two heads are alike, as in all below.
pub const CONNECTION_UNLIKE: u64 = 8_800_000;

/// The same with a query, another each time.
pub const CONNECTION_QUERY: u64 = 9_030_000;

/// Ranges of 100 bytes.
pub const CONNECTION_RANGE: u64 = 11_620_000;

/// 304 by If-None-Match.
pub const CONNECTION_NOT_MODIFIED: u64 = 9_390_000;

/// 404 for a fixed name.
pub const CONNECTION_MISSING: u64 = 8_690_000;

/// 301 for a folder without its slash.
pub const CONNECTION_FOLDER: u64 = 8_700_000;

/// A file, asked for with a browser's head.
pub const CONNECTION_BROWSER: u64 = 11_230_000;

/// A file, asked for with the fields of a combined log, which is written to a buffer. The modules
/// are optimised less here than in a release, where a line costs less.
pub const CONNECTION_LOGGED: u64 = 12_730_000;

/// The same without a log.
pub const CONNECTION_UNLOGGED: u64 = 9_150_000;

/// 404 for names that were not requested before.
pub const CONNECTION_UNKNOWN: u64 = 25_350_000;

/// A file beside an `.htaccess` with the rules of WordPress and 100 redirects.
pub const RULES_FILE: u64 = 9_550_000;

/// One of those redirects.
pub const RULES_REDIRECT: u64 = 9_500_000;

/// The page that the rules have for a name that does not exist.
pub const RULES_PAGE: u64 = 9_710_000;

/// The same for names that were not requested before.
pub const RULES_UNKNOWN: u64 = 65_700_000;

/// [`CONNECTION_UNKNOWN`] of a host with 1,000 redirects.
pub const HOST_UNKNOWN: u64 = 31_550_000;

/// A file of another server, over HTTP, by the head of a browser.
pub const PROXIED: u64 = 54_300_000;

/// The same from a FastCGI responder.
pub const RESPONDER: u64 = 74_100_000;

/// A file over HTTP/2, by the head of a browser, 16 requests at a time.
pub const STREAMS: u64 = 14_900_000;

/// The requests of a short connection.
pub const FEW: u32 = 3;

/// The requests of a long connection.
pub const MANY: u32 = 1003;

/// The limit for parsers, which have no noise: 3 % above.
pub const fn parser_limit(stored: u64) -> u64 {
    stored + stored * 3 / 100
}

/// The limit for the server, whose loop turns and clock readings vary a little: 5 % above.
pub const fn server_limit(stored: u64) -> u64 {
    stored + stored * 5 / 100
}
