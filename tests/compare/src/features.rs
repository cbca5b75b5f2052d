//! What sites with a module's feature have: directives that do something together, and paths that
//! show it.

use crate::choice::Choice;
use crate::contents;
use crate::rows::{loggers, mappers, metadata};
use crate::site::Node;

/// The directives of a feature.
type Feature = fn(&mut Choice) -> Vec<Node>;

const FEATURES: [Feature; 17] = [
    expiry,
    spelling,
    users,
    hosts,
    actions,
    messages,
    maps,
    metas,
    tracking,
    methods,
    logged,
    forensic,
    contents::filters,
    contents::charsets,
    contents::reflection,
    contents::logins,
    contents::sessions,
];

/// How many sites of a hundred have each feature.
const EACH_PERCENT: usize = 9;

/// Directives of some features.
pub fn some(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = Vec::new();
    for feature in FEATURES {
        if choice.random.percent(EACH_PERCENT) {
            nodes.extend(feature(choice));
        }
    }
    nodes
}

fn expiry(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![
        Node::directive("ExpiresActive", "On"),
        Node::directive("ExpiresDefault", metadata::lifetime(choice)),
    ];
    if choice.random.percent(50) {
        let words = format!("text/html {}", metadata::lifetime(choice));
        nodes.push(Node::directive("ExpiresByType", words));
    }
    somewhere(choice, nodes)
}

fn spelling(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("CheckSpelling", "On")];
    if choice.random.percent(30) {
        nodes.push(Node::directive("CheckCaseOnly", "On"));
    }
    if choice.random.percent(30) {
        nodes.push(Node::directive("CheckBasenameMatch", "Off"));
    }
    let files: Vec<String> = choice.paths.clone();
    for _ in 0..files.len() {
        let path = choice.random.pick(&files);
        let wrong = misspelt(choice, &path);
        choice.paths.push(wrong);
    }
    somewhere(choice, nodes)
}

/// A path with a mistake that mod_speling corrects, or nearly.
pub fn misspelt(choice: &mut Choice, path: &str) -> String {
    let mut letters: Vec<char> = path.chars().collect();
    let at = 1 + choice.random.below(letters.len().saturating_sub(1).max(1));
    if at >= letters.len() {
        return path.to_owned();
    }
    match choice.random.below(7) {
        0 => return path.to_uppercase(),
        1 => return path.to_lowercase(),
        2 => return path.rsplit_once('.').map_or(path, |(stem, _)| stem).to_owned() + ".nope",
        3 => letters.insert(at, 'q'),
        4 => drop(letters.remove(at)),
        5 if at + 1 < letters.len() => letters.swap(at, at + 1),
        _ => letters.splice(at..=at, ['q']).for_each(drop),
    }
    letters.into_iter().collect()
}

fn users(choice: &mut Choice) -> Vec<Node> {
    for path in ["/~anna/a.txt", "/~anna/", "/~anna", "/~bob/index.html", "/~root/", "/~nope/x"] {
        choice.paths.extend([path.to_owned(), path.to_owned()]);
    }
    choice.paths.extend(["/~", "/~/a.txt", "/~../a.txt", "/~anna/d/a.txt"].map(str::to_owned));
    let count = 1 + choice.random.below(2);
    (0..count).map(|_| Node::directive("UserDir", mappers::users(choice))).collect()
}

fn hosts(choice: &mut Choice) -> Vec<Node> {
    choice.paths.extend(["/index.html", "/a.txt", "/d/a.txt", "/cgi-bin/a.txt"].map(str::to_owned));
    vec![Node::directive("VirtualDocumentRoot", mappers::host_folder(choice))]
}

fn actions(choice: &mut Choice) -> Vec<Node> {
    let nodes = match choice.random.below(4) {
        0 => {
            let method = choice.one(&["GET", "POST", "PUT"]);
            vec![Node::directive("Script", format!("{method} /d"))]
        }
        1 => vec![
            Node::directive("AddHandler", format!("x-act {}", choice.one(&["txt", "html", "en"]))),
            Node::directive("Action", format!("x-act {}", choice.one(&["/d", "/d virtual"]))),
        ],
        _ => vec![
            Node::directive("Action", mappers::action(choice)),
            Node::directive("AcceptPathInfo", "On"),
        ],
    };
    somewhere(choice, nodes)
}

