//! Generates random sites with requests.

use crate::choice::{Choice, quoted};
use crate::random::Random;
use crate::requests;
use crate::rows::{self, BY_URI, GLOBAL, HOST, HTACCESS, LOCATION, Row, SECTION, access};
use crate::site::{Case, Content, File, Node, Request, Site};
use crate::{costly, features, identities, tree, usual};

/// Sites that are served at once.
pub const SITES: u64 = 10;
/// Requests to each.
const REQUESTS: usize = 50;
/// The interval of long requests, if a rule has a costly pattern.
const LONG_EVERY: usize = 5;
/// How many of a hundred rounds have requests that wait: each takes as long as some rounds.
const LATER_PERCENT: usize = 25;
/// Deepest nesting of sections.
const DEPTH_MAX: usize = 3;

/// All cases of one start of the servers. A seed and a number determine them.
pub fn batch(seed: u64, number: u64) -> Vec<Case> {
    let mut choice = Choice::new(Random::part(seed, number), &[]);
    let mut global = Vec::new();
    if choice.random.percent(60) {
        for _ in 0..1 + choice.random.below(3) {
            global.extend(directive(&mut choice, GLOBAL));
        }
    }
    if choice.random.percent(15) {
        global.push(section(&mut choice, GLOBAL, 1));
    }
    if choice.random.percent(15) {
        global.extend(identities::global(&mut choice));
    }
    let part = |site| Random::part(seed, (number << 8) + site + (1 << 40));
    let is_tls = choice.random.percent(40);
    let is_tls = |site: u64| is_tls && site % 2 == 1;
    let mut cases: Vec<Case> =
        (0..SITES).map(|site| case(part(site), global.clone(), is_tls(site))).collect();
    // The last site is asked when its files are no longer new, so that responses are cached.
    if let Some(last) = cases.last_mut()
        && choice.random.percent(LATER_PERCENT)
    {
        usual::future(&mut choice, &mut last.site, &mut last.requests);
    }
    if number.is_multiple_of(2) {
        cases.iter_mut().for_each(|case| case.strip(&BY_URI.map(|(_, directive)| directive)));
    }
    cases
}

fn case(mut random: Random, global: Vec<Node>, is_tls: bool) -> Case {
    let files = tree::tree(&mut random);
    let mut choice = Choice::new(random, &files);
    choice.is_tls = is_tls;
    choice.has_aliases = global.iter().any(|node| node.name == "AuthnProviderAlias");
    let mut site = Site { global, config: Vec::new(), files, is_tls };
    let choice = &mut choice;
    // What is no TLS on a port of TLS shows in the log of the port's first host alone.
    if choice.random.percent(if is_tls { 60 } else { 30 }) {
        site.config.push(usual::log(choice));
    }
    if choice.random.percent(85) {
        site.config.push(usual::documents(choice));
    }
    if site.files.iter().any(|file| matches!(file.content, Content::Link(_)))
        && choice.random.percent(40)
    {
        site.config.push(usual::links(choice));
    }
    if choice.random.percent(30) {
        site.config.extend(usual::languages(choice));
    }
    if is_tls {
        site.config.extend(tls(choice));
    }
    if choice.random.percent(10) {
        let kind = choice.one(&["text/x-own", "image/gif", "\"text/html;charset=utf-8\""]);
        site.config.push(Node::directive("Header", format!("set Content-Type {kind}")));
    }
    let login = if choice.random.percent(30) { usual::login(choice) } else { None };
    let has_login = login.is_some();
    site.config.extend(login);
    if choice.random.percent(30) {
        let mut file = None;
        site.config.extend(usual::rewriting(choice, &mut file));
        site.files.extend(file);
    }
    site.config.extend(features::some(choice));
    let identity = choice.random.percent(12).then(|| identities::some(choice));
    let client = identity.as_ref().map(|identity| identity.client);
    site.config.extend(identity.into_iter().flat_map(|identity| identity.nodes));
    let more = nodes(choice, HOST, DEPTH_MAX, 8);
    site.config.extend(more);
    if choice.random.percent(50) {
        for _ in 0..1 + choice.random.below(3) {
            let file = htaccess(choice);
            if site.files.iter().all(|other| other.path != file.path) {
                site.files.push(file);
            }
        }
    }
    let mut requests = requests::requests(choice, REQUESTS, has_login);
    if let Some(client) = client {
        for request in &mut requests {
            if choice.random.percent(50) {
                client(choice, request);
            }
        }
    }
    if choice.random.percent(20) {
        usual::changes(choice, &mut requests);
    }
    if choice.random.percent(10) {
        site.config.extend(joined(choice));
    }
    if choice.random.percent(15) {
        burden(choice, &mut site, &mut requests);
    }
    Case { site, requests }
}

