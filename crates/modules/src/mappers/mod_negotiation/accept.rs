//! The client's accept fields.

use server::request::Request;
use wire::Table;
use wire::accept::{self, Entry};

/// The accept fields; `None` for one that was not sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Accepts {
    /// `Accept`
    pub types: Vec<Entry>,
    /// `Accept-Encoding`
    pub encodings: Option<Vec<Entry>>,
    /// `Accept-Charset`
    pub charsets: Option<Vec<Entry>>,
    /// `Accept-Language`
    pub languages: Option<Vec<Entry>>,
    /// Whether `Accept` contains a quality below 1, so that wildcards are taken literally.
    pub has_quality: bool,
}

/// The type of CGI programs (`CGI_MAGIC_TYPE`).
pub(super) const PROGRAM_TYPE: &[u8] = b"application/x-httpd-cgi";

impl Accepts {
    /// Parses the fields (`parse_accept_headers`).
    pub fn read(headers: &Table) -> (Accepts, bool) {
        let list = |name: &[u8]| headers.get(name).map(accept::parse);
        let types = list(b"Accept");
        let given = types.is_some();
        let has_quality = types.iter().flatten().any(|entry| entry.quality_milli < 1000);
        let accepts = Accepts {
            types: types.unwrap_or_default(),
            encodings: list(b"Accept-Encoding"),
            charsets: list(b"Accept-Charset"),
            languages: list(b"Accept-Language"),
            has_quality,
        };
        (accepts, given)
    }

    /// Adds defaults for a missing `Accept`, and the preference for CGI programs
    /// (`maybe_add_default_accepts`).
    pub fn add_defaults(&mut self, given: bool, terms: &Terms, prefer_programs: bool) {
        let entry = |name: &[u8], quality_milli| Entry {
            name: name.to_vec(),
            quality_milli,
            level: 0,
            charset: Vec::new(),
        };
        if !given {
            self.types.push(entry(b"*/*", 1000));
        }
        let wanted = match (terms.remote, prefer_programs) {
            (true, _) => 0,
            (false, true) => 2000,
            (false, false) => 1,
        };
        self.types.push(entry(PROGRAM_TYPE, wanted));
    }
}

/// The terms of the choice (RFC 2295).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    /// Whether the resource is negotiated transparently.
    pub transparent: bool,
    /// Whether the client supports transparent negotiation.
    pub understood: bool,
    /// Whether `Alternates` is sent.
    pub alternates: bool,
    /// Whether the server may choose for the client.
    pub may_choose: bool,
    /// Whether the remote variant selection algorithm applies (RFC 2296).
    pub remote: bool,
    /// Whether the client's fields are taken literally.
    pub literal: bool,
}

impl Terms {
    /// The terms for a resource without transparent negotiation, or a client that does not ask for
    /// it.
    pub fn plain(transparent: bool) -> Terms {
        Terms {
            transparent,
            understood: false,
            alternates: false,
            may_choose: true,
            remote: false,
            literal: false,
        }
    }

    /// Parses `Negotiate` (`parse_negotiate_header`).
    pub fn read(request: &Request) -> Terms {
        let mut terms = Terms::plain(true);
        let Some(field) = request.head.headers_in.get(b"Negotiate") else { return terms };
        // Lynx sends "trans" without supporting it.
        let agent = request.head.headers_in.get(b"User-Agent").unwrap_or_default();
        if field == b"trans" && agent.starts_with(b"Lynx") {
            return terms;
        }
        terms.may_choose = false;
        for word in wire::list::items(field) {
            let known = matches!(word, b"trans" | b"vlist" | b"guess-small" | b"*");
            if !known && !word.first().is_some_and(u8::is_ascii_digit) {
                continue;
            }
            terms.understood = true;
            terms.alternates = true;
            if word == b"1.0" {
                terms.remote = true;
            }
            if word == b"1.0" || word.first() == Some(&b'*') {
                terms.may_choose = true;
                terms.literal = true;
            }
        }
        terms
    }
}
