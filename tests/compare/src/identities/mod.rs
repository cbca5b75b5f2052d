//! Sites with logins: by digest, form and password, from files, databases and caches, and what
//! their clients send.

mod clients;
mod database;
mod forms;
mod sites;

use crate::choice::Choice;
use crate::rows::Phase;
use crate::site::{Content, File, Node, Request};
use crate::tree::made;

pub use sites::{MODULES, batch};

/// A login that a site asks for.
pub struct Login {
    /// The directives of the host.
    pub nodes: Vec<Node>,
    /// What a client adds to a request.
    pub client: fn(&mut Choice, &mut Request),
}

/// One of the kinds of login.
pub fn some(choice: &mut Choice) -> Login {
    match choice.random.below(10) {
        0..=3 => digest(choice),
        4..=6 => forms::form(choice),
        7 | 8 => basic(choice),
        _ => database::maps(choice),
    }
}

/// What logins of all sites have in common: the names of providers with settings of their own, and
/// the cache.
pub fn global(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = database::connection(choice);
    nodes.push(Node::section(
        "AuthnProviderAlias",
        "file own-file",
        vec![Node::directive("AuthUserFile", "\"@SITE@/auth/users\"")],
    ));
    let query = database::password_query(choice);
    nodes.push(Node::section("AuthnProviderAlias", "dbd own-dbd", vec![query]));
    let query = Node::directive("AuthDBDUserRealmQuery", database::REALM);
    nodes.push(Node::section("AuthnProviderAlias", "dbd own-realm", vec![query]));
    let words = choice.one(&[
        "group own-group staff",
        "dbd-group own-group staff",
        "user own-group \"alice bob\"",
    ]);
    let inner = match words.split('-').next() {
        Some("dbd") => Node::directive("AuthzDBDQuery", database::GROUPS),
        _ => Node::directive("AuthGroupFile", "\"@SITE@/auth/groups\""),
    };
    nodes.push(Node::section("AuthzProviderAlias", words, vec![inner]));
    let cache = choice.one(&["shmcb", "shmcb", "shmcb:own(70000)", "dbm:@SITE@/own/cache", ""]);
    if !cache.is_empty() {
        nodes.push(Node::directive("AuthnCacheSOCache", cache));
    }
    if choice.random.percent(50) {
        nodes.push(Node::directive("AuthnCacheEnable", ""));
    }
    // By default Apache has room for a dozen clients.
    nodes.push(Node::directive("AuthDigestShmemSize", choice.one(&["64K", "1M"])));
    nodes
}

/// Files of logins: users with digests, and a database of each server's own.
pub fn files() -> Vec<File> {
    const DIGESTS: &str = "alice:realm:e0b7734fc4f0fe5a23a413a650611f69\n\
        alice:a realm:278c2155510d5c7b748fca8f772ee2ad\n\
        alice:q\"q:2c09bf45846965bb54d3991c1747b9ef\n\
        bob:realm:ee83492200d232e831e8d27c189c4093\n";
    let mut files = vec![
        made("auth/digests".to_owned(), Content::Text(DIGESTS.to_owned())),
        made("own/".to_owned(), Content::Folder),
        made("own/data.db".to_owned(), Content::Bytes(database::content())),
    ];
    for (file, mode) in files.iter_mut().skip(1).zip(["0777", "0666"]) {
        file.options.push(("mode".to_owned(), mode.to_owned()));
    }
    files
}

/// The phase of a directive of these sites that has no row.
pub fn phase(name: &str) -> Option<Phase> {
    let begins = ["Auth", "Session", "DBD"].iter().any(|start| name.starts_with(start));
    begins.then_some(Phase::Login)
}

/// Who is asked for users.
struct Users {
    /// The argument of a directive that names providers.
    names: String,
    /// Directives of the section.
    nodes: Vec<Node>,
    /// Directives of the host.
    host: Vec<Node>,
}

/// What a provider is asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Password,
    Digest,
}

fn users(choice: &mut Choice, kind: Kind) -> Users {
    let is_digest = kind == Kind::Digest;
    let mut names = vec![match (is_digest, choice.has_aliases) {
        (true, false) => choice.one(&["file", "file", "dbd", "dbd"]),
        (true, true) => choice.one(&["file", "dbd", "own-realm", "own-realm"]),
        (false, false) => choice.one(&["file", "dbd", "dbd", "dbm", "anon"]),
        (false, true) => choice.one(&["file", "dbd", "own-file", "own-dbd", "own-dbd"]),
    }];
    if choice.random.percent(30) {
        let more = choice.one(&["file", "dbd"]);
        if !names.contains(&more) {
            names.push(more);
        }
    }
    let mut nodes = Vec::new();
    if choice.random.percent(40) {
        names.insert(0, "socache");
        let of = choice.one(&["file", "dbd", "dbd file", "own-dbd", "own-realm own-file"]);
        nodes.push(Node::directive("AuthnCacheProvideFor", of));
        if choice.random.percent(40) {
            let context = choice.one(&["directory", "server", "shared"]);
            nodes.push(Node::directive("AuthnCacheContext", context));
        }
        if choice.random.percent(30) {
            nodes.push(Node::directive("AuthnCacheTimeout", choice.one(&["0", "1", "300"])));
        }
    }
    let file = if is_digest { "\"@SITE@/auth/digests\"" } else { "\"@SITE@/auth/users\"" };
    nodes.push(Node::directive("AuthUserFile", file));
    let mut host = Vec::new();
    if names.contains(&"dbm") {
        nodes.push(Node::directive("AuthDBMUserFile", "\"@SITE@/auth/dbm\""));
        nodes.push(Node::directive("AuthDBMType", "SDBM"));
    }
    if names.contains(&"anon") {
        nodes.push(Node::directive("Anonymous", choice.one(&["alice bob", "*"])));
        nodes.push(Node::directive("Anonymous_MustGiveEmail", "Off"));
    }
    if names.contains(&"dbd") {
        host = database::connection(choice);
        nodes.push(match is_digest {
            true => database::realm_query(choice),
            false => database::password_query(choice),
        });
    }
    if choice.random.percent(15) {
        names.rotate_left(1);
    }
    Users { names: names.join(" "), nodes, host }
}