/// Adds a rule whose pattern takes long, and what it is matched against.
fn burden(choice: &mut Choice, site: &mut Site, requests: &mut [Request]) {
    let rule = costly::rule(choice);
    if choice.random.percent(50) {
        // Most sites refuse most requests for other reasons.
        site.config.truncate(1);
        site.files.retain(|file| !matches!(file.content, Content::Htaccess(_)));
    }
    let some = requests.iter_mut().step_by(LONG_EVERY);
    some.for_each(|request| costly::lengthen(choice, request, &rule));
    site.config.push(rule.node);
}

/// What a host of TLS asks of clients, and what it says to those who speak HTTP.
fn tls(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = Vec::new();
    if choice.random.percent(50) {
        let verify = choice.one(&["optional", "optional", "require", "none"]);
        nodes.push(Node::directive("SSLVerifyClient", verify));
        nodes.push(Node::directive("SSLCACertificateFile", "tls/ca.pem"));
    }
    if choice.random.percent(35) {
        nodes.extend(features::of_rows(choice, "SSLOpenSSLConfCmd"));
    }
    if choice.random.percent(75) {
        let what = match choice.random.below(2) {
            0 => quoted(&choice.random.pick(&choice.paths.clone())),
            _ => choice.word(&["\"sorry\"", "/a.txt", "/error.html", "http://other.test/x"]),
        };
        nodes.push(Node::directive("ErrorDocument", format!("400 {what}")));
    }
    nodes
}

fn htaccess(choice: &mut Choice) -> File {
    let folder = choice.random.pick(&choice.folders.clone());
    let mut nodes = nodes(choice, HTACCESS, 2, 3);
    if choice.random.percent(4) {
        nodes.extend(features::lifetime_of_cookies(choice));
    }
    tree::made(format!("htdocs{folder}.htaccess"), Content::Htaccess(nodes))
}

/// Some directives and sections for a context.
pub fn nodes(choice: &mut Choice, place: u8, depth: usize, most: usize) -> Vec<Node> {
    let mut out: Vec<Node> = Vec::new();
    for _ in 0..1 + choice.random.below(most) {
        if depth > 0 && choice.random.percent(35) {
            let node = section(choice, place, depth);
            let is_if = node.name == "If";
            out.push(node);
            if is_if && choice.random.percent(40) {
                let inner = nodes(choice, SECTION, 0, 2);
                let name = choice.one(&["ElseIf", "Else"]);
                let test = if name == "Else" { String::new() } else { quoted_expression(choice) };
                out.push(Node::section(name, test, inner));
            }
        } else {
            out.extend(directive(choice, place));
        }
    }
    out
}

/// A directive for a context, with a line that it requires.
fn directive(choice: &mut Choice, place: u8) -> Option<Node> {
    let is_tls = choice.is_tls;
    let fits = |row: &&Row| row.places & place != 0 && (is_tls || row.module != "ssl");
    let rows: Vec<&Row> = rows::rows().filter(fits).collect();
    let at = choice.random.weighted(rows.iter().map(|row| row.weight));
    let row = rows.get(at)?;
    Some(Node::directive(row.name, (row.words)(choice)))
}

fn quoted_expression(choice: &mut Choice) -> String {
    let depth = choice.random.below(3);
    format!("\"{}\"", choice.expression(depth))
}

