//! Differences that other sites of the same servers allow: the first one of a port, and those that
//! change what all of them share.

use blackbox::compare::{Rule, difference};

use crate::folders::{OF_FOLDERS_AS_IS, differ_in_folders_as_is};
use crate::site::{Case, Node, Request, Site};
use crate::skipped::htaccess;
use crate::talk::NO_ANSWER;

/// The line that allows a difference because of the host that serves what names no host.
const OF_DEFAULT: &str = "Asking for a client certificate within a connection";

/// A request that can't be read belongs to the first host of the port, not to that of the
/// handshake. If the first host wants a certificate, Apache asks for one before it serves its error
/// document, and refuses clients that can't be asked again: some of them get no answer. The
/// document may also be a folder that is sent as it is.
pub fn rule_of_default(
    default: &Site,
    request: &Request,
    apache: &[String],
    tamarack: &[String],
) -> Option<&'static str> {
    let mut asks = false;
    let mut has_document = false;
    default.walk(&mut |node| {
        asks |= node.name == "SSLVerifyClient" && node.words != "none";
        has_document |= node.name == "ErrorDocument" && node.words.contains('/');
    });
    let is_unheard = apache.first().is_some_and(|line| line == NO_ANSWER) && has_document;
    let is_unread = |lines: &[String]| {
        let status = lines.first().and_then(|line| line.split(' ').nth(2));
        // A response of HTTP/0.9 is the page alone.
        status == Some("400") || lines.iter().any(|line| line.starts_with("| <title>400 "))
    };
    if !is_unread(tamarack) {
        return None;
    }
    let is_folder = differ_in_folders_as_is(default, request, apache, tamarack);
    let of_folder = is_folder.then_some(OF_FOLDERS_AS_IS);
    (asks && (is_unread(apache) || is_unheard)).then_some(OF_DEFAULT).or(of_folder)
}

/// The line that allows another life of cookies.
const OF_COOKIES: &str = "`CookieExpires` of an `.htaccess` for the whole host";

/// The line that allows a difference because of another site of the same servers: hosts without
/// directives of mod_usertrack share the settings that an `.htaccess` changes.
pub fn rule_of_neighbours<'a>(
    mut cases: impl Iterator<Item = &'a Case>,
    apache: &[String],
    tamarack: &[String],
) -> Option<&'static str> {
    let differs = differ_in_life_alone(apache, tamarack);
    (differs && cases.any(changes_cookies)).then_some(OF_COOKIES)
}

/// Whether an `.htaccess` of the site, from the beginning or later, has `CookieExpires`.
fn changes_cookies(case: &Case) -> bool {
    let mut changes = false;
    for nodes in htaccess(case) {
        Node::walk(nodes, &mut |node| changes |= node.name == "CookieExpires");
    }
    changes
}

/// Responses that differ in how long a cookie lives, and in nothing else.
fn differ_in_life_alone(apache: &[String], tamarack: &[String]) -> bool {
    let is_lifetime = |part: &&str| {
        let part = part.trim_start();
        part.starts_with("expires=") || part.starts_with("max-age=")
    };
    let without = |line: &String| match line.starts_with("< Set-Cookie") {
        true => line.split(';').filter(|part| !is_lifetime(part)).collect::<Vec<_>>().join(";"),
        false => line.clone(),
    };
    let plain = |lines: &[String]| lines.iter().map(without).collect::<Vec<_>>();
    difference(&plain(apache), &plain(tamarack), Rule::Answer).is_none()
}

/// All lines that are cited here.
#[cfg(test)]
pub const CITES: [&str; 3] = [OF_DEFAULT, OF_FOLDERS_AS_IS, OF_COOKIES];

#[cfg(test)]
mod tests {
    use super::{rule_of_default, rule_of_neighbours};
    use crate::site::{Case, Content, Edit, File, Node, Request, Site};

    #[test]
    fn the_first_host_may_want_a_certificate_for_its_error_document() {
        let asks = |words: &str| Site {
            config: vec![Node::directive("SSLVerifyClient", words)],
            ..Site::default()
        };
        let lines = |status: &str| [format!("< HTTP/1.1 {status}"), "<".to_owned()];
        let (bad, found) = (lines("400 Bad Request"), lines("200 OK"));
        let rule = |site: &Site, apache: &[String], tamarack: &[String]| {
            rule_of_default(site, &Request::default(), apache, tamarack)
        };
        assert!(rule(&asks("optional"), &bad, &bad).is_some());
        assert!(rule(&asks("none"), &bad, &bad).is_none());
        assert!(rule(&asks("optional"), &bad, &found).is_none());
        let handler = Node::directive("SetHandler", "send-as-is");
        let as_is = Site { config: vec![handler], ..Site::default() };
        let unheard = ["= no answer".to_owned()];
        let mut with_document = asks("optional");
        with_document.config.push(Node::directive("ErrorDocument", "400 /e.html"));
        assert!(rule(&with_document, &unheard, &bad).is_some());
        assert!(rule(&asks("optional"), &unheard, &bad).is_none());
        assert!(rule(&as_is, &unheard, &bad).is_some());
        assert!(rule(&as_is, &unheard, &found).is_none() && rule(&as_is, &found, &bad).is_none());
        assert!(rule(&asks("none"), &unheard, &bad).is_none());
        let page = ["| <!DOCTYPE html>", "| <title>400 Bad Request</title>"].map(str::to_owned);
        assert!(rule(&with_document, &unheard, &page).is_some());
        assert!(rule(&asks("optional"), &unheard, &page).is_none());
    }

    #[test]
    fn cookies_may_live_longer_if_a_file_of_any_site_says_so() {
        let nodes = |name: &str| vec![Node::directive(name, "3600")];
        let in_file = |name: &str| {
            let content = Content::Htaccess(nodes(name));
            let file = File { path: "htdocs/.htaccess".to_owned(), content, options: Vec::new() };
            Case { site: Site { files: vec![file], ..Site::default() }, ..Case::default() }
        };
        let change = Some(Edit::Htaccess("htdocs/.htaccess".to_owned(), nodes("CookieExpires")));
        let requests = vec![Request { change, ..Request::default() }];
        let in_change = Case { requests, ..Case::default() };
        let lines = |cookie: &str| [format!("< Set-Cookie: {cookie}"), "<".to_owned()];
        let is_allowed = |case: Case, cookie: &str| {
            let apache = lines("Apache=COOKIE; path=/; expires=DATE");
            let cases = [Case::default(), case];
            rule_of_neighbours(cases.iter(), &apache, &lines(cookie)).is_some()
        };
        assert!(is_allowed(in_file("CookieExpires"), "Apache=COOKIE; path=/"));
        assert!(is_allowed(in_change, "Apache=COOKIE; path=/"));
        assert!(!is_allowed(in_file("CookieExpires"), "Apache=COOKIE; path=/d"));
        assert!(!is_allowed(in_file("CookieName"), "Apache=COOKIE; path=/"));
    }
}
