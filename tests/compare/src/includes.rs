//! Generates sites of pages with server-side includes: elements that are right, nearly right and
//! wrong, in pages that include files, programs and each other.
//!
//! A page includes those with a higher number, and rarely itself: otherwise a few pages would make
//! millions of subrequests. As with programs, all requests are HTTP/1.1, and none is HEAD or of a
//! range.

use crate::random::Random;
use crate::site::{Case, Content, File, Node, Request, Site};
use crate::tree::made;

/// The modules of these sites.
pub const MODULES: [&str; 10] = [
    "alias",
    "authz_core",
    "authz_host",
    "cgid",
    "dir",
    "env",
    "include",
    "mime",
    "request",
    "setenvif",
];

/// Sites that are served at once.
const SITES: u64 = 4;
/// Pages of each, and requests to it.
const PAGES: usize = 6;
const REQUESTS: usize = 20;
/// The most pieces of a page.
const PIECES: usize = 9;

/// Names of variables. Those that change with time or between the two servers are left out.
const VARIABLES: [&str; 21] = [
    "a",
    "b",
    "A",
    "unset",
    "",
    "0",
    "1",
    "DOCUMENT_NAME",
    "DOCUMENT_URI",
    "DOCUMENT_ARGS",
    "DOCUMENT_PATH_INFO",
    "QUERY_STRING",
    "QUERY_STRING_UNESCAPED",
    "LAST_MODIFIED",
    "REQUEST_METHOD",
    "REQUEST_URI",
    "SCRIPT_NAME",
    "PATH_INFO",
    "HTTP_COOKIE",
    "OWN",
    "SERVER_PROTOCOL",
];

/// Values of variables and messages.
const VALUES: [&str; 16] = [
    "x",
    "",
    "a b",
    "$a",
    "${b}c",
    "${b",
    "\\$a",
    "$",
    "&lt;i&gt;",
    "<b>&amp;",
    "%41+%zz",
    "$QUERY_STRING",
    "/part.txt",
    "$0-$1-$9",
    "\\\"q\\\"",
    "caf\u{e9}",
];

/// Conditions, of both syntaxes.
const CONDITIONS: [&str; 30] = [
    "v('a') = 'x'",
    "v('a') == 'x' && v('b') != ''",
    "-n v('a')",
    "-z v('unset')",
    "%{QUERY_STRING} =~ /(q)=(.)/",
    "v('QUERY_STRING') =~ m#^(.*)$#i",
    "reqenv('OWN') = 'value of own'",
    "%{REQUEST_METHOD} in { 'GET', 'HEAD' }",
    "true",
    "false || true",
    "!(v('a') = 'x')",
    "v('a') -eq 1",
    "'a' lt 'b'",
    "-A '/part.txt'",
    "-A '/none'",
    "file('/etc/hostname') = ''",
    "$a = x",
    "$a",
    "\"$a\" = \"x\"",
    "$a = /(x)|y/",
    "$QUERY_STRING = /q=(.)/ && $1 = 1",
    "$a != $b",
    "($a < $b) || ! $unset",
    "-A /part.txt",
    "a = 'x",
    "((a)",
    "a)",
    "&& a",
    "",
    "v('a'",
];

/// Targets of includes besides other pages.
const TARGETS: [&str; 16] = [
    "/part.txt",
    "part.txt",
    "/part.txt?q",
    "/part.txt/info",
    "/none",
    "/cgi-bin/p",
    "/cgi-bin/p?own=1",
    "/cgi-bin/p/info",
    "/cgi-bin/moved",
    "/cgi-bin/fails",
    "../part.txt",
    "/sub/",
    "/sub",
    "//part.txt",
    "$b",
    "",
];

/// Commands of `exec`.
const COMMANDS: [&str; 6] =
    ["echo out", "echo $a", "echo \\\"[$a][$DOCUMENT_NAME]\\\"", "exit 3", "", "echo $# $0"];

/// What is no element, or one with a fault.
const FAULTS: [&str; 18] = [
    "<!-- comment -->",
    "<!--#",
    "<!-- #echo var=\"a\" -->",
    "<!--# echo var=\"a\" -->",
    "<!--#echo -->",
    "<!--#echo var -->",
    "<!--#echo var= -->",
    "<!--#echo =\"a\" -->",
    "<!--#echo var=\"a-->",
    "<!--#echo var='a\" -->",
    "<!--#echo var=`a` -->",
    "<!--#ECHO VAR=a-->",
    "<!--#echo var=a encoding=\"none\"-->",
    "<!--#none -->",
    "<!--#endif -->",
    "<!--#else x=\"y\" -->",
    "<!--#elif -->",
    "<<!--!--#echo var=\"a\" ---->",
];