/// A section for this context, with contents.
fn section(choice: &mut Choice, place: u8, depth: usize) -> Node {
    let kind = match place {
        _ if place & (GLOBAL | HOST) != 0 => choice.random.below(15),
        _ if place & LOCATION != 0 => 4 + choice.random.below(11),
        _ => 2 + choice.random.below(13),
    };
    let inner = if place == HTACCESS { HTACCESS } else { SECTION };
    let (name, words, inner) = match kind {
        0 | 1 => outer_section(choice),
        2 => ("FilesMatch", choice.pattern(), inner),
        3 if choice.random.percent(20) => ("Files", format!("~ {}", choice.pattern()), inner),
        3 => ("Files", of_all_files(choice), inner),
        4..=7 => ("If", quoted_expression(choice), place),
        8 if place & (GLOBAL | HOST) == 0 => {
            let name = choice.one(&["Limit", "Limit", "LimitExcept"]);
            let methods = choice.some(&["GET", "POST", "PUT", "OPTIONS", "DELETE"], 2);
            let only = directives(choice, inner, 2);
            return Node::section(name, methods, only);
        }
        9 | 10 if place & (GLOBAL | HOST) == 0 => return container(choice, 2, "RequireAny"),
        11 => {
            let module = choice.one(&["mod_alias.c", "!dir_module", "nope_module", "mime_module"]);
            ("IfModule", module.to_owned(), place)
        }
        _ if place & (GLOBAL | HOST) == 0 => ("If", quoted_expression(choice), place),
        _ => outer_section(choice),
    };
    // In the host's `<If>`, the words of a directory's section apply.
    let inner = if inner & (GLOBAL | HOST) != 0 && name == "If" { SECTION } else { inner };
    let mut children = nodes(choice, inner, depth - 1, 4);
    if inner & SECTION != 0 && choice.random.percent(15) {
        children.extend(merging(choice));
    }
    if choice.random.percent(if name == "If" { 60 } else { 30 }) {
        children.push(mark(choice));
    }
    Node::section(name, words, children)
}

/// A directive that makes most responses show that its section applies, and in which order.
fn mark(choice: &mut Choice) -> Node {
    let what = match choice.random.below(4) {
        0 => "set X-Where",
        1 => "always append X-Where",
        _ => "append X-Where",
    };
    Node::directive("Header", format!("{what} {}", choice.one(&["a", "b", "c", "d", "e"])))
}

/// Rules of a section that merge with others, or only the kind of merging.
fn merging(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("AuthMerging", choice.one(&["And", "Or", "Or", "Off"]))];
    if choice.random.percent(70) {
        nodes.push(Node::directive("Require", access::require(choice)));
    }
    nodes
}

/// Rules of a folder, and two sections of a later walk, the second of which sets the kind of
/// merging.
fn joined(choice: &mut Choice) -> Vec<Node> {
    let (name, words) = match choice.random.below(3) {
        0 => ("Files", "*"),
        1 => ("If", "true"),
        _ => ("Location", "/"),
    };
    let rule = |choice: &mut Choice| {
        let words = match choice.random.below(5) {
            0 => access::require(choice),
            _ => choice.word(&["all granted", "all denied", "method GET"]),
        };
        vec![Node::directive("Require", words)]
    };
    let mut last =
        vec![Node::directive("AuthMerging", choice.one(&["And", "And", "Or", "Or", "Off"]))];
    if choice.random.percent(40) {
        last.extend(rule(choice));
    }
    vec![
        Node::section("Directory", "\"@SITE@/htdocs\"", rule(choice)),
        Node::section(name, format!("\"{words}\""), rule(choice)),
        Node::section(name, format!("\"{words}\""), last),
    ]
}

/// The argument of a `<Files>`: often all files, and with them the folders that a request names.
pub fn of_all_files(choice: &mut Choice) -> String {
    if choice.random.percent(40) { choice.word(&["*", "\"*\"", "\"\""]) } else { choice.glob() }
}

