//! mod_rewrite: rules, their conditions and flags.

use super::Phase::Name;
use super::{ALL, DIRECTORY, HOST, Row, SERVER, row};
use crate::choice::Choice;

pub const ROWS: &[Row] = &[
    row("rewrite", "RewriteEngine", Name, ALL, 4, |choice| {
        choice.word(&["On", "On", "On", "On", "Off"])
    }),
    row("rewrite", "RewriteRule", Name, ALL, 12, rule),
    row("rewrite", "RewriteCond", Name, ALL, 4, condition),
    row("rewrite", "RewriteBase", Name, DIRECTORY, 3, |choice| {
        choice.word(&["/", "/d", "/d/", "/docs", "/none"])
    }),
    row("rewrite", "RewriteOptions", Name, ALL, 3, |choice| {
        choice.word(&[
            "Inherit",
            "InheritBefore",
            "InheritDown",
            "InheritDownBefore",
            "IgnoreInherit",
            "AllowNoSlash",
            "MergeBase",
            "IgnoreContextInfo",
            "LegacyPrefixDocRoot",
            "Inherit MergeBase",
        ])
    }),
    row("rewrite", "RewriteMap", Name, SERVER, 2, |choice| {
        choice.word(&["low int:tolower", "up int:toupper", "esc int:escape", "une int:unescape"])
    }),
    row("rewrite", "RewriteMap", Name, HOST, 1, |choice| {
        choice.word(&[
            "t \"txt:@SITE@/map.txt\"",
            "t \"@SITE@/map.txt\"",
            "one \"rnd:@SITE@/map.txt\"",
            "dbm \"dbm=sdbm:@SITE@/map\"",
        ])
    }),
];

/// Patterns, of whole paths and of those in a directory.
const PATTERNS: [&str; 18] = [
    "^/(.*)\\.txt$",
    "^(.*)\\.html$",
    "^/d/(.*)$",
    "^([^/]+)/(.*)$",
    "^a",
    "^/a",
    "a.txt$",
    "!\\.txt$",
    "^",
    ".",
    "^$",
    "^/?index",
    "(.+)/$",
    "^(/?)([a-z]+)\\.([a-z]+)$",
    "(?i)^/?UP/",
    "^/e\\ f",
    "\"e f\"",
    "^(a|b|/c)",
];

/// Substitutions.
const TARGETS: [&str; 40] = [
    "-",
    "-",
    "/a.txt",
    "a.txt",
    "/index.html",
    "$1",
    "/$1",
    "$1.html",
    "/d/$1",
    "d/$2",
    "/$2/$1",
    "/a.txt?x=$1",
    "/a.txt?",
    "?q=$1",
    "http://other.test/$1",
    "http://@HOST@/$1",
    "%{REQUEST_URI}x",
    "/%1/%{REQUEST_METHOD}",
    "%{DOCUMENT_ROOT}/a.txt",
    "@SITE@/out/$1",
    "/al/$1",
    "/${low:$1|none}",
    "/${up:%{QUERY_STRING}}",
    "/nope/$0",
    "//a.txt",
    "/d/../a.txt",
    "/%{LA-U:REQUEST_FILENAME}",
    "\\$1\\%1",
    "/${t:$1|a.txt}",
    "%{REQUEST_FILENAME}",
    "/${t:%{HTTP:X-Test}}$2",
    "/${dbm:$1|b.html}",
    "/${one:$1}",
    "/d/${esc:$1}?${une:%{QUERY_STRING}}",
    "${t:${low:$1}|/a.txt}",
    "/b.html?v=%{ENV:VAR}&$1",
    "https://%{HTTP_HOST}%{REQUEST_URI}",
    "/%{REQUEST_URI}?%{QUERY_STRING}",
    "/a.txt%3fx",
    "\"/e f/$1\"",
];

/// Flags.
const FLAGS: [&str; 72] = [
    "L",
    "L",
    "L",
    "last",
    "R",
    "redirect",
    "R=301",
    "R=307",
    "R=404",
    "R=200",
    "R=204",
    "R=permanent",
    "R=seeother",
    "R=temp",
    "redirect=308",
    "F",
    "forbidden",
    "G",
    "gone",
    "PT",
    "passthrough",
    "QSA",
    "qsappend",
    "QSD",
    "qsdiscard",
    "QSL",
    "qslast",
    "NC",
    "nocase",
    "NE",
    "noescape",
    "B",
    "BNP",
    "BCTLS",
    "BNE=/",
    "B=?/",
    "B=$&",
    "C",
    "C",
    "chain",
    "S=1",
    "S=2",
    "skip=1",
    "N=4",
    "next=2",
    "END",
    "NS",
    "nosubreq",
    "P",
    "proxy",
    "DPI",
    "discardpath",
    "T=text/x-forced",
    "type=text/html",
    "H=default-handler",
    "handler=send-as-is",
    "E=VAR:$1",
    "E=V:%1",
    "E=FOO:bar",
    "E=!FOO",
    "env=VAR:%{REQUEST_METHOD}",
    "E=!no-gzip",
    "E=V",
    "CO=n:v:example.test",
    "CO=n:$1:.example.test:0:/d:secure:httponly:lax",
    "cookie=;n;a:b;@HOST@",
    "UnsafeAllow3F",
    "UnsafePrefixStat",
    "UNC",
    "R=foo",
    "L,R=302",
    "NC,NE",
];

