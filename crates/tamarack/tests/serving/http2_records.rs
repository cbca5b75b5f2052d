//! The sizes of TLS records over HTTP/2.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};

use crate::client::PATIENCE;
use crate::http2::{GET_BIG, Http2, WINDOW_UPDATE, frame};
use crate::site::Site;
use crate::tls::Tls;

/// A record of 1,300 bytes, with its type and tag.
const SMALL: usize = 1300 + 17;

/// The body's length.
const BIG: usize = 300_000;

/// A socket that notes the lengths of the records that arrive.
struct Records {
    socket: TcpStream,
    lengths: Vec<usize>,
    head: Vec<u8>,
    left: usize,
}

impl Records {
    fn note(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let count = self.left.min(bytes.len());
            self.left -= count;
            bytes = &bytes[count..];
            if self.left > 0 || bytes.is_empty() {
                continue;
            }
            self.head.push(bytes[0]);
            bytes = &bytes[1..];
            if let [.., high, low] = self.head[..]
                && self.head.len() == 5
            {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                self.lengths.push(self.left);
                self.head.clear();
            }
        }
    }
}

impl Read for Records {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.socket.read(buffer)?;
        self.note(&buffer[..count]);
        Ok(count)
    }
}

impl Write for Records {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

type Client = Http2<StreamOwned<ClientConnection, Records>>;

fn site(name: &str, more: &str) -> Site {
    let mut site = Site::new(name);
    site.write("htdocs/big", &"x".repeat(BIG));
    site.configure(&format!("{}Protocols h2\n{more}", Tls::configuration("server.key")));
    site.start();
    site
}

fn connect(site: &Site) -> Client {
    let socket = TcpStream::connect(("127.0.0.1", site.port)).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let socket = Records { socket, lengths: Vec::new(), head: Vec::new(), left: 0 };
    let stream = Tls::new().speaking(b"h2").stream(socket).unwrap();
    // Windows that hold the body.
    let mut client = Http2::over(stream, &[0, 4, 0x7f, 0xff, 0xff, 0xff]);
    client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0])).unwrap();
    client
}

/// The lengths of the records with which a response comes.
fn lengths(client: &mut Client, stream: u32) -> Vec<usize> {
    client.socket().sock.lengths.clear();
    client.request(stream, GET_BIG).unwrap();
    assert!(client.is_answered(stream));
    std::mem::take(&mut client.socket().sock.lengths)
}

/// Bytes of the records that precede the first that is not small.
fn small_bytes(lengths: &[usize]) -> usize {
    lengths.iter().take_while(|length| **length <= SMALL).sum()
}

#[test]
fn records_are_small_until_the_connection_is_warm() {
    let site = site("h2-warm", "H2TLSWarmUpSize 100000\nH2TLSCoolDownSecs 600\n");
    let mut client = connect(&site);
    let first = lengths(&mut client, 1);
    let small = small_bytes(&first);
    assert!((95_000..110_000).contains(&small), "{first:?}");
    assert!(first.iter().all(|length| *length <= 16 * 1024 + 17));
    assert!(first.iter().any(|length| *length > 8 * 1024), "{first:?}");
    let second = lengths(&mut client, 3);
    assert!(second.len() < 60, "{second:?}");
}

#[test]
fn records_are_small_again_after_idling() {
    let site = site("h2-cool", "H2TLSWarmUpSize 100000\nH2TLSCoolDownSecs 1\n");
    let mut client = connect(&site);
    for stream in [1, 3] {
        let lengths = lengths(&mut client, stream);
        assert!(small_bytes(&lengths) >= 95_000, "{lengths:?}");
        std::thread::sleep(Duration::from_millis(1100));
    }
}

#[test]
fn records_are_full_unless_asked_otherwise() {
    for (name, more) in [("h2-full", ""), ("h2-never-cool", "H2TLSWarmUpSize 100000\n")] {
        let site = site(name, more);
        let lengths = lengths(&mut connect(&site), 1);
        assert!(lengths.len() < 60, "{lengths:?}");
    }
}
