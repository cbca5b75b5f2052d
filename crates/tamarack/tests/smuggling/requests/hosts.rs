//! Host fields and absolute targets.

use super::SMUGGLED;
use crate::join;
use crate::payload::{List, ODD};

const HOSTS: &[(&str, &str)] = &[
    ("none", ""),
    ("empty", "Host:\r\n"),
    ("blank", "Host: \r\n"),
    ("plain", "Host: localhost\r\n"),
    ("port", "Host: localhost:80\r\n"),
    ("no-port", "Host: localhost:\r\n"),
    ("port-word", "Host: localhost:x\r\n"),
    ("port-zero", "Host: localhost:0\r\n"),
    ("port-large", "Host: localhost:65536\r\n"),
    ("port-minus", "Host: localhost:-1\r\n"),
    ("two-ports", "Host: localhost:80:80\r\n"),
    ("only-port", "Host: :80\r\n"),
    ("two", "Host: localhost\r\nHost: other\r\n"),
    ("same", "Host: localhost\r\nHost: localhost\r\n"),
    ("two-cases", "Host: localhost\r\nhost: other\r\n"),
    ("list", "Host: localhost, other\r\n"),
    ("words", "Host: localhost other\r\n"),
    ("blank-before-name", " Host: localhost\r\n"),
    ("blank-colon", "Host : localhost\r\n"),
    ("first-blank", "Host: localhost\r\n Host: other\r\n"),
    ("folded", "Host:\r\n localhost\r\n"),
    ("folded-more", "Host: localhost\r\n other\r\n"),
    ("path", "Host: localhost/x\r\n"),
    ("query", "Host: localhost?x\r\n"),
    ("fragment", "Host: localhost#x\r\n"),
    ("user", "Host: user@localhost\r\n"),
    ("user-other", "Host: localhost:80@other\r\n"),
    ("scheme", "Host: http://localhost\r\n"),
    ("backslash", "Host: localhost\\x\r\n"),
    ("percent", "Host: localhost%00\r\n"),
    ("percent-zone", "Host: localhost%zz\r\n"),
    ("star", "Host: *\r\n"),
    ("dot", "Host: .\r\n"),
    ("dots", "Host: localhost..\r\n"),
    ("dot-first", "Host: .localhost\r\n"),
    ("dot-after", "Host: localhost.\r\n"),
    ("underscore", "Host: local_host\r\n"),
    ("dash", "Host: -localhost\r\n"),
    ("upper", "Host: LOCALHOST\r\n"),
    ("utf8", "Host: localh\u{f6}st\r\n"),
    ("quotes", "Host: \"localhost\"\r\n"),
    ("angle", "Host: <localhost>\r\n"),
    ("v4", "Host: 127.0.0.1\r\n"),
    ("v4-long", "Host: 127.0.0.1.1\r\n"),
    ("v4-hex", "Host: 0x7f000001\r\n"),
    ("v6", "Host: [::1]\r\n"),
    ("v6-port", "Host: [::1]:80\r\n"),
    ("v6-open", "Host: [::1\r\n"),
    ("v6-bare", "Host: ::1\r\n"),
    ("v6-word", "Host: [x]\r\n"),
    ("v6-zone", "Host: [fe80::1%25lo]\r\n"),
    ("v6-after", "Host: [::1]x\r\n"),
    ("brackets", "Host: []\r\n"),
    ("semicolon", "Host: localhost;x\r\n"),
    ("length", "Host: localhost\nContent-Length: 5\r\n"),
];

const ABSOLUTE: &[(&str, &str)] = &[
    ("plain", "http://localhost/tTTTT/x"),
    ("other", "http://other/tTTTT/x"),
    ("port", "http://localhost:80/tTTTT/x"),
    ("port-word", "http://localhost:x/tTTTT/x"),
    ("no-port", "http://localhost:/tTTTT/x"),
    ("https", "https://localhost/tTTTT/x"),
    ("upper", "HTTP://LOCALHOST/tTTTT/x"),
    ("ftp", "ftp://localhost/tTTTT/x"),
    ("file", "file:///tTTTT/x"),
    ("unknown", "foo://localhost/tTTTT/x"),
    ("no-host", "http:///tTTTT/x"),
    ("one-slash", "http:/tTTTT/x"),
    ("no-slash", "http:tTTTT/x"),
    ("no-path", "http://localhost"),
    ("query", "http://localhost?tTTTT"),
    ("user", "http://user@localhost/tTTTT/x"),
    ("user-password", "http://user:pass@localhost/tTTTT/x"),
    ("user-other", "http://localhost@other/tTTTT/x"),
    ("backslash", "http://localhost\\@other/tTTTT/x"),
    ("fragment", "http://localhost#@other/tTTTT/x"),
    ("v6", "http://[::1]/tTTTT/x"),
    ("v6-open", "http://[::1/tTTTT/x"),
    ("slashes", "//localhost/tTTTT/x"),
    ("escaped", "http://local%68ost/tTTTT/x"),
    ("crlf", "http://localhost%0d%0a/tTTTT/x"),
    ("blank", "http://local host/tTTTT/x"),
    ("dots", "http://localhost/../tTTTT/x"),
    ("underscore", "http://local_host/tTTTT/x"),
    ("double", "http://localhost/http://other/tTTTT/x"),
    ("authority", "localhost:80"),
    ("ws", "ws://localhost/tTTTT/x"),
];

pub fn add(list: &mut List) {
    for (name, field) in HOSTS {
        for version in ["1.1", "1.0"] {
            let head = format!("GET /tTTTT/x HTTP/{version}\r\n{field}\r\n");
            list.add(format!("host.{name}.{version}"), join!(head, SMUGGLED));
        }
    }
    for &odd in ODD {
        let line = "GET /tTTTT/x HTTP/1.1\r\nHost: local";
        let rest = join!("host\r\n\r\n", SMUGGLED);
        list.add(format!("host-odd.in.x{odd:02x}"), join!(line, [odd], rest));
        let line = "GET /tTTTT/x HTTP/1.1\r\nHost: localhost";
        list.add(format!("host-odd.after.x{odd:02x}"), join!(line, [odd], "\r\n\r\n", SMUGGLED));
    }
    for (name, target) in ABSOLUTE {
        for (host, field) in
            [("same", "Host: localhost\r\n"), ("other", "Host: other\r\n"), ("none", "")]
        {
            let head = format!("GET {target} HTTP/1.1\r\n{field}\r\n");
            list.add(format!("absolute.{name}.{host}"), join!(head, SMUGGLED));
        }
    }
}
