//! WebSockets on streams of HTTP/2: servers that decline, and ends that say nothing any more.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use crate::http2::{DATA, Frame, GET, HEADERS, Http2, RST_STREAM, SETTINGS, frame, literal};
use crate::site::Site;

const SWITCHING: &str =
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/// A setting: the initial window of streams is 0.
const NO_WINDOW: &[u8] = &[0, 4, 0, 0, 0, 0];

/// A server that does what the path of a request says.
fn backend() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.unwrap();
            std::thread::spawn(move || serve(socket));
        }
    });
    port
}

fn serve(mut socket: TcpStream) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        if socket.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap();
    let mut say = |text: &str| socket.write_all(text.as_bytes());
    match path {
        b"/missing" => say("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone").unwrap(),
        b"/plain" => say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nplain").unwrap(),
        b"/ends" => say(&format!("{SWITCHING}bye")).unwrap(),
        b"/floods" => {
            say(SWITCHING).unwrap();
            while socket.write_all(&[b'x'; 4096]).is_ok() {}
        }
        _ => {
            say(SWITCHING).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                socket.write_all(&buffer[..count]).unwrap();
            }
        }
    }
}

fn site(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    let port = backend();
    site.configure(&format!(
        "Protocols h2c http/1.1\nH2WebSockets on\n{more}\n\
         ProxyPass /ws/ ws://127.0.0.1:{port}/\n\
         ProxyPass /http/ http://127.0.0.1:{port}/ upgrade=websocket\n\
         LogFormat \"%U %>s\" short\nCustomLog logs/access.log short\n"
    ));
    site.start();
    site
}

fn connect(path: &str) -> Vec<u8> {
    let mut block = literal(":method", "CONNECT");
    block.extend(literal(":protocol", "websocket"));
    block.extend(b"\x86");
    block.extend(literal(":path", path));
    block.extend(literal(":authority", "localhost"));
    frame(HEADERS, 4, 1, &block)
}

/// The frames of stream 1 until it has ended: the first byte of its head, its data, and the code
/// of the reset.
fn ended(http2: &mut Http2) -> (Option<u8>, Vec<u8>, Option<u32>) {
    let (mut head, mut data) = (None, Vec::new());
    while let Some(Frame { kind, flags, stream, payload }) = http2.frame() {
        match kind {
            HEADERS if stream == 1 => head = payload.first().copied(),
            DATA if stream == 1 => data.extend(payload),
            RST_STREAM if stream == 1 => {
                let code = u32::from_be_bytes(*payload.first_chunk().unwrap());
                return (head, data, Some(code));
            }
            SETTINGS if flags == 0 => http2.send(&frame(SETTINGS, 1, 0, &[])).unwrap(),
            _ => {}
        }
    }
    (head, data, None)
}

#[test]
fn mod_proxy_wstunnel_alone_serves_streams() {
    let site = site("h2-wstunnel", "ProxyWebsocketFallbackToProxyHttp Off");
    let mut http2 = Http2::connect(&site);
    http2.send(&connect("/ws/echo")).unwrap();
    http2.send(&frame(DATA, 1, 1, b"hello")).unwrap();
    let (mut head, mut data) = (None, Vec::new());
    while data.len() < 5 {
        let one = http2.frame().expect("the tunnel is open");
        match one.kind {
            HEADERS => head = one.payload.first().copied(),
            DATA => data.extend(one.payload),
            kind => assert_ne!(kind, RST_STREAM),
        }
    }
    assert_eq!((head, &data[..]), (Some(0x88), &b"hello"[..]));
    // Responses to the handshake that are none to a WebSocket.
    let mut http2 = Http2::connect(&site);
    http2.send(&connect("/ws/missing")).unwrap();
    assert_eq!(ended(&mut http2), (Some(0x8d), b"none".to_vec(), Some(0)));
    let mut http2 = Http2::connect(&site);
    http2.send(&connect("/ws/plain")).unwrap();
    let (head, data, _) = ended(&mut http2);
    assert_ne!(head, Some(0x88));
    assert!(String::from_utf8_lossy(&data).contains("502 Bad Gateway"));
    let log = || std::fs::read_to_string(site.path("logs/access.log")).unwrap_or_default();
    site.wait_until("the log", || log().lines().count() == 3);
    for line in ["/ws/echo 200", "/ws/missing 404", "/ws/plain 502"] {
        assert!(log().lines().any(|logged| logged == line), "{line}: {}", log());
    }
}

#[test]
fn a_client_that_stays_silent_after_the_end_is_left() {
    let site = site("h2-tunnel-end", "Timeout 1\nProxyWebsocketFallbackToProxyHttp Off");
    for path in ["/ws/ends", "/http/ends"] {
        let mut http2 = Http2::connect(&site);
        http2.send(&connect(path)).unwrap();
        assert_eq!(ended(&mut http2), (Some(0x88), b"bye".to_vec(), Some(0)), "{path}");
        http2.request(3, GET).unwrap();
        assert!(http2.is_answered(3));
    }
}

#[test]
fn a_client_without_a_window_is_left() {
    let site = site("h2-tunnel-window", "Timeout 1\nProxyWebsocketFallbackToProxyHttp Off");
    for path in ["/ws/floods", "/http/floods"] {
        let mut http2 = Http2::with_settings(&site, NO_WINDOW);
        http2.send(&connect(path)).unwrap();
        let (head, data, code) = ended(&mut http2);
        assert_eq!((head, data.len(), code), (Some(0x88), 0, Some(8)), "{path}");
    }
}

#[test]
fn silence_ends_a_tunnel_of_mod_proxy_http_only() {
    let site = site("h2-tunnel-silent", "Timeout 1\nProxyWebsocketFallbackToProxyHttp Off");
    let mut silent = Http2::connect(&site);
    silent.send(&connect("/ws/echo")).unwrap();
    let began = Instant::now();
    let mut http2 = Http2::connect(&site);
    http2.send(&connect("/http/echo")).unwrap();
    assert_eq!(ended(&mut http2), (Some(0x88), Vec::new(), Some(0)));
    assert!(began.elapsed() >= Duration::from_millis(900));
    std::thread::sleep(Duration::from_secs(1));
    silent.send(&frame(DATA, 0, 1, b"still here")).unwrap();
    let answer = std::iter::from_fn(|| silent.frame()).find(|one| one.kind == DATA);
    assert_eq!(answer.unwrap().payload, b"still here");
}
