//! Fields of requests: conditions, ranges, logins, preferences, cookies.

use crate::choice::Choice;
use crate::contents;
use crate::site::Request;

/// Adds a field.
pub fn field(choice: &mut Choice, request: &mut Request) {
    if choice.random.percent(4) {
        return contents::session(choice, request);
    }
    let (name, value) = match choice.random.below(27) {
        0 | 24 => ("If-None-Match", tag(choice)),
        1 => ("If-Match", tag(choice)),
        2 | 3 | 22 | 23 => ("If-Modified-Since", date(choice)),
        4 => ("If-Unmodified-Since", date(choice)),
        5..=7 => ("Range", range(choice)),
        8 => ("If-Range", if choice.random.percent(50) { tag(choice) } else { date(choice) }),
        9 => (
            "Accept-Encoding",
            choice.word(&[
                "gzip",
                "gzip, deflate",
                "identity",
                "*",
                "gzip;q=0",
                "x-gzip",
                "",
                "br",
                "gzip, br",
            ]),
        ),
        10 => (
            "Accept-Language",
            choice.word(&["en", "de", "fr, de;q=0.5", "*", "en-US, en;q=0.1", "xx", "de;q=0"]),
        ),
        11 => (
            "Accept",
            choice.word(&[
                "text/html",
                "text/*;q=0.3, */*;q=0.1",
                "image/*",
                "*/*",
                "x",
                "text/plain;q=0",
            ]),
        ),
        12 => ("Accept-Charset", choice.word(&["utf-8", "koi8-r, *;q=0.1", "x"])),
        13..=15 => ("Authorization", login(choice)),
        16 => ("User-Agent", agent(choice)),
        17 => ("X-Test", choice.word(&["1", "a b", "evil", "", "gzip, \"q\"", "<x>"])),
        18 => (
            "Referer",
            choice.word(&["http://@HOST@/", "x", "http://evil.test/evil", "http://@HOST@/d/a.txt"]),
        ),
        19 => (
            "Connection",
            choice.word(&["close", "keep-alive", "Keep-Alive", "x", "close, x", "Upgrade"]),
        ),
        20 => (
            "Expect",
            choice.word(&["100-continue", "100-Continue", "200-maybe", "x", "", "100-continue, x"]),
        ),
        25 | 26 => ("X-Forwarded-For", forwarded(choice)),
        _ => ("Cookie", cookies(choice)),
    };
    add(request, name, value);
}

/// Adds a condition: the combination of several is a test of its own.
pub fn condition(choice: &mut Choice, request: &mut Request) {
    let (name, value) = match choice.random.below(5) {
        0 => ("If-None-Match", tag(choice)),
        1 => ("If-Match", tag(choice)),
        2 => ("If-Modified-Since", date(choice)),
        _ => ("If-Unmodified-Since", date(choice)),
    };
    add(request, name, value);
}

/// Only lists may occur twice; a second Host or Authorization is a different case.
pub fn add(request: &mut Request, name: &str, value: String) {
    if name == "Accept" || !request.fields.iter().any(|(known, _)| known == name) {
        request.fields.push((name.to_owned(), value.into_bytes()));
    }
}

fn tag(choice: &mut Choice) -> String {
    let size = choice.one(&["2", "4", "6", "8", "a", "b", "c", "d", "e", "f", "0"]);
    let own = format!("\"{size}-5d479f7f96000\"");
    match choice.random.below(9) {
        0 => "*".to_owned(),
        1 => "\"nope\"".to_owned(),
        2 => format!("W/{own}"),
        3 => format!("\"nope\", {own}"),
        4 => choice.word(&["nope", "\"", "", "\"tag\"", "W/\"tag\"", "\"a,b\", \"tag\""]),
        5 | 6 => {
            let sizes = ["7", "8", "9", "a", "b", "c", "d", "e", "f", "10", "11", "12"];
            sizes.map(|size| format!("\"{size}-5d479f7f96000\"")).join(", ")
        }
        _ => own,
    }
}

fn date(choice: &mut Choice) -> String {
    match choice.random.below(8) {
        0 => "Sun, 02 Jan 2022 00:00:00 GMT".to_owned(),
        1 => "Fri, 31 Dec 2021 23:59:59 GMT".to_owned(),
        2 => choice.word(&[
            "x",
            "",
            "Saturday, 01-Jan-22 00:00:00 GMT",
            "Sat Jan  1 00:00:00 2022",
            "Sat, 01 Jan 2022 00:00:00",
        ]),
        3 => "Sat, 01 Jan 2050 00:00:00 GMT".to_owned(),
        _ => TIME.to_owned(),
    }
}

fn range(choice: &mut Choice) -> String {
    choice.word(&[
        "bytes=0-0",
        "bytes=0-3",
        "bytes=2-",
        "bytes=-2",
        "bytes=-0",
        "bytes=0-",
        "bytes=1-1,3-3",
        "bytes=0-1,1-2",
        "bytes=9-2",
        "bytes=99999-",
        "bytes=-99999",
        "bytes=a-b",
        "x=0-1",
        "bytes=0-1,",
        "bytes= 0-1",
        "bytes=0-0, -1",
        "bytes=3-4,0-1",
        "bytes=100-200,4-5,-300",
        "BYTES=0-1",
        "bytes=0-1,99999-",
        "bytes=0-18446744073709551616",
        "bytes=",
        "bytes=5-,0-",
    ])
}

fn login(choice: &mut Choice) -> String {
    // alice:test, bob:test, alice:wrong, carol:test, and unparsable values.
    choice.word(&[
        "Basic YWxpY2U6dGVzdA==",
        "Basic YWxpY2U6dGVzdA==",
        "Basic Ym9iOnRlc3Q=",
        "Basic YWxpY2U6d3Jvbmc=",
        "Basic Y2Fyb2w6dGVzdA==",
        "Basic YWxpY2U=",
        "Basic",
        "Basic !!",
        "basic YWxpY2U6dGVzdA==",
        "Digest username=\"alice\"",
        "Bearer x",
        "Basic  YWxpY2U6dGVzdA==",
    ])
}

fn agent(choice: &mut Choice) -> String {
    if choice.random.percent(15) {
        let count = 100 + choice.random.below(3000);
        return "x".repeat(count) + choice.one(&["", "Bad", "evil"]);
    }
    choice.word(&["Mozilla/5.0", "Bad", "BadBot/1.0", "evil", "curl/8", "MSIE", "a b\tc"])
}

fn forwarded(choice: &mut Choice) -> String {
    choice.word(&[
        "8.8.8.8",
        "10.0.0.1",
        "1.1.1.1, 9.9.9.9",
        "10.0.0.1, 9.9.9.9, 10.1.0.1",
        "2001:db8::1",
        "127.0.0.5",
        "9.9.9.9,",
        "",
    ])
}

fn cookies(choice: &mut Choice) -> String {
    choice.word(&[
        "a=1",
        "evil",
        "a=1; b=2",
        "Apache=1.2",
        "x=1; Apache=1.2; Track=y",
        "xApache=1",
        "Track=",
        "b.c=7;a=8",
    ])
}

/// The Last-Modified time of files without an explicit time.
const TIME: &str = "Sat, 01 Jan 2022 00:00:00 GMT";