/// All cases of one start of the servers. A seed and a number determine them.
pub fn batch(seed: u64, number: u64) -> Vec<Case> {
    (0..SITES).map(|site| case(Random::part(seed, (number << 8) + site + (1 << 52)))).collect()
}

fn case(mut random: Random) -> Case {
    let random = &mut random;
    let is_tagged = random.percent(8);
    let mut files = vec![
        made("htdocs/part.txt".to_owned(), Content::Text("part\n".to_owned())),
        made("htdocs/sub/part.txt".to_owned(), Content::Text("sub\n".to_owned())),
        program("p", "'Content-Type: text/html\\n\\n'", "echo \"$QUERY_STRING $PATH_INFO [$a]\"\n"),
        program("moved", "'Location: /part.txt\\n\\n'", ""),
        program("fails", "'Status: 404\\nContent-Type: text/html\\n\\n'", "echo body\n"),
    ];
    for number in 0..PAGES {
        let text = page(random, number);
        let text = match is_tagged {
            true => text.replace("<!--#", "[[").replace("-->", "]]"),
            false => text,
        };
        let mut file = made(path(number), Content::Text(text));
        let mode: &str = random.pick(&["0644", "0644", "0744", "0754"]);
        file.options.push(("mode".to_owned(), mode.to_owned()));
        files.push(file);
    }
    let site = Site { config: config(random, is_tagged), files, ..Site::default() };
    let requests = (0..REQUESTS).map(|_| request(random)).collect();
    Case { site, requests }
}

/// The path of a page in the site's folder: every third one is in a folder of its own.
fn path(number: usize) -> String {
    format!("htdocs/{}", name(number).trim_start_matches('/'))
}

fn name(number: usize) -> String {
    let folder = if number % 3 == 2 { "sub/" } else { "" };
    format!("/{folder}p{number}.shtml")
}

fn program(name: &str, head: &str, rest: &str) -> File {
    let text = format!("#!/bin/sh\ncat >/dev/null\nprintf {head}\n{rest}");
    let mut file = made(format!("cgi-bin/{name}"), Content::Text(text));
    file.options.push(("mode".to_owned(), "0755".to_owned()));
    file
}

fn config(random: &mut Random, is_tagged: bool) -> Vec<Node> {
    let options: &str = random.pick(&["+Includes", "+Includes", "+Includes", "+IncludesNOEXEC"]);
    let mut inner = vec![Node::directive("Require", "all granted")];
    inner.push(Node::directive("Options", options));
    for (name, words) in [
        ("SSIErrorMsg", "\"(error)\""),
        ("SSITimeFormat", "%Y"),
        ("SSIUndefinedEcho", "\"(undefined)\""),
        ("SSILegacyExprParser", "on"),
        ("SSILastModified", "on"),
        ("SSIETag", "on"),
        ("XBitHack", "full"),
        ("XBitHack", "on"),
        ("AcceptPathInfo", "On"),
        ("AcceptPathInfo", "Off"),
        ("KeptBodySize", "20"),
        ("DirectoryIndex", "p2.shtml"),
    ] {
        let chance = if name == "SSILegacyExprParser" { 30 } else { 12 };
        if random.percent(chance) {
            inner.push(Node::directive(name, words));
        }
    }
    let mut nodes = vec![
        Node::directive("ScriptAlias", "/cgi-bin/ \"@SITE@/cgi-bin/\""),
        Node::directive("LimitInternalRecursion", "4"),
        Node::directive("AddType", "text/html .shtml"),
        Node::directive("AddOutputFilter", "INCLUDES .shtml"),
        Node::directive("SetEnv", "OWN \"value of own\""),
        Node::section("Directory", "\"@SITE@\"", inner),
    ];
    if is_tagged {
        nodes.push(Node::directive("SSIStartTag", "\"[[\""));
        nodes.push(Node::directive("SSIEndTag", "\"]]\""));
    }
    nodes
}

/// The text of a page.
fn page(random: &mut Random, number: usize) -> String {
    let mut text = String::new();
    for piece in 0..1 + random.below(PIECES) {
        text.push_str(&format!("{piece}:"));
        if random.percent(15) {
            text.push_str(random.pick(&FAULTS));
        } else {
            text.push_str(&element(random, number));
        }
        if random.percent(50) {
            text.push('\n');
        }
    }
    text
}

