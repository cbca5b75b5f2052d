//! Bodies of requests over HTTP/2: those that no handler reads, and what a connection may hold.

use std::time::Duration;

use crate::http2::{
    self, CONNECTION_KB, DATA, GET, HEADERS, Http2, POST, PROTOCOLS, RST_STREAM, frame, literal,
};
use crate::memory::Memory;
use crate::programs;
use crate::site::Site;

fn post(path: &str) -> Vec<u8> {
    [&b"\x83\x86\x01\x09localhost"[..], &literal(":path", path)].concat()
}

/// The kinds and first bytes of a stream's frames, without its data, until it is reset.
fn kinds(http2: &mut Http2, stream: u32) -> Vec<(u8, Option<u8>)> {
    let mut kinds = Vec::new();
    while let Some(one) = http2.frame() {
        if one.stream == stream && one.kind != DATA {
            kinds.push((one.kind, one.payload.first().copied()));
        }
        if one.stream == stream && one.kind == RST_STREAM {
            break;
        }
    }
    kinds
}

#[test]
fn a_response_does_not_wait_for_an_unread_body() {
    let mut site = Site::new("h2-unread");
    site.configure(&format!("{PROTOCOLS}LimitRequestBody 10\n"));
    site.start();
    let expect = literal("expect", "100-continue");
    let length = literal("content-length", "100");
    let missing = post("/missing");
    // The last one is beyond the limit.
    let cases = [
        (POST.to_vec(), 0x88),
        ([POST, &expect].concat(), 0x88),
        (missing.clone(), 0x8d),
        ([missing, expect].concat(), 0x8d),
        ([POST, &length].concat(), 0x88),
    ];
    for (block, status) in cases {
        let mut http2 = Http2::connect(&site);
        http2.send(&frame(HEADERS, 4, 1, &block)).unwrap();
        let expected = [(HEADERS, Some(status)), (RST_STREAM, Some(0))];
        assert_eq!(kinds(&mut http2, 1), expected);
    }
}

#[test]
fn trailers_of_many_requests_are_bounded() {
    let mut site = http2::site("h2-trailer-bomb");
    let memory = Memory::of(&site);
    let mut http2 = Http2::connect(&site);
    let block = post("/mirror");
    let begun: Vec<u8> =
        (0..100).flat_map(|number| frame(HEADERS, 4, number * 2 + 1, &block)).collect();
    http2.send(&begun).unwrap();
    // A field of 3,900 bytes, and references to it.
    let mut trailers = b"\x40\x01x\x7f\xbd\x1d".to_vec();
    trailers.extend([b'y'; 3900]);
    for number in 0..100 {
        trailers.extend([0xbe; 60]);
        if http2.send(&frame(HEADERS, 5, number * 2 + 1, &trailers)).is_err() {
            break;
        }
        trailers.clear();
    }
    let _ = http2.send(&frame(HEADERS, 5, 301, GET));
    http2.is_answered(301);
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn an_upload_has_time_once_there_is_room_for_it() {
    let site = programs::site(
        "h2-room",
        "event",
        "LoadModule http2_module modules/mod_http2.so\nProtocols h2c http/1.1\n\
         Timeout 60\nH2StreamTimeout 2\nH2WindowSize 1048576\n",
    );
    let late = "#!/bin/sh\nsleep 4\nwc -c >/dev/null\nprintf 'Status: 200\\n\\nlate'\n";
    programs::program(&site, "late", late);
    let count = "#!/bin/sh\ncount=$(wc -c)\nprintf 'Status: 200\\n\\n%s' $count\n";
    programs::program(&site, "count", count);
    let mut http2 = Http2::connect(&site);
    http2.send(&frame(HEADERS, 4, 1, &post("/cgi-bin/late"))).unwrap();
    // What the program's pipe takes is granted again; then the connection's window is full.
    let mut window: u32 = 1024 * 1024;
    let send = |http2: &mut Http2, bytes: u32| {
        let mut left = bytes;
        while left > 0 {
            let piece = left.min(16 * 1024);
            http2.send(&frame(DATA, 0, 1, &vec![b'x'; piece as usize])).unwrap();
            left -= piece;
        }
    };
    send(&mut http2, std::mem::take(&mut window));
    http2.send(&frame(HEADERS, 4, 3, &post("/cgi-bin/count"))).unwrap();
    // Longer than a stream waits for its client.
    std::thread::sleep(Duration::from_millis(3000));
    let (mut has_sent, mut answer, mut status) = (false, Vec::new(), None);
    while let Some(one) = http2.frame() {
        if one.kind == http2::WINDOW_UPDATE && one.stream == 0 && !has_sent {
            window += u32::from_be_bytes(*one.payload.first_chunk().unwrap());
            // The first grant is that of the beginning.
            if window >= 1024 * 1024 {
                http2.send(&frame(DATA, 1, 3, b"hello")).unwrap();
                http2.send(&frame(DATA, 1, 1, b"")).unwrap();
                has_sent = true;
            }
        }
        if one.stream == 3 && one.kind == HEADERS {
            status = one.payload.first().copied();
        }
        if one.stream == 3 && one.kind == DATA {
            answer.extend(one.payload);
        }
        if one.stream == 3 && (one.flags & 1 == 1 || one.kind == RST_STREAM) {
            break;
        }
    }
    assert_eq!((status, String::from_utf8_lossy(&answer).trim()), (Some(0x88), "5"));
}

#[test]
fn a_forward_proxy_serves_streams() {
    let more = |on: &str| {
        format!(
            "{PROTOCOLS}ProxyRequests On\nH2ProxyRequests {on}\n\
             LogFormat \"%r %I %{{H2_STREAM_TAG}}e\" short\nCustomLog logs/access.log short\n"
        )
    };
    let backend = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        for socket in backend.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfar").unwrap();
        }
    });
    let start = |on: &str| {
        let mut site = Site::new("h2-forward");
        site.configure(&more(on));
        site.start();
        site
    };
    let site = start("on");
    let authority = format!("127.0.0.1:{port}");
    let block = [&b"\x82\x86\x84"[..], &literal(":authority", &authority)].concat();
    let is_far = |site: &Site| {
        let mut http2 = Http2::connect(site);
        http2.request(1, &block).unwrap();
        let body = std::iter::from_fn(|| http2.frame()).find(|one| one.kind == DATA);
        body.unwrap().payload == b"far"
    };
    assert!(is_far(&site));
    let log = || std::fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("the log", || log().ends_with('\n'));
    // Received are a frame's head and the block; the tag begins with the process.
    let line = format!("GET http://{authority}/ HTTP/2.0 {} ", 9 + block.len());
    let log = log();
    let tag = log.strip_prefix(&line).unwrap_or_else(|| panic!("{log}")).trim_end();
    let parts: Vec<_> = tag.split('-').collect();
    assert_eq!((parts.len(), parts[2]), (3, "1"), "{tag}");
    assert!(site.children().iter().any(|child| child.to_string() == parts[0]), "{tag}");
    assert!(!is_far(&start("off")));
}
