//! Values that are new with each request: identifiers of requests and of clients, times, and the
//! framing of what programs write. They are masked on both sides, as `mask` lines do in test files.

use crate::site::{Case, Node};
use crate::skipped::htaccess;

/// An identifier, which is no part of a longer word such as a nonce.
const UNIQUE_ID: &str = "(^|[^A-Za-z0-9@_-])[A-Za-z0-9@_-]{27}($|[^A-Za-z0-9@_-])";

/// A directive or a word of a site that brings such values, their pattern, and what replaces it.
const MASKS: [(&[&str], &str, &str); 17] = [
    // Whether the end of a program's output is there in time decides.
    (
        &["ScriptAlias", "fcgi:", "scgi:", "uwsgi:"],
        r"^< (Content-Length: \d+|Transfer-Encoding: chunked)$",
        "< Content-Length: *",
    ),
    (&["ProxyVia"], r"\((Apache|Tamarack)/[^)]*\)", "(VERSION)"),
    // Encrypted sessions. Parts of them look like identifiers.
    (&["SessionCryptoPassphrase"], r"(Set-Cookie2?: \w+=)[A-Za-z0-9+/=%]{40,}", "${1}ENCRYPTED"),
    // As TRACE repeats them.
    (&["SessionCryptoPassphrase"], r"^\| (Cookie: \w+\W)[^;\\]{40,}", "| ${1}ENCRYPTED"),
    // mod_unique_id, also for mod_log_forensic.
    (&["ForensicLog"], r"^\| ([+-])[A-Za-z0-9@_-]{27}", "| ${1}UNIQUE-ID"),
    // Twice, since the character between two of them belongs to one match.
    (&["UNIQUE_ID", "forensic-id"], UNIQUE_ID, "${1}UNIQUE-ID${2}"),
    (&["UNIQUE_ID", "forensic-id"], UNIQUE_ID, "${1}UNIQUE-ID${2}"),
    // mod_usertrack: the cookie, and the end of its life.
    (&["CookieTracking", "{cookie}"], r"[0-9a-f]{1,8}\.[0-9a-f]{10,16}", "COOKIE"),
    (&["CookieExpires"], r"expires=\w{3}, \d\d-\w{3}-\d\d \d\d:\d\d:\d\d GMT", "expires=DATE"),
    // A cookie of mod_rewrite whose value is an address lives as many minutes as the port is high.
    (&["CO=", "cookie="], "(; domain=//[^;]*; expires=)[^;]* GMT", "${1}DATE"),
    // Keys of sessions, and times in them; how long cookies live.
    (
        &["SessionDBDCookieName", "SessionDBDCookieName2"],
        r"=[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        "=UUID",
    ),
    // TRACE repeats a cookie, of which a bit may be changed.
    (
        &["SessionDBDCookieName", "SessionDBDCookieName2"],
        r"^\| (Cookie: \w+)\W[0-9a-z`-]{8}[^;]{28}\b",
        "| ${1}=UUID",
    ),
    // A bit of the name may be changed, too: the session keeps what it does not know.
    (&["SessionMaxAge"], r"(\b[a-z]{6}.)\d{16}", "${1}TIME"),
    (&["SessionMaxAge"], r"([mM]ax-[aA]ge=)\d+", "${1}SECONDS"),
    // The login by digest of a request, in its response.
    (&["echo"], "^< Authorization: Digest .*$", "< Authorization: DIGEST"),
    // A response's media type in a log.
    (&["CONTENT_TYPE", "resp:Content-Type"], "boundary=[0-9a-f]{1,16}", "boundary=BOUNDARY"),
    // Of an error log, only the messages of mod_log_debug are compared.
    (&["ErrorLog"], r"^\| \[TIME\] \[(?:[^l]|l[^o]|lo[^g]|log[^_]|log_[^d]).*$", "<deleted>"),
];

/// The masks of sites that are served together: the first one responds to requests without a host.
pub fn masks<'a>(cases: impl Iterator<Item = &'a Case>) -> Vec<(String, String)> {
    let mut has = [false; MASKS.len()];
    for case in cases {
        let mut see = |node: &Node| {
            for ((words, _, _), has) in MASKS.iter().zip(&mut has) {
                *has |= words.iter().any(|word| node.name == *word || node.words.contains(word));
            }
        };
        case.site.walk(&mut see);
        // Some are written while the site is served.
        htaccess(case).for_each(|nodes| Node::walk(nodes, &mut see));
    }
    let masks = MASKS.iter().zip(has).filter(|(_, has)| *has);
    masks.map(|((_, pattern, with), _)| ((*pattern).to_owned(), (*with).to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::masks;
    use crate::site::{Case, Edit, Node, Request, Site};

    #[test]
    fn a_site_has_the_masks_of_its_directives() {
        let of = |nodes: Vec<Node>| {
            let site = Site { config: nodes, ..Site::default() };
            masks(std::iter::once(&Case { site, ..Case::default() }))
        };
        assert!(of(vec![Node::directive("Options", "All")]).is_empty());
        let inner = vec![Node::directive("Header", "set X-Id \"%{UNIQUE_ID}e\"")];
        assert_eq!(of(vec![Node::section("Location", "/", inner)])[0].1, "${1}UNIQUE-ID${2}");
        assert_eq!(of(vec![Node::directive("CookieTracking", "On")])[0].1, "COOKIE");
        let nodes = vec![Node::directive("CookieTracking", "On")];
        let change = Some(Edit::Htaccess("htdocs/.htaccess".to_owned(), nodes));
        let requests = vec![Request { change, ..Request::default() }];
        let case = Case { requests, ..Case::default() };
        assert_eq!(masks(std::iter::once(&case))[0].1, "COOKIE");
    }

    #[test]
    fn a_repeated_cookie_of_a_session_is_masked_with_a_bit_changed() {
        let of = |name: &str, line: &str| {
            let site = Site { config: vec![Node::directive(name, "x")], ..Site::default() };
            let case = Case { site, ..Case::default() };
            let masks = masks(std::iter::once(&case));
            masks.iter().fold(line.to_owned(), |line, (pattern, with)| {
                regex::Regex::new(pattern).unwrap().replace_all(&line, with.as_str()).into_owned()
            })
        };
        for key in
            ["=39d71060-45c2-43d3-9c9f-53796ad71242", "<39d71060-45c2-43d3-9c9f-53796ad71242"]
        {
            let line = format!("| Cookie: session{key}\\r");
            assert_eq!(of("SessionDBDCookieName", &line), "| Cookie: session=UUID\\r");
        }
        let line = "< Set-Cookie: session=expisy=1795982134898387&expiry=1795982134898388;Path=/";
        let masked = "< Set-Cookie: session=expisy=TIME&expiry=TIME;Path=/";
        assert_eq!(of("SessionMaxAge", line), masked);
    }
}
