//! HTTP/2: attacks and restarts.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::client::PATIENCE;
use crate::memory::Memory;
use crate::site::Site;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// `GET / HTTP/2.0`: three indexed fields, and the host as a literal.
pub const GET: &[u8] = b"\x82\x86\x84\x01\x09localhost";

/// `POST / HTTP/2.0`
pub const POST: &[u8] = b"\x83\x86\x84\x01\x09localhost";

/// GET with the path `/big`.
pub const GET_BIG: &[u8] = b"\x82\x86\x04\x04/big\x01\x09localhost";

/// The protocols of an attacked site.
pub const PROTOCOLS: &str = "Protocols h2c http/1.1\n";

/// A connection's memory may grow by so much, KiB: the bound of its bodies, and two segments of the
/// allocator, which takes 4 MiB at a time.
pub const CONNECTION_KB: u64 = 9 * 1024;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;

pub struct Http2<S = TcpStream> {
    socket: S,
    received: Vec<u8>,
}

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

impl Http2 {
    pub fn connect(site: &Site) -> Http2 {
        Http2::with_settings(site, &[])
    }

    pub fn with_settings(site: &Site, settings: &[u8]) -> Http2 {
        let socket = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        Http2::over(socket, settings)
    }
}

impl<S: Read + Write> Http2<S> {
    pub fn over(socket: S, settings: &[u8]) -> Http2<S> {
        let mut http2 = Http2 { socket, received: Vec::new() };
        http2.send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat()).unwrap();
        http2
    }

    pub fn socket(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Asks for HTTP/2 by a request of HTTP/1.1. Returns the head of the response, and the
    /// connection if it has changed.
    pub fn upgrade(mut socket: S, head: &str) -> (String, Option<Http2<S>>) {
        socket.write_all(head.as_bytes()).unwrap();
        let mut received = Vec::new();
        let end = loop {
            if let Some(end) = received.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let mut more = [0; 4096];
            let count = socket.read(&mut more).unwrap();
            assert_ne!(count, 0, "{}", String::from_utf8_lossy(&received));
            received.extend_from_slice(&more[..count]);
        };
        let response = String::from_utf8_lossy(&received[..end]).into_owned();
        let has_changed = response.starts_with("HTTP/1.1 101 ");
        let http2 = has_changed.then(|| {
            let mut http2 = Http2::over(socket, &[]);
            http2.received = received.split_off(end);
            http2
        });
        (response, http2)
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.socket.write_all(bytes)
    }

    pub fn request(&mut self, stream: u32, block: &[u8]) -> io::Result<()> {
        self.send(&frame(HEADERS, 5, stream, block))
    }

    /// The next frame; `None` at the end.
    pub fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some([a, b, c, kind, flags, stream @ ..]) = self.received.first_chunk::<9>() {
                let (kind, flags, stream) = (*kind, *flags, u32::from_be_bytes(*stream));
                let end = 9 + u32::from_be_bytes([0, *a, *b, *c]) as usize;
                if self.received.len() >= end {
                    let payload = self.received[9..end].to_vec();
                    self.received.drain(..end);
                    return Some(Frame { kind, flags, stream, payload });
                }
            }
            let mut more = [0; 16 * 1024];
            match self.socket.read(&mut more) {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.received.extend(&more[..count]),
            }
        }
    }

    /// Reads until a stream's response is complete; returns whether it is one with status 200.
    pub fn is_answered(&mut self, stream: u32) -> bool {
        let mut is_good = false;
        while let Some(frame) = self.frame() {
            if frame.stream == stream && frame.kind == HEADERS {
                is_good = frame.payload.first() == Some(&0x88);
            }
            if frame.stream == stream && (frame.kind == RST_STREAM || frame.flags & 1 != 0) {
                return is_good && frame.kind != RST_STREAM;
            }
        }
        false
    }

    /// The code of the GOAWAY with which the connection ends.
    pub fn goaway(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(Frame { kind, payload, .. }) = self.frame() {
            if kind == GOAWAY {
                code = payload[4..].first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
            }
        }
        code
    }
}

