//! H2StreamTimeout: how long a request waits for its client, in both directions.

use std::fs;
use std::time::{Duration, Instant};

use crate::http2::{
    DATA, Frame, GET, GET_BIG, HEADERS, Http2, RST_STREAM, WINDOW_UPDATE, frame, literal,
};
use crate::programs;
use crate::site::Site;

/// `H2StreamTimeout`
const PATIENCE: Duration = Duration::from_secs(2);

/// A timeout of streams that is shorter than those of connections.
fn site(name: &str) -> Site {
    let site = programs::site(
        name,
        "event",
        "LoadModule http2_module modules/mod_http2.so\nProtocols h2c http/1.1\nTimeout 60\n\
         KeepAliveTimeout 60\nH2StreamTimeout 2\nLogFormat \"%r %>s %X\" short\n\
         CustomLog logs/access.log short\n",
    );
    let count = "#!/bin/sh\ncount=$(wc -c)\nprintf 'Status: 200\\n\\n%s' $count\n";
    programs::program(&site, "count", count);
    programs::program(&site, "slow", "#!/bin/sh\nsleep 3\nprintf 'Status: 200\\n\\nslow'\n");
    let endless = "#!/bin/sh\nprintf 'Status: 200\\n\\n'\nhead -c 3000000 /dev/zero\n";
    programs::program(&site, "endless", endless);
    site.write("htdocs/big", &"x".repeat(300_000));
    site
}

fn log(site: &Site) -> String {
    fs::read_to_string(site.path("logs/access.log")).unwrap_or_default()
}

fn head(method: u8, path: &str) -> Vec<u8> {
    [&[method, 0x86][..], b"\x01\x09localhost", &literal(":path", path)].concat()
}

const OF_GET: u8 = 0x82;
const OF_POST: u8 = 0x83;

/// The stream's next frame of this kind.
fn next(http2: &mut Http2, stream: u32, kind: u8) -> Frame {
    let is_it = |frame: &Frame| frame.stream == stream && frame.kind == kind;
    std::iter::from_fn(|| http2.frame()).find(is_it).unwrap()
}

#[test]
fn a_body_that_does_not_come_is_a_timeout() {
    let site = site("h2-timeout-body");
    let mut http2 = Http2::connect(&site);
    let began = Instant::now();
    http2.send(&frame(HEADERS, 4, 1, &head(OF_POST, "/cgi-bin/count"))).unwrap();
    http2.send(&frame(DATA, 0, 1, b"abc")).unwrap();
    // A literal status, with the indexed name.
    assert_eq!(next(&mut http2, 1, HEADERS).payload.get(..5), Some(&b"\x48\x03408"[..]));
    assert!(began.elapsed() >= PATIENCE);
    // Without an error, once the response is complete.
    assert_eq!(next(&mut http2, 1, RST_STREAM).payload, [0; 4]);
    http2.request(3, GET).unwrap();
    assert!(http2.is_answered(3), "the connection has ended");
    site.wait_until("the log", || log(&site).contains("POST /cgi-bin/count HTTP/2.0 408 "));
}

#[test]
fn a_body_that_comes_slowly_and_a_slow_program_are_none() {
    let site = site("h2-timeout-slow");
    let mut http2 = Http2::connect(&site);
    http2.send(&frame(HEADERS, 4, 1, &head(OF_POST, "/cgi-bin/count"))).unwrap();
    http2.request(3, &head(OF_GET, "/cgi-bin/slow")).unwrap();
    for _ in 0..4 {
        http2.send(&frame(DATA, 0, 1, b"a")).unwrap();
        std::thread::sleep(Duration::from_millis(700));
    }
    http2.send(&frame(DATA, 1, 1, b"a")).unwrap();
    let mut open = vec![1, 3];
    let mut bodies = [Vec::new(), Vec::new()];
    while !open.is_empty() {
        let one = http2.frame().unwrap();
        assert_ne!(one.kind, RST_STREAM);
        if one.kind == DATA {
            bodies[one.stream as usize / 2].extend(one.payload);
            if one.flags & 1 == 1 {
                open.retain(|stream| *stream != one.stream);
            }
        }
    }
    assert_eq!(
        bodies.map(|body| String::from_utf8(body).unwrap().trim().to_owned()),
        ["5", "slow"]
    );
}

#[test]
fn a_response_that_is_not_taken_is_reset() {
    let site = site("h2-timeout-response");
    // No window for data at all.
    let mut http2 = Http2::with_settings(&site, &[0, 4, 0, 0, 0, 0]);
    let began = Instant::now();
    http2.request(1, GET_BIG).unwrap();
    http2.request(3, &head(OF_GET, "/cgi-bin/endless")).unwrap();
    for _ in 0..2 {
        let is_reset = |frame: &Frame| frame.kind == RST_STREAM;
        let reset = std::iter::from_fn(|| http2.frame()).find(is_reset).unwrap();
        assert_eq!(reset.payload, [0, 0, 0, 2]);
        assert!(began.elapsed() >= PATIENCE);
    }
    http2.request(5, GET).unwrap();
    http2.send(&frame(WINDOW_UPDATE, 0, 5, &[0, 1, 0, 0])).unwrap();
    assert!(http2.is_answered(5), "the connection has ended");
    for line in ["GET /big HTTP/2.0 200 X\n", "GET /cgi-bin/endless HTTP/2.0 200 X\n"] {
        site.wait_until("the log", || log(&site).contains(line));
    }
}

#[test]
fn a_response_that_is_taken_slowly_is_complete() {
    let site = site("h2-timeout-taken");
    let mut http2 = Http2::with_settings(&site, &[0, 4, 0, 0, 0, 0]);
    http2.request(1, GET_BIG).unwrap();
    let mut left = 300_000;
    // Longer than a stream waits, in all.
    for piece in [60_000u32; 5] {
        std::thread::sleep(Duration::from_millis(700));
        for stream in [0, 1] {
            http2.send(&frame(WINDOW_UPDATE, 0, stream, &piece.to_be_bytes())).unwrap();
        }
        left -= piece;
        let mut came = 0;
        while came < piece {
            let data = next(&mut http2, 1, DATA);
            came += data.payload.len() as u32;
            assert_eq!(data.flags & 1 == 1, left == 0 && came == piece);
        }
    }
}