fn messages(choice: &mut Choice) -> Vec<Node> {
    let paths = choice.paths.clone();
    choice.paths.extend(paths.into_iter().filter(|path| path.ends_with("asis")).cycle().take(8));
    let nodes = vec![Node::directive("AddHandler", "send-as-is asis")];
    somewhere(choice, nodes)
}

fn maps(choice: &mut Choice) -> Vec<Node> {
    let maps = choice.paths.iter().filter(|path| path.ends_with(".map")).cloned();
    let maps: Vec<String> = maps.cycle().take(16).collect();
    choice.paths.extend(maps);
    let mut nodes = vec![Node::directive("AddHandler", "imap-file map")];
    for name in ["ImapBase", "ImapDefault", "ImapMenu"] {
        if choice.random.percent(30) {
            nodes.extend(of_rows(choice, name));
        }
    }
    somewhere(choice, nodes)
}

fn metas(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("MetaFiles", "On")];
    if choice.random.percent(40) {
        nodes.push(Node::directive("MetaDir", choice.one(&[".", ".web", "."])));
    }
    if choice.random.percent(40) {
        nodes.push(Node::directive("MetaSuffix", choice.one(&[".m", ".meta"])));
    }
    somewhere(choice, nodes)
}

fn tracking(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("CookieTracking", "On")];
    let more = [
        "CookieName",
        "CookieDomain",
        "CookieExpires",
        "CookieHTTPOnly",
        "CookieSecure",
        "CookieSameSite",
        "CookieStyle",
    ];
    for name in more {
        if choice.random.percent(30) {
            nodes.extend(of_rows(choice, name));
        }
    }
    somewhere(choice, nodes)
}

/// How long cookies live, in an `.htaccess`.
pub fn lifetime_of_cookies(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![Node::directive("CookieTracking", "On")];
    nodes.extend(of_rows(choice, "CookieExpires"));
    nodes
}

/// Methods, and bodies that are kept: both are only allowed in sections.
fn methods(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = Vec::new();
    for name in ["AllowMethods", "KeptBodySize"] {
        if choice.random.percent(70) {
            nodes.extend(of_rows(choice, name));
        }
    }
    let folder = choice.folder();
    vec![Node::section("Directory", folder, nodes)]
}

/// Messages in an error log of the site, at the level that writes them.
fn logged(choice: &mut Choice) -> Vec<Node> {
    let mut nodes: Vec<Node> = (0..1 + choice.random.below(3))
        .map(|_| Node::directive("LogMessage", loggers::message(choice)))
        .collect();
    nodes = somewhere(choice, nodes);
    nodes.push(Node::directive("ErrorLog", "logs/@HOST@.err"));
    nodes.push(Node::directive("LogLevel", choice.one(&["log_debug:info", "log_debug:debug"])));
    nodes
}

/// A forensic log, and identifiers in responses.
fn forensic(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = Vec::new();
    if choice.random.percent(70) {
        nodes.push(Node::directive("ForensicLog", "logs/@HOST@.forensic"));
    }
    if choice.random.percent(70) {
        let id = choice.one(&["%{UNIQUE_ID}e", "expr=%{reqenv:UNIQUE_ID}"]);
        nodes.push(Node::directive("Header", format!("always set X-Id \"{id}\"")));
    }
    nodes
}

/// A directive with the arguments of one of its rows.
pub fn of_rows(choice: &mut Choice, name: &str) -> Option<Node> {
    let row = crate::rows::rows().find(|row| row.name == name)?;
    Some(Node::directive(row.name, (row.words)(choice)))
}

/// The directives in the host or in one of its sections.
fn somewhere(choice: &mut Choice, nodes: Vec<Node>) -> Vec<Node> {
    match choice.random.below(6) {
        0 | 1 => vec![Node::section("Directory", "\"@SITE@/htdocs\"", nodes)],
        2 => vec![Node::section("Location", choice.one(&["/", "/d", "/docs/"]), nodes)],
        _ => nodes,
    }
}
