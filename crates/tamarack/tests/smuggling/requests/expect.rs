//! Expect, Upgrade, and requests one after the other.

use super::SMUGGLED;
use crate::join;
use crate::payload::List;

const LINE: &str = "POST /tTTTT/x HTTP/1.1\r\nHost: localhost\r\n";

const EXPECT: &[(&str, &str)] = &[
    ("plain", "100-continue"),
    ("upper", "100-CONTINUE"),
    ("blank-after", "100-continue "),
    ("x-after", "100-continuex"),
    ("x-before", "y 100-continue"),
    ("parameter", "100-continue;q=1"),
    ("list", "100-continue, 100-continue"),
    ("list-other", "100-continue, x"),
    ("comma", "100-continue,"),
    ("quotes", "\"100-continue\""),
    ("other", "200-ok"),
    ("number", "100"),
    ("empty", ""),
    ("folded", "\r\n 100-continue"),
    ("folded-in", "100-\r\n continue"),
    ("two", "100-continue\r\nExpect: 100-continue"),
    ("two-other", "100-continue\r\nExpect: x"),
    ("nul", "100-continue\0"),
    ("tab", "\t100-continue"),
    ("hop", "100-continue\r\nConnection: Expect"),
];

const UPGRADE: &[(&str, &str)] = &[
    (
        "h2c",
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\nConnection: Upgrade, HTTP2-Settings",
    ),
    ("h2c-alone", "Upgrade: h2c"),
    ("websocket", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13"),
    ("websocket-bad", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 777"),
    ("tls", "Upgrade: TLS/1.0\r\nConnection: Upgrade"),
    ("any", "Upgrade: any\r\nConnection: Upgrade"),
    ("list", "Upgrade: h2c, websocket\r\nConnection: Upgrade"),
    ("not-asked", "Upgrade: websocket\r\nConnection: close"),
    ("http", "Upgrade: HTTP/1.1\r\nConnection: Upgrade"),
];

pub fn add(list: &mut List) {
    for (name, value) in EXPECT {
        let head = join!(LINE, "Expect: ", value, "\r\n");
        let mut add = |shape: &str, rest: Vec<u8>| {
            list.add(format!("expect.{name}.{shape}"), join!(head, rest));
        };
        add("length", join!("Content-Length: 5\r\n\r\nhello", SMUGGLED));
        add("chunked", join!("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", SMUGGLED));
        add("chunk", join!("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", SMUGGLED));
        add("none", join!("\r\n", SMUGGLED));
        add("zero", join!("Content-Length: 0\r\n\r\n", SMUGGLED));
        let old = LINE.replace("1.1", "1.0");
        let rest = join!("\r\nContent-Length: 5\r\n\r\nhello", SMUGGLED);
        list.add(format!("expect.{name}.old"), join!(old, "Expect: ", value, rest));
    }
    for (name, fields) in UPGRADE {
        let get = LINE.replace("POST", "GET");
        list.add(format!("upgrade.{name}.get"), join!(get, fields, "\r\n\r\n", SMUGGLED));
        let body = join!("\r\nContent-Length: 5\r\n\r\nhello", SMUGGLED);
        list.add(format!("upgrade.{name}.length"), join!(LINE, fields, body));
        let body = join!("\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", SMUGGLED);
        list.add(format!("upgrade.{name}.chunked"), join!(LINE, fields, body));
    }
    pipelines(list);
}

/// Requests that are in order, so that each is answered, and bodies that end early.
fn pipelines(list: &mut List) {
    for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "FOO"] {
        let line = LINE.replace("POST", method);
        let mut add = |shape: &str, rest: Vec<u8>| {
            list.add(format!("pipeline.{method}.{shape}"), join!(line, rest));
        };
        add("none", join!("\r\n", SMUGGLED));
        add("two", join!("\r\n", SMUGGLED, SMUGGLED));
        add("length", join!("Content-Length: 5\r\n\r\nhello", SMUGGLED));
        let length = SMUGGLED.len();
        add("inner", join!(format!("Content-Length: {length}\r\n\r\n"), SMUGGLED));
        let both = join!(format!("Content-Length: {length}\r\n\r\n"), SMUGGLED, SMUGGLED);
        add("inner-and-next", both);
        add("short", join!(format!("Content-Length: {}\r\n\r\n", length + 1), SMUGGLED));
        let chunk = join!(format!("{length:x}\r\n"), SMUGGLED, "\r\n0\r\n\r\n");
        add("chunk", join!("Transfer-Encoding: chunked\r\n\r\n", chunk));
        add("chunk-and-next", join!("Transfer-Encoding: chunked\r\n\r\n", chunk, SMUGGLED));
        add("crlf", join!("Content-Length: 5\r\n\r\nhello\r\n", SMUGGLED));
        add("garbage", join!("Content-Length: 5\r\n\r\nhelloX", SMUGGLED));
    }
}
