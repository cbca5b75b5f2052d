//! What a page depends on, so that its response can be cached.
//!
//! Files that are examined or included are noted by their look-ups. A variable is noted when an
//! element reads it: most pages read none of those that differ with each request.

use server::variant_key::Inputs;

use super::page::Page;

/// What a variable of a page depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    /// The configuration, the path and the files: as what set it, for a variable of no known name.
    Path,
    /// The address that the client has asked for.
    Authority,
    /// The query.
    Query,
    /// Anything else of the request, or the time.
    Request,
}

/// The variables that depend on the query.
const OF_QUERY: [&[u8]; 3] = [b"QUERY_STRING", b"QUERY_STRING_UNESCAPED", b"DOCUMENT_ARGS"];

/// The variables that depend on the address that the client has asked for.
const OF_AUTHORITY: [&[u8]; 5] =
    [b"SERVER_NAME", b"SERVER_PORT", b"SERVER_ADDR", b"SERVER_SIGNATURE", b"REQUEST_SCHEME"];

/// Those that depend on more.
const OF_REQUEST: [&[u8]; 8] = [
    b"AUTH_TYPE",
    b"H2PUSH",
    b"HTTP2",
    b"HTTPS",
    b"PATH_TRANSLATED",
    b"SERVER_PROTOCOL",
    b"UNIQUE_ID",
    b"USER_NAME",
];

/// The beginnings of the names of those.
const OF_REQUEST_BEGINNINGS: [&[u8]; 8] =
    [b"CONTENT_", b"DATE_", b"H2_", b"HTTP_", b"REDIRECT_", b"REMOTE_", b"REQUEST_", b"SSL_"];

impl Source {
    fn of(name: &[u8]) -> Source {
        let is = |known: &&[u8]| known.eq_ignore_ascii_case(name);
        let begins = |beginning: &&[u8]| {
            name.get(..beginning.len()).is_some_and(|start| start.eq_ignore_ascii_case(beginning))
        };
        if OF_QUERY.iter().any(is) {
            Source::Query
        } else if OF_AUTHORITY.iter().any(is) {
            Source::Authority
        } else if OF_REQUEST.iter().any(is) || OF_REQUEST_BEGINNINGS.iter().any(begins) {
            Source::Request
        } else {
            Source::Path
        }
    }
}

impl Page<'_> {
    /// Notes what the value of a variable depends on. One that a page has set depends on what was
    /// read for it.
    pub fn depends_on_variable(&mut self, name: &[u8]) {
        if !self.request.depends.pure || self.known.is_set(name) {
            return;
        }
        match Source::of(name) {
            Source::Path => {}
            Source::Authority => {
                self.request.looks_at(Inputs::AUTHORITY.with(Inputs::OWN_ADDRESS));
            }
            Source::Query => self.request.looks_at(Inputs::QUERY),
            Source::Request => self.depends_on_request(),
        }
    }

    /// Notes that the page depends on the request as a whole, or on the time.
    pub fn depends_on_request(&mut self) {
        self.request.depends.pure = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_sources() {
        let source = |name: &str| Source::of(name.as_bytes());
        assert_eq!(source("query_string"), Source::Query);
        assert_eq!(source("SERVER_NAME"), Source::Authority);
        for name in ["DATE_LOCAL", "http_x", "REMOTE_PORT", "REQUEST_URI", "USER_NAME"] {
            assert_eq!(source(name), Source::Request, "{name}");
        }
        for name in ["", "DATE", "DOCUMENT_NAME", "LAST_MODIFIED", "REQUEST", "mine"] {
            assert_eq!(source(name), Source::Path, "{name}");
        }
    }
}
