//! A client of HTTP/2, for [`Heads::Streams`](crate::rig::Heads::Streams).

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use wire::h2::{Connection, Event, Limits, Pseudo};

use crate::rig::PAUSE;

/// The requests that are sent at a time, in one turn of the server's loop.
const STREAMS: u32 = 16;

/// What a browser says of itself; each request has another `x`.
const FIELDS: [(&str, &str); 6] = [
    ("sec-ch-ua-platform", "\"Linux\""),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) \
         Chrome/130.0.0.0 Safari/537.36",
    ),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
    ("referer", "http://127.0.0.1:8080/folder/page.html"),
];

/// Sends requests, and waits for the responses to all of them each time; returns the bytes
/// received.
pub(crate) fn ask(address: SocketAddr, requests: u32) -> io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut connection = Connection::client(Limits::default(), 0);
    let mut total = 0;
    let mut sent = 0;
    while sent < requests {
        let count = STREAMS.min(requests - sent);
        for number in sent..sent + count {
            send(&mut connection, number)?;
        }
        total += responses(&mut stream, &mut connection, count)?;
        sent += count;
        std::thread::sleep(PAUSE);
    }
    Ok(total)
}

fn send(connection: &mut Connection, number: u32) -> io::Result<()> {
    let pseudo = Pseudo {
        method: b"GET",
        scheme: b"http",
        authority: b"127.0.0.1:8080",
        path: b"/small.txt",
    };
    let number = format!("{number:08}");
    let fields = FIELDS.iter().copied().chain([("x", &*number)]);
    let fields = fields.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    let sent = connection.request(&pseudo, fields, true);
    sent.map(|_| ()).ok_or_else(|| io::Error::other("no stream is left"))
}

/// Receives so many responses.
fn responses(
    stream: &mut TcpStream,
    connection: &mut Connection,
    mut count: u32,
) -> io::Result<u64> {
    let mut input = Vec::new();
    let mut buffer = [0; 16 * 1024];
    let mut total = 0;
    while count > 0 {
        stream.write_all(&std::mem::take(&mut connection.output))?;
        let received = stream.read(&mut buffer)?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        total += received as u64;
        input.extend_from_slice(buffer.get(..received).unwrap_or_default());
        let taken = connection.receive_responses(&input, 0);
        input.drain(..taken);
        while let Some(event) = connection.next_event() {
            match event {
                Event::Response { status: 200, .. } | Event::Window { .. } => {}
                Event::Data { stream, bytes, ends } => {
                    connection.taken(stream, bytes.len());
                    if ends {
                        connection.release(stream);
                        count -= 1;
                    }
                }
                other => return Err(io::Error::other(format!("{other:?}"))),
            }
        }
    }
    Ok(total)
}