pub fn site(name: &str) -> Site {
    let mut site = Site::new(name);
    let reads = "<Location /mirror>\nSetHandler reflector\n</Location>\n";
    site.configure(&format!("{PROTOCOLS}{reads}"));
    site.write("htdocs/big", &"0123456789".repeat(10_000));
    site.start();
    // The program's pages and the caches are in memory once it has served for a while.
    for _ in 0..40 {
        let mut http2 = Http2::connect(&site);
        for stream in (1..80).step_by(2) {
            http2.request(stream, if stream % 4 == 1 { GET } else { GET_BIG }).unwrap();
        }
        http2.send(&frame(RST_STREAM, 0, 3, &[0; 4])).unwrap();
        http2.send(&frame(PING, 0, 0, &[0; 8])).unwrap();
        assert!(http2.is_answered(1));
        drop(http2);
        let mut http2 = Http2::connect(&site);
        http2.send(&frame(DATA, 0, 0, &[])).unwrap();
        http2.goaway();
    }
    site
}

/// Repeats a step until the server no longer takes it, at most `limit` times. Returns the number of
/// streams that the server has begun to serve, by its GOAWAY.
pub(crate) fn attack(http2: &mut Http2, limit: u32, mut step: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for count in 0..limit {
        if http2.send(&step(count)).is_err() {
            break;
        }
    }
    let mut last = u32::MAX;
    while let Some(Frame { kind, payload, .. }) = http2.frame() {
        if kind == GOAWAY {
            last = u32::from_be_bytes(*payload.first_chunk().unwrap());
            assert_eq!(payload[4..8], 11u32.to_be_bytes(), "ENHANCE_YOUR_CALM");
        }
    }
    last.div_ceil(2)
}

