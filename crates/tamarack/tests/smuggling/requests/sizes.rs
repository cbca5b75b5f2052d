//! Chunks: sizes, extensions, ends, trailers.

use super::SMUGGLED;
use crate::join;
use crate::payload::{List, ODD};

const HEAD: &str =
    "POST /tTTTT/x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";

/// The line of a chunk of five bytes.
const SIZES: &[(&str, &str)] = &[
    ("plain", "5"),
    ("upper", "05"),
    ("zeros", "00000005"),
    ("many-zeros", "000000000000000000000000000000005"),
    ("plus", "+5"),
    ("minus", "-5"),
    ("hex", "0x5"),
    ("hex-h", "5h"),
    ("letter", "5g"),
    ("empty", ""),
    ("blank", " "),
    ("blank-before", " 5"),
    ("tab-before", "\t5"),
    ("blank-after", "5 "),
    ("tab-after", "5\t"),
    ("blanks-after", "5   "),
    ("two", "5 5"),
    ("comma", "5,5"),
    ("dot", "5.0"),
    ("underscore", "5_"),
    ("quotes", "\"5\""),
    ("max-u32", "ffffffff"),
    ("wraps-u32", "100000005"),
    ("max-u63", "7fffffffffffffff"),
    ("over-u63", "8000000000000000"),
    ("max-u64", "ffffffffffffffff"),
    ("wraps-u64", "10000000000000005"),
    ("wraps-u128", "100000000000000000000000000000005"),
    ("minus-one", "-1"),
    ("ext", "5;a=b"),
    ("ext-name", "5;a"),
    ("ext-empty", "5;"),
    ("ext-empties", "5;;;"),
    ("ext-blank", "5 ;a=b"),
    ("ext-blanks", "5 ; a = b"),
    ("ext-tab", "5\t;\ta"),
    ("ext-quoted", "5;a=\"b c\""),
    ("ext-open-quote", "5;a=\"b"),
    ("ext-crlf-in-quote", "5;a=\"\r\n\""),
    ("ext-lf-in-quote", "5;a=\"\n\""),
    ("ext-cr", "5;a\rb"),
    ("ext-lf", "5;a\nb"),
    ("ext-nul", "5;a\0b"),
    ("ext-del", "5;a\x7fb"),
    ("ext-utf8", "5;a=\u{e9}"),
    ("ext-size", "5;0"),
    ("ext-equals", "5;=b"),
    ("ext-no-semicolon", "5 a=b"),
    ("ext-equals-only", "5=b"),
    ("ext-comment", "5 (comment)"),
    ("ext-colon", "5:a"),
    ("ext-request", "5;GET /tTTTT/smuggled HTTP/1.1"),
];

/// What ends a line.
const ENDS: &[(&str, &str)] = &[
    ("crlf", "\r\n"),
    ("lf", "\n"),
    ("cr", "\r"),
    ("crcrlf", "\r\r\n"),
    ("lfcr", "\n\r"),
    ("lflf", "\n\n"),
    ("crlfcrlf", "\r\n\r\n"),
    ("none", ""),
    ("nul", "\0\r\n"),
    ("blank", " \r\n"),
    ("x", "X\r\n"),
    ("xx", "XX"),
    ("bs", "\\r\\n"),
    ("blank-lf", " \n"),
];

