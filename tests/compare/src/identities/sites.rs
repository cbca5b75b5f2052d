//! Sites of logins alone: little else decides a response, so that most requests show what a login
//! does.

use crate::choice::Choice;
use crate::fields::field;
use crate::generate::nodes;
use crate::random::Random;
use crate::requests;
use crate::rows::SECTION;
use crate::site::{Case, Content, File, Node, Request, Site};
use crate::{identities, tree};

/// The modules of these sites beside those of all sites.
pub const MODULES: [&str; 38] = [
    "alias",
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
    "dbd",
    "dir",
    "env",
    "expires",
    "headers",
    "include",
    "log_debug",
    "mime",
    "negotiation",
    "remoteip",
    "request",
    "rewrite",
    "session",
    "session_cookie",
    "session_crypto",
    "session_dbd",
    "setenvif",
    "socache_dbm",
    "socache_shmcb",
    "status",
];

/// Sites that are served at once.
const SITES: u64 = 8;
/// Requests to each.
const REQUESTS: usize = 40;

/// All cases of one start of the servers. A seed and a number determine them.
pub fn batch(seed: u64, number: u64) -> Vec<Case> {
    let mut choice = Choice::new(Random::part(seed, number + (1 << 52)), &[]);
    let has_aliases = choice.random.percent(60);
    let global = if has_aliases { identities::global(&mut choice) } else { Vec::new() };
    let part = |site| Random::part(seed, (number << 8) + site + (1 << 53));
    (0..SITES).map(|site| case(part(site), global.clone(), has_aliases)).collect()
}

fn case(mut random: Random, global: Vec<Node>, has_aliases: bool) -> Case {
    let mut files = tree::tree(&mut random);
    // What other sites need.
    let is_other =
        |file: &File| matches!(file.content, Content::Link(_)) || file.path.starts_with("map.");
    files.retain(|file| !is_other(file));
    let mut choice = Choice::new(random, &files);
    choice.has_aliases = has_aliases;
    let choice = &mut choice;
    let login = identities::some(choice);
    let mut config = login.nodes;
    if choice.random.percent(30) {
        let document = choice.one(&["401 /a.txt", "401 \"log in\"", "401 /nope", "403 /a.txt"]);
        config.push(Node::directive("ErrorDocument", document));
    }
    let who = "always set X-Who \"expr=%{REMOTE_USER}|%{AUTH_TYPE}|%{HTTP:Authorization}\"";
    if choice.random.percent(30) && !config.iter().any(is_by_digest) {
        config.push(Node::directive("Header", who));
    }
    if choice.random.percent(30) {
        let inner = nodes(choice, SECTION, 0, 2);
        let inner = inner.into_iter().filter(|node| is_of_these(&node.name));
        config.push(Node::section("Location", "/d", inner.collect()));
    }
    let mut requests = Vec::with_capacity(REQUESTS);
    for _ in 0..REQUESTS {
        requests.push(request(choice, login.client, requests.last()));
    }
    Case { site: Site { global, config, files, is_tls: false }, requests }
}

/// Credentials by digest differ from one server to the other.
fn is_by_digest(node: &Node) -> bool {
    let children = node.children.iter().flatten();
    node.words == "Digest" || children.into_iter().any(is_by_digest)
}

fn is_of_these(name: &str) -> bool {
    let module = crate::rows::module(name);
    module == "core" || MODULES.contains(&module)
}

fn request(
    choice: &mut Choice,
    client: fn(&mut Choice, &mut Request),
    last: Option<&Request>,
) -> Request {
    let mut request = match last {
        Some(last) if choice.random.percent(25) => last.clone(),
        _ => {
            let mut request = Request {
                method: choice.word(&["GET", "GET", "GET", "GET", "HEAD", "POST", "OPTIONS"]),
                target: requests::target(choice),
                version: "HTTP/1.1".to_owned(),
                fields: vec![("Host".to_owned(), b"@HOST@".to_vec())],
                ..Request::default()
            };
            if request.method == "POST" {
                request.fields.push(("Content-Length".to_owned(), b"0".to_vec()));
            }
            if choice.random.percent(15) {
                field(choice, &mut request);
            }
            request
        }
    };
    if choice.random.percent(75) {
        client(choice, &mut request);
    }
    request
}
