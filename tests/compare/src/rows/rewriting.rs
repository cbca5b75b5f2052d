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
const TARGETS: [&str; 31] = [
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
];

/// Flags.
const FLAGS: [&str; 40] = [
    "L",
    "L",
    "L",
    "R",
    "R=301",
    "R=307",
    "R=404",
    "F",
    "G",
    "PT",
    "QSA",
    "QSD",
    "QSL",
    "NC",
    "NE",
    "B",
    "BNP",
    "BCTLS",
    "BNE=/,B",
    "B=?/",
    "C",
    "S=1",
    "S=2",
    "N=4",
    "END",
    "NS",
    "P",
    "DPI",
    "T=text/x-forced",
    "H=default-handler",
    "E=VAR:$1",
    "E=FOO:bar",
    "E=!FOO",
    "CO=n:v:example.test",
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
            format!("{pattern} {target} [{}]", flags.join(","))
        }
    }
}

/// A condition.
pub fn condition(choice: &mut Choice) -> String {
    let input = choice.one(&[
        "%{REQUEST_URI}",
        "%{REQUEST_FILENAME}",
        "%{QUERY_STRING}",
        "%{HTTP_HOST}",
        "%{HTTP_USER_AGENT}",
        "%{HTTP:Accept-Language}",
        "%{REQUEST_METHOD}",
        "%{THE_REQUEST}",
        "%{PATH_INFO}",
        "%{ENV:VAR}",
        "%{ENV:REDIRECT_STATUS}",
        "%{IS_SUBREQ}",
        "%{SERVER_PROTOCOL}",
        "$1",
        "%1",
        "%{DOCUMENT_ROOT}/$1",
        "@SITE@/htdocs/%{REQUEST_URI}",
    ]);
    let test = choice.one(&[
        "-f", "!-f", "-d", "!-d", "-s", "-l", "-x", "-F", "-U", "^/(.*)", "!^$", "^$", "(.+)",
        "=GET", "!=GET", ">b", "<b", "-eq0", "-ge1", "a", "(\\w)$", ">=/a", "evil",
    ]);
    match choice.random.below(6) {
        0 => format!("{input} {test} [OR]"),
        1 => format!("{input} {test} [NV]"),
        2 => "expr \"%{REQUEST_URI} =~ m#^/(.)#\"".to_owned(),
        _ => format!("{input} {test}"),
    }
}
