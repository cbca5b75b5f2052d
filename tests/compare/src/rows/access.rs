//! Access control: addresses, logins, and their combination.

use super::Phase::{Access, Login};
use super::{DIRECTORY, Row, SECTION, row};
use crate::choice::Choice;

pub const ROWS: &[Row] = &[
    row("authz_core", "Require", Access, DIRECTORY, 20, require),
    row("authn_core", "AuthType", Login, DIRECTORY, 6, |choice| {
        choice.word(&["Basic", "Basic", "None", "basic"])
    }),
    row("authn_core", "AuthName", Login, DIRECTORY, 6, |choice| {
        choice.word(&["realm", "\"a realm\"", "\"q\\\"q\""])
    }),
    row("authn_file", "AuthUserFile", Login, DIRECTORY, 6, |choice| {
        choice.word(&["\"@SITE@/auth/users\"", "\"@SITE@/auth/users\"", "\"@SITE@/auth/none\""])
    }),
    row("authz_groupfile", "AuthGroupFile", Login, DIRECTORY, 4, |_| {
        "\"@SITE@/auth/groups\"".to_owned()
    }),
    row("authz_core", "AuthMerging", Access, SECTION | DIRECTORY, 6, |choice| {
        choice.word(&["Off", "And", "Or"])
    }),
    row("authz_core", "AuthzSendForbiddenOnFailure", Access, DIRECTORY, 2, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("auth_basic", "AuthBasicAuthoritative", Login, DIRECTORY, 2, |choice| {
        choice.word(&["On", "Off"])
    }),
    row("auth_basic", "AuthBasicProvider", Login, DIRECTORY, 2, |_| "file".to_owned()),
    row("auth_basic", "AuthBasicFake", Login, DIRECTORY, 1, |choice| {
        choice.word(&["alice test", "off", "alice", "%{REQUEST_METHOD} test"])
    }),
    row("access_compat", "Satisfy", Access, DIRECTORY, 4, |choice| choice.word(&["Any", "All"])),
    row("access_compat", "Order", Access, DIRECTORY, 6, |choice| {
        choice.word(&["Allow,Deny", "Deny,Allow", "mutual-failure", "allow,deny"])
    }),
    row("access_compat", "Allow", Access, DIRECTORY, 6, from),
    row("access_compat", "Deny", Access, DIRECTORY, 6, from),
    row("allowmethods", "AllowMethods", Access, SECTION, 3, |choice| {
        choice.word(&[
            "GET",
            "GET POST OPTIONS",
            "POST",
            "reset",
            "HEAD DELETE",
            "GET PUT",
            "TRACE PATCH",
        ])
    }),
];

/// The arguments of a `Require`, inside containers too.
pub fn require(choice: &mut Choice) -> String {
    // A negative one alone is refused.
    let not = if choice.random.percent(1) { "not " } else { "" };
    let what = match choice.random.below(16) {
        0 if choice.is_tls => choice.word(&["ssl", "ssl", "ssl-verify-client"]),
        0..=3 => choice.word(&["all granted", "all denied", "all granted", "all granted"]),
        4 | 5 => {
            choice.word(&["ip 127.0.0.1", "ip 127", "ip 10.0.0.0/8", "ip 127.0.0.0/255.0.0.0"])
        }
        6 => choice.word(&["local", "host localhost", "host example.com", "forward-dns localhost"]),
        7 => choice.word(&["env V", "env bad", "env bad V"]),
        8 => choice.word(&["method GET", "method GET HEAD POST", "method OPTIONS", "method PUT"]),
        9 | 10 => format!("expr {}", choice.expression(1)),
        11 | 12 => "valid-user".to_owned(),
        13 => choice.word(&["user alice", "user bob", "user alice bob"]),
        14 => choice.word(&["group staff", "group all none"]),
        _ => format!("expr \"{}\"", choice.expression(2)),
    };
    format!("{not}{what}")
}

fn from(choice: &mut Choice) -> String {
    choice.word(&[
        "from all",
        "from 127.0.0.1",
        "from 127.0.0.0/8",
        "from 10",
        "from env=V",
        "from env=bad",
        "from env=!bad",
        "from localhost",
        "from 127",
        "from 10.1.2.3 127.0.0.1",
    ])
}