/// Trailer fields, each with its end.
const TRAILERS: &[(&str, &str)] = &[
    ("plain", "X-A: b\r\n"),
    ("length", "Content-Length: 100\r\n"),
    ("length-zero", "Content-Length: 0\r\n"),
    ("coding", "Transfer-Encoding: chunked\r\n"),
    ("host", "Host: other\r\n"),
    ("connection", "Connection: close\r\n"),
    ("upgrade", "Upgrade: h2c\r\n"),
    ("authorization", "Authorization: Basic YTpi\r\n"),
    ("trailer", "Trailer: X\r\n"),
    ("expect", "Expect: 100-continue\r\n"),
    ("request", "GET /tTTTT/smuggled HTTP/1.1\r\n"),
    ("request-host", "GET /tTTTT/smuggled HTTP/1.1\r\nHost: localhost\r\n"),
    ("folded", "X-A: b\r\n c\r\n"),
    ("folded-first", " X-A: b\r\n"),
    ("no-colon", "X-A\r\n"),
    ("no-name", ": b\r\n"),
    ("blank-name", "X A: b\r\n"),
    ("blank-colon", "X-A : b\r\n"),
    ("nul", "X-A: a\0b\r\n"),
    ("cr", "X-A: a\rb\r\n"),
    ("lf", "X-A: a\n"),
    ("lf-twice", "X-A: a\n\n"),
    ("cr-only", "\r"),
    ("control", "X-A: a\x01b\r\n"),
    ("utf8", "X-A: \u{e9}\r\n"),
    ("two", "X-A: a\r\nX-B: b\r\n"),
    ("same", "X-A: a\r\nX-A: b\r\n"),
    ("empty", "X-A:\r\n"),
    ("forwarded", "X-Forwarded-For: 1.2.3.4\r\n"),
];

pub fn add(list: &mut List) {
    for (name, size) in SIZES {
        let rest = join!(size, "\r\nhello\r\n0\r\n\r\n");
        list.add(format!("size.{name}.first"), join!(HEAD, rest, SMUGGLED));
        list.add(format!("size.{name}.second"), join!(HEAD, "1\r\na\r\n", rest, SMUGGLED));
        let zero = size.replacen('5', "0", 1);
        list.add(format!("size.{name}.last"), join!(HEAD, zero, "\r\n\r\n", SMUGGLED));
    }
    for &odd in ODD {
        let places = [
            ("before", join!([odd], "5")),
            ("after", join!("5", [odd])),
            ("extension", join!("5;a", [odd], "b")),
        ];
        for (place, size) in places {
            let name = format!("size-odd.{place}.x{odd:02x}");
            list.add(name, join!(HEAD, size, "\r\nhello\r\n0\r\n\r\n", SMUGGLED));
        }
    }
    ends(list);
    for (name, trailer) in TRAILERS {
        let body = join!("5\r\nhello\r\n0\r\n", trailer, "\r\n");
        list.add(format!("trailer.{name}.end"), join!(HEAD, body));
        list.add(format!("trailer.{name}.next"), join!(HEAD, body, SMUGGLED));
        let named = HEAD.replace("\r\n\r\n", "\r\nTrailer: X-A\r\nTE: trailers\r\n\r\n");
        list.add(format!("trailer.{name}.named"), join!(named, body, SMUGGLED));
    }
}

/// Other ends of the lines between chunks, and bodies that end early.
fn ends(list: &mut List) {
    for (name, end) in ENDS {
        let mut add = |place: &str, body: Vec<u8>| {
            list.add(format!("chunk-end.{place}.{name}"), join!(HEAD, body, SMUGGLED));
        };
        add("size", join!("5", end, "hello\r\n0\r\n\r\n"));
        add("data", join!("5\r\nhello", end, "0\r\n\r\n"));
        add("last", join!("5\r\nhello\r\n0", end, "\r\n"));
        add("body", join!("5\r\nhello\r\n0\r\n", end));
        add("extension", join!("5;a=b", end, "hello\r\n0\r\n\r\n"));
    }
    let parts =
        ["", "5", "5\r", "5\r\n", "5\r\nhel", "5\r\nhello", "5\r\nhello\r", "5\r\nhello\r\n"];
    for (number, part) in parts.iter().enumerate() {
        list.add(format!("chunk-cut.{number}"), join!(HEAD, part));
    }
    for (number, part) in ["0", "0\r", "0\r\n", "0\r\n\r", "0\r\nX: y\r\n"].iter().enumerate() {
        list.add(format!("chunk-cut.last-{number}"), join!(HEAD, "5\r\nhello\r\n", part));
    }
    for (name, data) in [("less", "hell"), ("more", "hello!"), ("much-more", "hello hello")] {
        let body = join!("5\r\n", data, "\r\n0\r\n\r\n");
        list.add(format!("chunk-data.{name}"), join!(HEAD, body, SMUGGLED));
    }
}