/// Who may come in.
fn require(choice: &mut Choice, nodes: &mut Vec<Node>, host: &mut Vec<Node>) {
    let words = match choice.has_aliases && choice.random.percent(25) {
        true => "own-group",
        false => choice.one(&[
            "valid-user",
            "valid-user",
            "user alice",
            "group staff",
            "dbd-group staff",
            "dbd-group all none",
            "dbd-login",
            "dbd-logout",
        ]),
    };
    nodes.push(Node::directive("AuthGroupFile", "\"@SITE@/auth/groups\""));
    if words.starts_with("dbd") {
        if host.iter().all(|node| node.name != "DBDriver") {
            host.extend(database::connection(choice));
        }
        nodes.extend(database::permission(choice, words));
    }
    nodes.push(Node::directive("Require", words));
}

fn place(choice: &mut Choice, nodes: Vec<Node>) -> Node {
    match choice.random.below(4) {
        0 => Node::section("Location", "/d", nodes),
        1 => Node::section("Directory", "\"@SITE@/htdocs\"", nodes),
        _ => Node::section("Location", "/", nodes),
    }
}

/// Logins by password.
fn basic(choice: &mut Choice) -> Login {
    let Users { names, mut nodes, mut host } = users(choice, Kind::Password);
    let mut inner = vec![
        Node::directive("AuthType", "Basic"),
        Node::directive("AuthName", choice.one(&["realm", "\"a realm\""])),
        Node::directive("AuthBasicProvider", names),
    ];
    if choice.random.percent(20) {
        inner.push(Node::directive("AuthBasicAuthoritative", choice.one(&["On", "Off"])));
    }
    if choice.random.percent(20) {
        // The digest of user, realm and password is what is compared.
        inner.push(Node::directive("AuthBasicUseDigestAlgorithm", choice.one(&["MD5", "Off"])));
        nodes.push(Node::directive("AuthUserFile", "\"@SITE@/auth/digests\""));
        nodes.push(Node::directive("AuthDBDUserRealmQuery", database::REALM));
        if host.is_empty() {
            host = database::connection(choice);
        }
    }
    inner.append(&mut nodes);
    require(choice, &mut inner, &mut host);
    if choice.random.percent(30) {
        host.push(Node::directive("Header", "always set X-Name \"%{AUTHENTICATE_PAGE}e\""));
    }
    host.push(place(choice, inner));
    Login { nodes: host, client: clients::basic }
}

/// Logins by digest.
fn digest(choice: &mut Choice) -> Login {
    let Users { names, mut nodes, mut host } = users(choice, Kind::Digest);
    let mut inner = vec![
        Node::directive("AuthType", "Digest"),
        Node::directive("AuthName", choice.one(&["realm", "realm", "\"a realm\"", "'q\"q'"])),
        Node::directive("AuthDigestProvider", names),
    ];
    if choice.random.percent(30) {
        let domain = choice.one(&["/", "/ /d", "/d http://x.test/", "\"/a b\" /e"]);
        inner.push(Node::directive("AuthDigestDomain", domain));
    }
    if choice.random.percent(30) {
        inner.push(Node::directive("AuthDigestQop", choice.one(&["auth", "auth", "auth", "none"])));
    }
    if choice.has_aliases && choice.random.percent(60) {
        inner.push(Node::directive("AuthDigestNcCheck", choice.one(&["On", "On", "Off"])));
    }
    if choice.random.percent(40) {
        let lifetime = match choice.has_aliases {
            true => choice.one(&["0", "0", "-1", "20", "300", "5000"]),
            false => choice.one(&["-1", "20", "300", "5000"]),
        };
        inner.push(Node::directive("AuthDigestNonceLifetime", lifetime));
    }
    if choice.random.percent(20) {
        let algorithm = choice.one(&["MD5", "MD5", "MD5", "MD5-sess"]);
        inner.push(Node::directive("AuthDigestAlgorithm", algorithm));
    }
    inner.append(&mut nodes);
    require(choice, &mut inner, &mut host);
    host.push(place(choice, inner));
    Login { nodes: host, client: clients::digest }
}