/// A rule.
pub fn rule(choice: &mut Choice) -> String {
    let pattern = choice.one(&PATTERNS);
    let target = choice.one(&TARGETS);
    match choice.random.below(4) {
        0 => format!("{pattern} {target}"),
        count => {
            let flags: Vec<&str> = (0..count).map(|_| choice.one(&FLAGS)).collect();
            let flags = flags.join(choice.one(&[",", ",", ", "]));
            // A space is a part of the list only in quotes.
            match flags.contains(' ') {
                true => format!("{pattern} {target} \"[{flags}]\""),
                false => format!("{pattern} {target} [{flags}]"),
            }
        }
    }
}

/// A condition.
pub fn condition(choice: &mut Choice) -> String {
    let flags = choice.one(&[
        "",
        "",
        "",
        " [OR]",
        " [NV]",
        " [NC]",
        " [ornext]",
        " [nocase,OR]",
        " [novary]",
    ]);
    if choice.random.percent(12) {
        return format!("expr \"{}\"{flags}", choice.expression(1));
    }
    let not = choice.one(&["", "", "!"]);
    let input = choice.one(&INPUTS);
    format!("{input} {not}{}{flags}", choice.one(&TESTS))
}

/// Inputs of conditions.
const INPUTS: [&str; 46] = [
    "%{REQUEST_URI}",
    "%{REQUEST_URI}",
    "%{REQUEST_FILENAME}",
    "%{REQUEST_FILENAME}",
    "%{SCRIPT_FILENAME}",
    "%{QUERY_STRING}",
    "%{QUERY_STRING}",
    "%{HTTP_HOST}",
    "%{HTTP_USER_AGENT}",
    "%{HTTP_COOKIE}",
    "%{HTTP_REFERER}",
    "%{HTTP_ACCEPT}",
    "%{HTTP_FORWARDED}",
    "%{HTTP:Accept-Language}",
    "%{HTTP:X-Test}",
    "%{REQUEST_METHOD}",
    "%{REQUEST_SCHEME}",
    "%{THE_REQUEST}",
    "%{PATH_INFO}",
    "%{ENV:VAR}",
    "%{ENV:V}",
    "%{ENV:REDIRECT_STATUS}",
    "%{SSL:SSL_PROTOCOL}",
    "%{HTTPS}",
    "%{IS_SUBREQ}",
    "%{SERVER_PROTOCOL}",
    "%{SERVER_NAME}",
    "%{REMOTE_ADDR}",
    "%{CONN_REMOTE_ADDR}",
    "%{REMOTE_USER}",
    "%{LA-U:REMOTE_USER}",
    "%{LA-U:REQUEST_FILENAME}",
    "%{LA-F:REQUEST_URI}",
    "%{AUTH_TYPE}",
    "%{CONTEXT_PREFIX}",
    "%{CONTEXT_DOCUMENT_ROOT}",
    "%{SERVER_ADDR}",
    "%{IPV6}",
    "$1",
    "$0",
    "%1",
    "%{DOCUMENT_ROOT}/$1",
    "%{DOCUMENT_ROOT}%{REQUEST_URI}",
    "@SITE@/htdocs/%{REQUEST_URI}",
    "${t:$1|none}",
    "2",
];

/// Tests of conditions.
const TESTS: [&str; 43] = [
    "-f",
    "-f",
    "-d",
    "-d",
    "-s",
    "-l",
    "-L",
    "-h",
    "-x",
    "-F",
    "-U",
    "^/(.*)",
    "^$",
    "^$",
    "(.+)",
    "^(.)(.*)$",
    "(?<n>[a-z]+)",
    "=GET",
    "=get",
    "=\"\"",
    ">b",
    "<b",
    ">=/a",
    "<=/d",
    "</d/",
    ">/b.html",
    "-eq0",
    "-ge1",
    "-gt1",
    "-lt3",
    "-le2",
    "-ne2",
    "-ge",
    "-e",
    "-z",
    "a",
    "(\\w)$",
    "evil",
    "\\.txt$",
    "^on$",
    "^A",
    "test",
    "none",
];
