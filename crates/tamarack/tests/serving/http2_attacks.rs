//! HTTP/2: attacks that need more than a flood of one kind of frame. docs/http2-attacks.md lists
//! all of them.

use std::time::{Duration, Instant};

use crate::http2::{
    CONNECTION_KB, DATA, Frame, GET, GOAWAY, HEADERS, Http2, PING, PROTOCOLS, RST_STREAM, SETTINGS,
    attack, frame, literal, open_windows, site,
};
use crate::memory::Memory;
use crate::site::Site;

const PUSH_PROMISE: u8 = 5;

/// PRIORITY_UPDATE (RFC 9218).
const PRIORITY_UPDATE: u8 = 16;

#[test]
fn frames_of_unknown_kinds_and_priorities_end_the_connection() {
    let mut site = site("h2-unknown");
    let memory = Memory::of(&site);
    let floods: [(u8, &[u8]); 3] =
        [(200, &[]), (200, &[0; 16_000]), (PRIORITY_UPDATE, b"\0\0\x7f\x01u=1")];
    for (kind, payload) in floods {
        let mut http2 = Http2::connect(&site);
        attack(&mut http2, 20_000, |_| frame(kind, 0, 0, payload));
    }
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn settings_have_a_limit() {
    let site = site("h2-entries");
    let mut http2 = Http2::connect(&site);
    // An initial window for a hundred streams, 2,730 times in a frame.
    let entries = [0, 4, 0, 0, 1, 0].repeat(2730);
    http2.send(&frame(SETTINGS, 0, 0, &entries)).unwrap();
    assert_eq!(http2.goaway(), Some(11));
}

#[test]
fn requests_beyond_the_limit_end_the_connection() {
    let mut site = Site::new("h2-refused");
    site.configure(&format!("{PROTOCOLS}H2MaxSessionStreams 10\n"));
    site.start();
    let mut http2 = Http2::connect(&site);
    // None of their bodies ends, so that all keep their place.
    let begun = attack(&mut http2, 20_000, |count| frame(HEADERS, 4, count * 2 + 1, GET));
    assert!(begun <= 10 + 320, "{begun} requests");
    site.assert_serves();
}

#[test]
fn acknowledgements_that_no_client_reads_are_bounded() {
    let mut site = site("h2-unread");
    let memory = Memory::of(&site);
    let mut clients: Vec<_> = (0..20).map(|_| Http2::connect(&site)).collect();
    for http2 in &mut clients {
        let pings = frame(PING, 0, 0, &[0; 8]).repeat(1000);
        for _ in 0..200 {
            if http2.send(&pings).is_err() {
                break;
            }
        }
    }
    memory.assert_peak_below(&site, 20 * 1024);
    site.assert_serves();
}

#[test]
fn a_window_of_one_byte_makes_no_flood_of_frames() {
    let mut site = site("h2-dribble");
    let memory = Memory::of(&site);
    let mut http2 = Http2::with_settings(&site, &[0, 4, 0, 0, 0, 1]);
    for stream in 0..100 {
        http2.request(stream * 2 + 1, GET).unwrap();
    }
    // A byte for each frame that the client sends.
    attack(&mut http2, 100_000, |count| frame(8, 0, count % 100 * 2 + 1, &1_u32.to_be_bytes()));
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

/// The codes with which a connection, or the first stream, ends.
fn ends_with(site: &Site, sent: &[u8]) -> Option<u32> {
    let mut http2 = Http2::connect(site);
    http2.send(sent).unwrap();
    loop {
        let Frame { kind, payload, .. } = http2.frame()?;
        match kind {
            RST_STREAM => return payload.first_chunk().map(|code| u32::from_be_bytes(*code)),
            GOAWAY => return payload[4..].first_chunk().map(|code| u32::from_be_bytes(*code)),
            HEADERS => return None,
            _ => {}
        }
    }
}

#[test]
fn no_backend_sees_what_it_could_take_for_two_requests() {
    let site = site("h2-smuggling");
    let literals: [(&str, &str); 11] = [
        ("transfer-encoding", "chunked"),
        ("connection", "close"),
        ("te", "chunked"),
        ("content-length", "1"),
        ("x", "a\r\nContent-Length: 10"),
        ("x\r\ny", "a"),
        ("x:y", "a"),
        ("x", "a\0b"),
        ("X", "a"),
        ("", "a"),
        (":path", "/other"),
    ];
    for (name, value) in literals {
        let block = [GET, &literal(name, value)].concat();
        let ended = ends_with(&site, &frame(HEADERS, 5, 1, &block));
        assert_eq!(ended, Some(1), "{name:?}: {value:?}");
    }
    let lines: [&[(&str, &str)]; 5] = [
        &[(":method", "GET /x HTTP/1.1\r\nHost: a"), (":path", "/")],
        &[(":method", "GET"), (":path", "/ HTTP/1.1\r\nX: y")],
        &[(":method", "GET"), (":path", "x")],
        &[(":method", "GET"), (":path", "")],
        &[(":method", "GET"), (":path", "/ /")],
    ];
    for fields in lines {
        let mut block = b"\x86\x01\x09localhost".to_vec();
        for (name, value) in fields {
            block.extend(literal(name, value));
        }
        assert_eq!(ends_with(&site, &frame(HEADERS, 5, 1, &block)), Some(1), "{fields:?}");
    }
    // A body that is longer, or shorter, than announced.
    for body in ["ab", ""] {
        let block = [&b"\x83"[..], &GET[1..], &literal("content-length", "1")].concat();
        let sent = [frame(HEADERS, 4, 1, &block), frame(DATA, 1, 1, body.as_bytes())].concat();
        assert_eq!(ends_with(&site, &sent), Some(1), "{body:?}");
    }
}

#[test]
fn clients_that_stop_in_the_middle_lose_their_connection() {
    let mut site = Site::new("h2-silent");
    site.configure(&format!("{PROTOCOLS}Timeout 1\nKeepAliveTimeout 1\n"));
    site.start();
    // Nothing after the preface, a head that does not end, and a frame that does not.
    for sent in [vec![], frame(HEADERS, 0, 1, GET), frame(PING, 0, 0, &[0; 8])[..12].to_vec()] {
        let mut http2 = Http2::connect(&site);
        http2.send(&sent).unwrap();
        let begin = Instant::now();
        while http2.frame().is_some() {}
        assert!(begin.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn pushes_that_are_cancelled_at_once_end_the_connection() {
    let mut site = Site::new("h2-cancel");
    let links: Vec<_> = (0..50).map(|n| format!("</p{n}.html>; rel=preload")).collect();
    site.configure(&format!(
        "{PROTOCOLS}H2PushDiarySize 0\n<Location /index.html>\n  Header add Link \"{}\"\n\
         </Location>\n",
        links.join(", ")
    ));
    site.start();
    let block = [&GET[..2], b"\x04\x0b/index.html\x01\x09localhost"].concat();
    let attack = || {
        let mut http2 = open_windows(&site);
        let mut count = 0;
        while count < 500 && cancel_all(&mut http2, count * 2 + 1, &block).is_some() {
            count += 1;
        }
        assert!((10..500).contains(&count), "{count} requests");
    };
    // What serving takes up the first time is no part of it.
    attack();
    let memory = Memory::of(&site);
    attack();
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

/// Requests a page, and resets what it pushes; `None` once the connection has ended.
fn cancel_all(http2: &mut Http2, stream: u32, block: &[u8]) -> Option<()> {
    http2.request(stream, block).ok()?;
    let mut promised = Vec::new();
    loop {
        let frame = http2.frame()?;
        if frame.kind == PUSH_PROMISE {
            promised.push(u32::from_be_bytes(*frame.payload.first_chunk().unwrap()));
        }
        if frame.stream == stream && frame.kind == DATA && frame.flags & 1 != 0 {
            break;
        }
    }
    for id in promised {
        http2.send(&frame(RST_STREAM, 0, id, &8_u32.to_be_bytes())).ok()?;
    }
    Some(())
}
