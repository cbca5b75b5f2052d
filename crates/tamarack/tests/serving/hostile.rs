//! Servers behind a proxy that send garbage, stop in the middle, say nothing, or never stop.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::client::PATIENCE;
use crate::memory::assert_each_peak_below;
use crate::shapes::start;
use crate::site::Site;

/// Bytes that a client takes of a response without an end.
const TAKEN: usize = 4_000_000;
/// The most memory of a process, KiB: one has some 23 MiB when it starts.
const PEAK_MAX_KB: u64 = 80 * 1024;

const SCHEMES: [&str; 4] = ["ajp", "fcgi", "scgi", "uwsgi"];
const WAYS: [Way; 6] =
    [Way::Garbage, Way::StopsInHead, Way::StopsInBody, Way::Silent, Way::EndlessHead, Way::Endless];

/// What a server does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Garbage,
    StopsInHead,
    StopsInBody,
    Silent,
    EndlessHead,
    Endless,
}

/// A packet from an AJP container.
fn ajp(content: &[u8]) -> Vec<u8> {
    [b"AB", &(content.len() as u16).to_be_bytes()[..], content].concat()
}

/// A record of a FastCGI server.
fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    let [high, low] = (content.len() as u16).to_be_bytes();
    [&[1, kind, 0, 1, high, low, 0, 0], content].concat()
}

/// The head of a response, a field of one, and a piece of a body.
fn pieces(scheme: &str) -> [Vec<u8>; 3] {
    let (head, field) = (b"Status: 200 OK\r\nContent-Type: a/b\r\n\r\n", b"Some: value\r\n");
    let body = [b'x'; 4000];
    match scheme {
        "ajp" => {
            let head = ajp(b"\x04\0\xc8\0\x02OK\0\0\0");
            let chunk = ajp(&[&b"\x03\x0f\xa0"[..], &body, b"\0"].concat());
            // A head cannot go on: it is one packet, and so there are many.
            [head.clone(), head, chunk]
        }
        "fcgi" => [record(6, head), record(6, field), record(6, &body)],
        "scgi" => [head.to_vec(), field.to_vec(), body.to_vec()],
        _ => {
            let line = b"HTTP/1.1 200 OK\r\nContent-Type: a/b\r\n\r\n";
            [line.to_vec(), field.to_vec(), body.to_vec()]
        }
    }
}

/// Plays its part on one connection.
fn play(mut stream: TcpStream, scheme: &str, way: Way) -> std::io::Result<()> {
    if stream.read(&mut [0; 16 * 1024])? == 0 {
        return Ok(());
    }
    let [head, field, body] = pieces(scheme);
    match way {
        Way::Garbage => stream.write_all(&[0x93; 5000]),
        Way::StopsInHead => stream.write_all(&head[..head.len() - 2]),
        Way::StopsInBody => stream.write_all(&[&head, &body[..100]].concat()),
        Way::Silent => stream.read(&mut [0; 16 * 1024]).map(drop),
        Way::EndlessHead => {
            if scheme == "uwsgi" {
                stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
            }
            loop {
                stream.write_all(&field)?;
            }
        }
        Way::Endless => {
            stream.write_all(&head)?;
            loop {
                stream.write_all(&body)?;
            }
        }
    }
}

/// Starts a server; returns its port.
fn start_server(scheme: &'static str, way: Way, open: &Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let open = open.clone();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            open.fetch_add(1, Ordering::SeqCst);
            let open = open.clone();
            thread::spawn(move || {
                // It ends when the proxy closes the connection.
                let _ = play(stream, scheme, way);
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    port
}

/// Sends a request; returns the status and up to [`TAKEN`] bytes.
fn ask(site: &Site, path: &str) -> (u16, usize) {
    let mut stream = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
    let (mut received, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    while received.len() < TAKEN {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => received.extend_from_slice(&piece[..count]),
            Err(error) => panic!("{path}: {error}"),
        }
    }
    let line = String::from_utf8_lossy(&received[..received.len().min(12)]).into_owned();
    let status = line.split(' ').nth(1).and_then(|word| word.parse().ok());
    (status.unwrap_or_else(|| panic!("{path}: {line}")), received.len())
}

#[test]
fn hostile_servers_do_no_harm() {
    for mpm in ["event", "prefork"] {
        let open = Arc::<AtomicUsize>::default();
        let mut more = String::from("LoadModule proxy_module modules/mod_proxy.so\n");
        for scheme in SCHEMES {
            more += &format!("LoadModule proxy_{scheme}_module modules/mod_proxy_{scheme}.so\n");
            for way in WAYS {
                let port = start_server(scheme, way, &open);
                let timeout = if way == Way::Silent { "timeout=1" } else { "" };
                more += &format!(
                    "ProxyPass /{scheme}/{way:?} {scheme}://127.0.0.1:{port}/ {timeout}\n"
                );
            }
        }
        let site = start("hostile", mpm, &(more + "LogLevel crit\n"));
        ask_all(&site);
        ask_all(&site);
        site.wait_until("no connection", || open.load(Ordering::SeqCst) == 0);
        assert_each_peak_below(&site, PEAK_MAX_KB);
        assert_eq!(site.get("/").status, 200);
    }
}

/// Asks each server, and judges the response.
fn ask_all(site: &Site) {
    thread::scope(|scope| {
        for scheme in SCHEMES {
            scope.spawn(move || WAYS.into_iter().for_each(|way| check(site, scheme, way)));
        }
    });
}

fn check(site: &Site, scheme: &str, way: Way) {
    let (status, length) = ask(site, &format!("/{scheme}/{way:?}"));
    println!("{scheme}, {way:?}: {status}, {length} bytes");
    match way {
        Way::Garbage | Way::StopsInHead | Way::Silent | Way::EndlessHead => {
            assert!((500..600).contains(&status), "{scheme}, {way:?}: {status}");
        }
        Way::StopsInBody => assert!(length < 1000, "{scheme}: {length}"),
        Way::Endless => assert!(status == 200 && length >= TAKEN, "{scheme}: {status}, {length}"),
    }
}