/// A section that is allowed only in a server.
fn outer_section(choice: &mut Choice) -> (&'static str, String, u8) {
    match choice.random.below(10) {
        0..=2 => ("Directory", choice.folder(), SECTION),
        3 => {
            let folder = choice.one(&[
                "\"@SITE@/*\"",
                "\"@SITE@/htdocs/?\"",
                "\"/*/*/htdocs\"",
                "\"@SITE@/*/d*\"",
            ]);
            ("Directory", folder.to_owned(), SECTION)
        }
        4 => ("DirectoryMatch", directory_pattern(choice), SECTION),
        5..=7 => ("Location", location(choice), SECTION | LOCATION),
        8 => ("LocationMatch", choice.pattern(), SECTION | LOCATION),
        _ => ("Location", format!("~ {}", choice.pattern()), SECTION | LOCATION),
    }
}

/// Some directives without sections.
fn directives(choice: &mut Choice, place: u8, most: usize) -> Vec<Node> {
    let count = 1 + choice.random.below(most);
    (0..count).filter_map(|_| directive(choice, place)).collect()
}

fn directory_pattern(choice: &mut Choice) -> String {
    choice.word(&[
        "\"/htdocs\"",
        "\"^@SITE@/htdocs/(?<part>[a-z]+)\"",
        "/d$",
        "\"/(d|docs)/?$\"",
        "\"/\\\\.\"",
    ])
}

fn location(choice: &mut Choice) -> String {
    match choice.random.below(4) {
        0 => choice
            .word(&["/", "/*", "/d", "/d/", "\"/?\"", "/al", "/d/*", "//", "/%41", "\"/e f\""]),
        _ => format!("\"{}\"", choice.path().replace('\\', "\\\\")),
    }
}

/// `<RequireAll>` or similar with providers; only the first may be negative.
fn container(choice: &mut Choice, depth: usize, around: &str) -> Node {
    let name = match around {
        "RequireAll" => choice.one(&["RequireAny", "RequireNone"]),
        _ => choice.one(&["RequireAll", "RequireAll", "RequireAny"]),
    };
    let mut inner = Vec::new();
    for at in 0..1 + choice.random.below(3) {
        if depth > 0 && name != "RequireNone" && choice.random.percent(25) {
            inner.push(container(choice, depth - 1, name));
        } else {
            let not = name == "RequireAll" && at > 0 && choice.random.percent(40);
            let words = access::require(choice);
            let words = if not { format!("not {words}") } else { words };
            inner.push(Node::directive("Require", words));
        }
    }
    Node::section(name, "", inner)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::batch;
    use crate::rows;
    use crate::site::{Case, Node, Request};

    #[test]
    fn a_seed_and_a_number_fix_a_batch() {
        assert_eq!(batch(3, 4), batch(3, 4));
        assert_ne!(batch(3, 4), batch(3, 5));
        assert_ne!(batch(3, 4), batch(4, 4));
    }

    #[test]
    fn http_to_a_port_of_tls_meets_an_error_document() {
        let meets = |case: &Case| {
            let is_plain = |request: &Request| !request.via.starts_with("tls");
            let is_for_400 =
                |node: &Node| node.name == "ErrorDocument" && node.words.starts_with("400 ");
            case.site.config.iter().any(is_for_400) && case.requests.iter().any(is_plain)
        };
        // The first host on the port answers what is not TLS.
        let first = |number| batch(1, number).into_iter().find(|case| case.site.is_tls);
        let count = (0..60).filter_map(first).filter(meets).count();
        assert!(count > 4, "{count} rounds of 60");
    }

    #[test]
    fn every_row_and_section_comes_up() {
        let mut seen = HashSet::new();
        for number in 0..600 {
            for case in batch(1, number) {
                case.site.walk(&mut |node| {
                    seen.insert(node.name.clone());
                });
            }
        }
        for row in rows::rows() {
            assert!(seen.contains(row.name), "{} is never chosen", row.name);
        }
        for name in ["Directory", "LocationMatch", "If", "ElseIf", "Limit", "RequireNone", "Files"]
        {
            assert!(seen.contains(name), "<{name}> is never chosen");
        }
    }
}
