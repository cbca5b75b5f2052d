//! Databases: what is asked of them for logins, groups, sessions and maps.

use blackbox::escape::unescape;

use crate::choice::Choice;
use crate::site::Node;

use super::{Login, clients};

/// A database of SQLite, in the notation of test files.
const DATABASE: &str = include_str!("database.txt");

pub const REALM: &str = "\"SELECT digest FROM digests WHERE name = %s AND realm = %s\"";
pub const GROUPS: &str = "\"SELECT crew FROM groups WHERE name = %s\"";

/// The statements of mod_session_dbd.
const OF_SESSIONS: [&str; 4] = [
    "\"SELECT value FROM session WHERE key = %s AND (expiry = 0 OR expiry > %lld)\" selectsession",
    "\"INSERT INTO session (value, expiry, key) VALUES (%s, %lld, %s)\" insertsession",
    "\"UPDATE session SET value = %s, expiry = %lld, key = %s WHERE key = %s\" updatesession",
    "\"DELETE FROM session WHERE key = %s\" deletesession",
];

/// The bytes of the database.
pub fn content() -> Vec<u8> {
    unescape(DATABASE.trim_end()).unwrap_or_default()
}

/// How the database is reached.
pub fn connection(choice: &mut Choice) -> Vec<Node> {
    let mut nodes = vec![
        Node::directive("DBDriver", "sqlite3"),
        Node::directive("DBDParams", "\"@SITE@/own/data.db\""),
    ];
    if choice.random.percent(20) {
        nodes.push(Node::directive("DBDPersist", choice.one(&["On", "Off"])));
    }
    if choice.random.percent(20) {
        nodes.push(Node::directive("DBDMin", choice.one(&["0", "1", "2"])));
        nodes.push(Node::directive("DBDKeep", choice.one(&["2", "3"])));
        nodes.push(Node::directive("DBDMax", choice.one(&["4", "9"])));
    }
    if choice.random.percent(10) {
        nodes.push(Node::directive("DBDExptime", choice.one(&["1", "300"])));
    }
    if choice.random.percent(10) {
        nodes.push(Node::directive("DBDInitSQL", "\"UPDATE users SET n = n\""));
    }
    nodes
}

/// The statements that sessions need.
pub fn of_sessions() -> impl Iterator<Item = Node> {
    OF_SESSIONS.iter().map(|words| Node::directive("DBDPrepareSQL", *words))
}

pub fn password_query(choice: &mut Choice) -> Node {
    let query = choice.one(&[
        "\"SELECT hash FROM users WHERE name = %s\"",
        "\"SELECT hash FROM users WHERE name = %s\"",
        "\"SELECT hash, page, n AS \\\"a-b\\\" FROM users WHERE name = %s\"",
        "\"SELECT hash FROM users WHERE name LIKE %s\"",
        "\"SELECT hash FROM users WHERE name = %s AND n < 2\"",
        "\"SELECT hash FROM users WHERE name = %s UNION ALL SELECT 'second'\"",
        "\"SELECT nope FROM users WHERE name = %s\"",
        "\"SELECT abs(-9223372036854775808), %s\"",
    ]);
    Node::directive("AuthDBDUserPWQuery", query)
}

pub fn realm_query(choice: &mut Choice) -> Node {
    let query = choice.one(&[
        REALM,
        REALM,
        REALM,
        "\"SELECT digest, name AS page FROM digests WHERE name = %s AND realm = %s\"",
        "\"SELECT digest FROM digests WHERE name = %s\"",
        "\"SELECT nope FROM digests WHERE name = %s AND realm = %s\"",
    ]);
    Node::directive("AuthDBDUserRealmQuery", query)
}

/// What a requirement that asks a database needs.
pub fn permission(choice: &mut Choice, words: &str) -> Vec<Node> {
    let query = match words.split(' ').next() {
        Some("dbd-login") => choice.one(&[
            "\"UPDATE logins SET state = 'in' WHERE name = %s\"",
            "\"UPDATE logins SET state = 'in' WHERE name = %s\"",
            "\"SELECT 1 WHERE %s = 'x'\"",
            "",
        ]),
        Some("dbd-logout") => {
            "\"UPDATE logins SET state = 'out' WHERE name = %s AND state = 'in'\""
        }
        _ => choice.one(&[
            GROUPS,
            GROUPS,
            GROUPS,
            "\"SELECT CASE state WHEN 'in' THEN 'all' ELSE 'staff' END FROM logins \
             WHERE name = %s\"",
            "\"SELECT crew FROM groups WHERE name = %s AND %s IS NULL\"",
            "\"SELECT nope WHERE %s\"",
            "",
        ]),
    };
    let mut nodes = Vec::new();
    if !query.is_empty() {
        nodes.push(Node::directive("AuthzDBDQuery", query));
    }
    if words.starts_with("dbd-log") {
        if choice.random.percent(50) {
            nodes.push(Node::directive("AuthzDBDLoginToReferer", choice.one(&["On", "Off"])));
        }
        if choice.random.percent(50) {
            let query = "\"SELECT page FROM users WHERE name = %s\"";
            nodes.push(Node::directive("AuthzDBDRedirectQuery", query));
        }
    }
    nodes
}

/// Maps in a database.
pub fn maps(choice: &mut Choice) -> Login {
    let mut nodes = connection(choice);
    let kind = choice.one(&["dbd", "dbd", "fastdbd", "fastdbd"]);
    let query = choice.one(&[
        "SELECT target FROM moved WHERE source = %s",
        "SELECT target FROM moved WHERE source = %s",
        "SELECT target FROM moved WHERE source LIKE %s || '.%%'",
        "SELECT target, source FROM moved WHERE source = %s",
        "SELECT '/same' FROM moved WHERE source = %s UNION ALL SELECT '/same'",
        "UPDATE moved SET target = '/new' WHERE source = %s",
        "SELECT nope WHERE %s",
        "SELECT abs(-9223372036854775808) || %s",
    ]);
    nodes.push(Node::directive("RewriteMap", format!("look \"{kind}:{query}\"")));
    nodes.push(Node::directive("RewriteEngine", "On"));
    if choice.random.percent(40) {
        nodes.push(Node::directive("RewriteCond", "${look:%{HTTP:X-Test}} =/a.txt"));
        nodes.push(Node::directive("RewriteRule", "^ - [E=FOUND:1]"));
        nodes.push(Node::directive("Header", "set X-Found \"%{FOUND}e\""));
    }
    let rule = choice.one(&[
        "^/look/(.*)$ ${look:$1|/nope} [R,L]",
        "^/look/(.*)$ ${look:$1|/a.txt} [L]",
        "^/look/(.*)$ ${look:$1} [R=301,L]",
        "^/look/(.*)$ ${look:$1|${look:one}} [R,NE,L]",
        "^/(.*)$ ${look:$1|/$1}",
    ]);
    nodes.push(Node::directive("RewriteRule", rule));
    for key in ["one", "two", "it's", "empty", "none", "a.txt", "d", "x", "' OR '1'='1", "on%"] {
        choice.paths.extend([format!("/look/{key}"), format!("/look/{key}")]);
    }
    Login { nodes, client: clients::look }
}