#[test]
fn requests_that_are_reset_at_once_end_the_connection() {
    let mut site = site("h2-reset");
    let memory = Memory::of(&site);
    let provoke = |stream| frame(WINDOW_UPDATE, 0, stream, &0x7fff_ffffu32.to_be_bytes());
    let reset = |stream| frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
    let kinds: [&dyn Fn(u32) -> Vec<u8>; 2] = [&reset, &provoke];
    for (second, flags) in kinds.into_iter().zip([5, 4]) {
        let mut http2 = Http2::connect(&site);
        let begun = attack(&mut http2, 30_000, |count| {
            let stream = count * 2 + 1;
            [frame(HEADERS, flags, stream, GET), second(stream)].concat()
        });
        assert!(begun <= 320, "{begun} requests");
    }
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn heads_without_end_are_refused() {
    let mut site = site("h2-continued");
    let memory = Memory::of(&site);
    for (payload, limit) in [(vec![], 200_000), (vec![0; 16 * 1024], 2_000)] {
        let mut http2 = Http2::connect(&site);
        let _ = http2.send(&frame(HEADERS, 0, 1, GET));
        let _ = attack(&mut http2, limit, |_| frame(CONTINUATION, 0, 1, &payload));
    }
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn a_small_head_that_expands_is_refused() {
    let mut site = site("h2-bomb");
    let memory = Memory::of(&site);
    for name in [&b"cookie"[..], b"other"] {
        let mut http2 = Http2::connect(&site);
        let mut block = [GET, &[0x40, name.len() as u8], name, &[0x7f, 0xa1, 0x1e]].concat();
        block.extend([b'x'; 4000]);
        http2.send(&frame(HEADERS, 5, 1, &block)).unwrap();
        for stream in 1..100 {
            let block = [GET, &vec![0xbe; 15_000]].concat();
            if http2.send(&frame(HEADERS, 4, stream * 2 + 1, &block)).is_err() {
                break;
            }
        }
        assert!(matches!(http2.goaway(), Some(11) | None));
    }
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn responses_that_no_client_takes_are_not_made() {
    let mut site = site("h2-window");
    let memory = Memory::of(&site);
    // The initial window is 0.
    let mut clients: Vec<_> =
        (0..20).map(|_| Http2::with_settings(&site, &[0, 4, 0, 0, 0, 0])).collect();
    for http2 in &mut clients {
        for stream in 0..100 {
            http2.request(stream * 2 + 1, GET_BIG).unwrap();
        }
    }
    site.assert_serves();
    memory.assert_peak_below(&site, 20 * 1024);
    // They get them once they ask for them.
    for http2 in &mut clients[..2] {
        http2.send(&frame(WINDOW_UPDATE, 0, 1, &200_000u32.to_be_bytes())).unwrap();
        http2.send(&frame(WINDOW_UPDATE, 0, 0, &200_000u32.to_be_bytes())).unwrap();
        assert!(http2.is_answered(1));
    }
}

#[test]
fn trailer_fields_that_come_early_are_logged() {
    let mut site = Site::new("h2-trailers");
    site.configure(&format!(
        "{PROTOCOLS}CustomLog logs/trailers \"%{{X-T}}^ti.\"\n\
         <Location />\nSetHandler reflector\n</Location>\n"
    ));
    site.start();
    let mut http2 = Http2::connect(&site);
    // All of it at once: the request begins when its trailers are there.
    let request = [
        frame(HEADERS, 4, 1, POST),
        frame(DATA, 0, 1, b"body"),
        frame(HEADERS, 5, 1, b"\x00\x03x-t\x05value"),
    ];
    http2.send(&request.concat()).unwrap();
    assert!(http2.is_answered(1));
    let log = || std::fs::read_to_string(site.path("logs/trailers")).unwrap_or_default();
    site.wait_until("the log", || log().ends_with('\n'));
    assert_eq!(log(), "value.\n");
}

/// Large windows for all streams and the connection.
pub(crate) fn open_windows(site: &Site) -> Http2 {
    let mut http2 = Http2::with_settings(site, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    http2.send(&frame(WINDOW_UPDATE, 0, 0, &0x7fff_0000u32.to_be_bytes())).unwrap();
    http2
}

#[test]
fn clients_that_stop_reading_at_the_end_hold_up_no_others() {
    let mut site = Site::new("h2-stalled");
    site.configure(&format!("{PROTOCOLS}KeepAliveTimeout 1\nTimeout 60\n"));
    site.write("htdocs/big", &"0123456789".repeat(3_000));
    site.start();
    // What the kernel buffers is unknown: the output of some ends just beyond it.
    let mut clients: Vec<_> = (0..100).map(|_| open_windows(&site)).collect();
    for (count, http2) in (10..).step_by(2).zip(&mut clients) {
        for stream in 0..count {
            http2.request(stream * 2 + 1, GET_BIG).unwrap();
        }
    }
    let end = Instant::now() + Duration::from_secs(4);
    while Instant::now() < end {
        site.assert_serves();
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_large_response_leaves_room_for_others() {
    let mut site = Site::new("h2-share");
    site.configure(&format!("{PROTOCOLS}Timeout 60\n"));
    site.write("htdocs/big", &"0123456789".repeat(10_000_000));
    site.start();
    let mut http2 = open_windows(&site);
    http2.request(1, GET_BIG).unwrap();
    // The large one is on its way.
    while http2.frame().unwrap().kind != DATA {}
    http2.request(3, GET).unwrap();
    let mut bytes = 0;
    loop {
        let frame = http2.frame().unwrap();
        match frame.stream {
            3 => break,
            _ => bytes += frame.payload.len(),
        }
        assert!(bytes < 50_000_000, "the other waits for the end");
    }
}

#[test]
fn frames_without_use_end_the_connection() {
    let mut site = site("h2-flood");
    let memory = Memory::of(&site);
    let settings = [0, 3, 0, 0, 0, 1].repeat(30);
    let floods: [(u8, u32, &[u8]); 5] = [
        (PING, 0, &[0; 8]),
        (SETTINGS, 0, &settings),
        (2, 1, &[0; 5]),
        (WINDOW_UPDATE, 0, &[0, 0, 0, 1]),
        (DATA, 1, &[]),
    ];
    for (kind, stream, payload) in floods {
        let mut http2 = Http2::connect(&site);
        // A request whose body does not end.
        http2.send(&frame(HEADERS, 4, 1, GET)).unwrap();
        attack(&mut http2, 100_000, |_| frame(kind, 0, stream, payload));
    }
    memory.assert_peak_below(&site, 2 * CONNECTION_KB);
    site.assert_serves();
}

#[test]
fn many_requests_of_a_connection_are_answered_while_others_attack() {
    let site = site("h2-beside");
    let attackers: Vec<_> = (0..4)
        .map(|_| {
            let port = site.port;
            std::thread::spawn(move || {
                let end = Instant::now() + Duration::from_secs(1);
                while Instant::now() < end {
                    let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) else { return };
                    let _ = socket.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
                    for stream in (1..1000).step_by(2) {
                        let reset = frame(RST_STREAM, 0, stream, &8u32.to_be_bytes());
                        let pair = [frame(HEADERS, 5, stream, GET), reset].concat();
                        if socket.write_all(&pair).is_err() {
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    let mut http2 = Http2::connect(&site);
    for round in 0..20 {
        let streams: Vec<u32> = (0..50).map(|number| (round * 50 + number) * 2 + 1).collect();
        for stream in &streams {
            http2.request(*stream, GET).unwrap();
        }
        // They are answered in their order.
        assert!(http2.is_answered(*streams.last().unwrap()));
    }
    for attacker in attackers {
        attacker.join().unwrap();
    }
}

/// Requests one after the other on connections of its own, until told to end. Returns how many were
/// answered, and how many were lost.
fn requests_until(site_port: u16, end: Instant) -> (u32, u32) {
    let (mut answered, mut lost) = (0, 0);
    while Instant::now() < end {
        let Ok(socket) = TcpStream::connect(("127.0.0.1", site_port)) else {
            lost += 1;
            continue;
        };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut http2 = Http2 { socket, received: Vec::new() };
        if http2.send(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).is_err() {
            continue;
        }
        let mut next = 1;
        'connection: while Instant::now() < end {
            let mut open = Vec::new();
            for _ in 0..10 {
                if http2.request(next, GET).is_err() {
                    break 'connection;
                }
                open.push(next);
                next += 2;
            }
            while !open.is_empty() {
                let Some(frame) = http2.frame() else {
                    lost += open.len() as u32;
                    break 'connection;
                };
                if frame.kind == GOAWAY {
                    // Later ones were not served, and may be repeated.
                    let last = u32::from_be_bytes(*frame.payload.first_chunk().unwrap());
                    open.retain(|stream| *stream <= last);
                    next = if last < u32::MAX >> 1 { u32::MAX } else { next };
                } else if frame.kind != WINDOW_UPDATE && frame.flags & 1 != 0 && frame.stream > 0 {
                    open.retain(|stream| *stream != frame.stream);
                    answered += 1;
                }
            }
            if next == u32::MAX {
                break;
            }
        }
    }
    (answered, lost)
}

#[test]
fn no_request_is_lost_when_restarted() {
    let site = site("h2-restart");
    let end = Instant::now() + Duration::from_secs(4);
    let port = site.port;
    let clients: Vec<_> =
        (0..20).map(|_| std::thread::spawn(move || requests_until(port, end))).collect();
    while Instant::now() + Duration::from_millis(700) < end {
        std::thread::sleep(Duration::from_millis(300));
        site.restart_gracefully();
    }
    let mut all = (0, 0);
    for client in clients {
        let (answered, lost) = client.join().unwrap();
        all = (all.0 + answered, all.1 + lost);
    }
    assert!(all.0 > 100, "{all:?}");
    assert_eq!(all.1, 0, "{all:?}");
}

#[test]
fn prefork_declines_http_2() {
    let mut site = Site::new("h2-prefork");
    site.configure(&format!(
        "LoadModule mpm_prefork_module modules/mod_mpm_prefork.so\n\
         LoadModule authz_core_module modules/mod_authz_core.so\n\
         LoadModule dir_module modules/mod_dir.so\n\
         LoadModule http2_module modules/mod_http2.so\n{PROTOCOLS}"
    ));
    site.start();
    site.wait_for_line("AH10034");
    let mut client = site.client();
    client.send(PREFACE).unwrap();
    assert_eq!(client.answer().unwrap().status, 400);
    site.assert_serves();
}

/// A literal field, in no table.
pub fn literal(name: &str, value: &str) -> Vec<u8> {
    let mut bytes = vec![0, name.len() as u8];
    bytes.extend(name.as_bytes());
    bytes.push(value.len() as u8);
    bytes.extend(value.as_bytes());
    bytes
}

/// A server of WebSockets that repeats what it receives, in capitals.
fn shouting() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                if socket.read(&mut byte).unwrap() == 0 {
                    break;
                }
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let is_asked = head.starts_with("get /ws/chat http/1.1")
                && head.contains("\r\nupgrade: websocket\r\n")
                && head.contains("\r\nsec-websocket-key: ");
            let answer = match is_asked {
                true => {
                    "101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: x\r\nSec-WebSocket-Protocol: chat\r\n\r\n"
                }
                false => "200 OK\r\nContent-Length: 2\r\n\r\nno",
            };
            socket.write_all(format!("HTTP/1.1 {answer}").as_bytes()).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                let loud = buffer[..count].to_ascii_uppercase();
                socket.write_all(&loud).unwrap();
            }
        }
    });
    port
}

#[test]
fn websockets_pass_through_a_stream() {
    let mut site = Site::new("h2-websocket");
    let backend = shouting();
    site.configure(&format!(
        "{PROTOCOLS}H2WebSockets on\nProxyPass /ws/ ws://127.0.0.1:{backend}/ws/\n"
    ));
    site.start();
    let mut http2 = Http2::connect(&site);
    let offered = http2.frame().unwrap();
    assert_eq!(offered.kind, SETTINGS);
    assert!(offered.payload.as_chunks::<6>().0.contains(&[0, 8, 0, 0, 0, 1]));
    let ask = |path: &str, protocol: &str| {
        let mut block = literal(":method", "CONNECT");
        block.extend(literal(":protocol", protocol));
        block.extend(b"\x86");
        block.extend(literal(":path", path));
        block.extend(literal(":authority", "localhost"));
        block.extend(literal("sec-websocket-version", "13"));
        block
    };
    http2.send(&frame(HEADERS, 4, 1, &ask("/ws/chat", "websocket"))).unwrap();
    http2.send(&frame(DATA, 0, 1, b"hello ")).unwrap();
    let mut received = Vec::new();
    let mut has_head = false;
    while received.len() < 12 {
        let frame_in = http2.frame().expect("the tunnel is open");
        match frame_in.kind {
            HEADERS => {
                assert_eq!(frame_in.payload.first(), Some(&0x88), "200");
                has_head = true;
                http2.send(&frame(DATA, 0, 1, b"world!")).unwrap();
            }
            DATA => received.extend(frame_in.payload),
            kind => assert!(matches!(kind, SETTINGS | WINDOW_UPDATE), "frame {kind}"),
        }
    }
    assert!(has_head);
    assert_eq!(received, b"HELLO WORLD!");
    // Other streams of the connection go on, and the end of the client's is the server's.
    http2.request(3, GET).unwrap();
    assert!(http2.is_answered(3));
    http2.send(&frame(DATA, 1, 1, b"")).unwrap();
    assert!(
        std::iter::from_fn(|| http2.frame()).any(|last| last.stream == 1 && last.flags & 1 == 1)
    );
    // A backend that does not switch, and a protocol that is not served.
    for (stream, path, protocol) in [(5, "/ws/other", "websocket"), (7, "/ws/chat", "connect-udp")]
    {
        http2.send(&frame(HEADERS, 4, stream, &ask(path, protocol))).unwrap();
        let head = std::iter::from_fn(|| http2.frame())
            .find(|head| head.stream == stream && head.kind == HEADERS)
            .unwrap();
        assert_ne!(head.payload.first(), Some(&0x88), "{path}");
    }
}

#[test]
fn urgent_responses_overtake_others() {
    let mut site = Site::new("h2-priority");
    site.configure(&format!("{PROTOCOLS}Timeout 60\n"));
    site.write("htdocs/big", &"0123456789".repeat(2_000_000));
    site.start();
    let mut http2 = open_windows(&site);
    let with = |priority: &str| [GET_BIG, &literal("priority", priority)].concat();
    http2.request(1, &with("u=6")).unwrap();
    while http2.frame().unwrap().kind != DATA {}
    http2.request(3, &with("u=1")).unwrap();
    // By a frame, before the request comes.
    http2.send(&frame(16, 0, 0, b"\0\0\0\x05u=0")).unwrap();
    http2.request(5, &with("u=7")).unwrap();
    let mut ended = Vec::new();
    while ended.len() < 3 {
        let frame = http2.frame().unwrap();
        if frame.flags & 1 != 0 && frame.kind == DATA {
            ended.push(frame.stream);
        }
    }
    assert_eq!(ended, [5, 3, 1]);
    for wrong in [frame(16, 0, 1, b"\0\0\0\x05u=0"), frame(16, 0, 0, b"\0\0")] {
        let mut http2 = Http2::connect(&site);
        http2.send(&wrong).unwrap();
        assert!(matches!(http2.goaway(), Some(1 | 6)));
    }
}

#[test]
fn invalid_settings_change_no_protocol() {
    let mut site = Site::new("h2-settings");
    site.configure(PROTOCOLS);
    site.start();
    let ask = |settings: &str| {
        let mut client = site.client();
        let head = format!(
            "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, HTTP2-Settings\r\n\
             Upgrade: h2c\r\nHTTP2-Settings: {settings}\r\n\r\n"
        );
        client.send(head.as_bytes()).unwrap();
        client.answer().unwrap().status
    };
    assert_eq!(ask("AAMAAABkAAQAAP__"), 101);
    // No whole setting, no base64, and a window that is too large.
    for settings in ["AAMA", "a+b", "AAT_____"] {
        assert_eq!(ask(settings), 200, "{settings}");
    }
}

#[test]
fn an_end_needs_no_window() {
    let mut site = Site::new("h2-end");
    site.configure(PROTOCOLS);
    site.write("htdocs/exact", &"x".repeat(1000));
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in backend.incoming() {
            let mut socket = socket.unwrap();
            let _ = socket.read(&mut [0; 4096]);
            let body = "y".repeat(1000);
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n";
            socket.write_all(format!("{head}{body}\r\n").as_bytes()).unwrap();
            std::thread::sleep(Duration::from_millis(300));
            socket.write_all(b"0\r\n\r\n").unwrap();
        }
    });
    site.configure(&format!("{PROTOCOLS}ProxyPass /slow http://127.0.0.1:{port}/\n"));
    site.start();
    // The window is as large as the body.
    let mut http2 = Http2::with_settings(&site, &[0, 4, 0, 0, 3, 0xe8]);
    http2.request(1, &[&GET[..2], b"\x04\x06/exact\x01\x09localhost"].concat()).unwrap();
    assert!(http2.is_answered(1));
    http2.request(3, &[&GET[..2], b"\x04\x05/slow\x01\x09localhost"].concat()).unwrap();
    assert!(http2.is_answered(3));
}

#[test]
fn many_small_pieces_may_be_confirmed() {
    let mut site = Site::new("h2-pieces");
    let backend = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = backend.local_addr().unwrap().port();
    const PIECES: usize = 6000;
    std::thread::spawn(move || {
        for socket in backend.incoming() {
            let mut socket = socket.unwrap();
            socket.set_nodelay(true).unwrap();
            let _ = socket.read(&mut [0; 4096]);
            socket.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
            for _ in 0..PIECES {
                socket.write_all(b"5\r\nevent\r\n").unwrap();
                std::thread::sleep(Duration::from_micros(200));
            }
            socket.write_all(b"0\r\n\r\n").unwrap();
        }
    });
    site.configure(&format!("{PROTOCOLS}ProxyPass /events http://127.0.0.1:{port}/\n"));
    site.start();
    let mut http2 = Http2::connect(&site);
    http2.request(1, &[&GET[..2], b"\x04\x07/events\x01\x09localhost"].concat()).unwrap();
    let mut bytes = 0;
    loop {
        let part = http2.frame().expect("the connection is open");
        assert_ne!(part.kind, GOAWAY);
        if part.kind != DATA {
            continue;
        }
        bytes += part.payload.len();
        if part.flags & 1 != 0 {
            break;
        }
        let grant = (part.payload.len() as u32).max(1).to_be_bytes();
        let updates = [frame(WINDOW_UPDATE, 0, 1, &grant), frame(WINDOW_UPDATE, 0, 0, &grant)];
        http2.send(&updates.concat()).unwrap();
    }
    assert_eq!(bytes, PIECES * 5);
}

#[test]
fn expressions_know_the_protocol() {
    let mut site = Site::new("h2-expressions");
    site.configure(&format!(
        "{PROTOCOLS}<Location />\nRequire expr %{{HTTP2}} == 'on'\n</Location>\n"
    ));
    site.start();
    // Twice: the first response must not be that of the other protocol.
    for _ in 0..2 {
        let mut http2 = Http2::connect(&site);
        http2.request(1, GET).unwrap();
        assert!(http2.is_answered(1));
        assert_eq!(site.get("/").status, 403);
    }
}