fn element(random: &mut Random, number: usize) -> String {
    let variable: &str = random.pick(&VARIABLES);
    let value: &str = random.pick(&VALUES);
    match random.below(12) {
        0 | 1 => {
            let coding: &str = random.pick(&[
                "",
                "",
                "",
                " encoding=\"none\"",
                " encoding=\"url\"",
                " encoding=\"urlencoded\"",
                " encoding=\"base64\"",
                " encoding=\"entity\"",
                " decoding=\"url\"",
                " decoding=\"entity\" encoding=\"none\"",
                " encoding=\"other\"",
            ]);
            // A coding holds for the names that follow it.
            format!("<!--#echo{coding} var=\"{variable}\" -->")
        }
        2 | 3 => format!("<!--#set var=\"{}\" value=\"{value}\" -->", random.pick(&["a", "b"])),
        4 => {
            let (name, value): (&str, &str) = random.pick(&[
                ("errmsg", "(own error)"),
                ("echomsg", "(own undefined)"),
                ("timefmt", "%d.%m.%y"),
                ("timefmt", "%s"),
                ("sizefmt", "bytes"),
                ("sizefmt", "abbrev"),
                ("sizefmt", "other"),
                ("none", "x"),
            ]);
            format!("<!--#config {name}=\"{value}\" -->")
        }
        5 => {
            let name: &str = random.pick(&["fsize", "flastmod"]);
            let of: &str = random.pick(&["file", "virtual"]);
            format!("<!--#{name} {of}=\"{}\" -->", random.pick(&TARGETS))
        }
        6 | 7 => include(random, number),
        8 => {
            let of: &str = random.pick(&["cmd", "cmd", "cgi"]);
            let what: &str = match of {
                "cmd" => random.pick(&COMMANDS),
                _ => random.pick(&TARGETS),
            };
            format!("<!--#exec {of}=\"{what}\" -->")
        }
        _ => branches(random, number),
    }
}

fn include(random: &mut Random, number: usize) -> String {
    let mut values = String::new();
    for _ in 0..1 + random.below(2) {
        let of: &str = random.pick(&["virtual", "virtual", "virtual", "file", "onerror"]);
        let next = number + 1 + random.below(PAGES);
        let target = match next {
            _ if random.percent(3) => name(number),
            next if next < PAGES && random.percent(60) => name(next),
            _ => {
                let target: &str = random.pick(&TARGETS);
                target.to_owned()
            }
        };
        let target = if of == "file" { target.trim_start_matches('/') } else { &target };
        values.push_str(&format!(" {of}=\"{target}\""));
    }
    format!("<!--#include{values} -->")
}

fn branches(random: &mut Random, number: usize) -> String {
    let mut text = format!("<!--#if expr=\"{}\" -->", random.pick(&CONDITIONS));
    for _ in 0..random.below(2) {
        text.push_str(&element(random, number));
    }
    if random.percent(40) {
        text.push_str(&format!("yes<!--#elif expr=\"{}\" -->", random.pick(&CONDITIONS)));
    }
    if random.percent(60) {
        text.push_str("first<!--#else -->second");
    }
    if random.percent(94) {
        text.push_str("<!--#endif -->");
    }
    text
}

fn request(random: &mut Random) -> Request {
    let method: &str = random.pick(&["GET", "GET", "GET", "GET", "GET", "POST"]);
    let info: &str = random.pick(&["", "", "", "", "/info", "/%41%20b"]);
    let query: &str = random.pick(&["", "", "?q=1", "?a+b%20c+%3B", "?", "?%zz", "?a&b;<c>'\""]);
    let target = match random.percent(4) {
        true => "/sub/".to_owned(),
        false => format!("{}{info}{query}", name(random.below(PAGES))),
    };
    let mut request = Request {
        method: method.to_owned(),
        target: target.into_bytes(),
        version: "HTTP/1.1".to_owned(),
        fields: vec![("Host".to_owned(), b"@HOST@".to_vec())],
        ..Request::default()
    };
    for _ in 0..random.below(2) {
        let (name, value): (&str, &str) = random.pick(&[
            ("If-None-Match", "*"),
            ("If-Modified-Since", "Sat, 01 Jan 2022 00:00:00 GMT"),
            ("If-Unmodified-Since", "Sat, 01 Jan 2000 00:00:00 GMT"),
            ("Cookie", "a=<1>; b=\"2\""),
        ]);
        request.fields.push((name.to_owned(), value.as_bytes().to_vec()));
    }
    if method == "POST" {
        let body = "x=1".repeat(random.below(9));
        request.fields.push(("Content-Length".to_owned(), body.len().to_string().into_bytes()));
        request.body = body.into_bytes();
    }
    request
}

#[cfg(test)]
mod tests {
    use super::batch;

    #[test]
    fn a_seed_and_a_number_fix_a_batch() {
        assert_eq!(batch(3, 4), batch(3, 4));
        assert_ne!(batch(3, 4), batch(3, 5));
    }
}
