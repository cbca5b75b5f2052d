//! The client's end of a connection: sends the bytes of the test verbatim, and reads with a
//! deadline.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use socket2::{Domain, Socket, Type};

use crate::escape::unescape;
use crate::place::Place;
use crate::stall::Deadline;
use crate::tls::{self, Tls};

const CONNECT_LIMIT: Duration = Duration::from_secs(30);
const SEND_LIMIT: Duration = Duration::from_secs(30);
const READ_CHUNK_BYTES: usize = 64 * 1024;

/// How the server's side of the connection ended.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// Orderly: FIN, and in TLS close_notify before it.
    Closed,
    /// TLS without close_notify.
    Cut,
    /// A TLS alert, by name.
    Alert(String),
}

/// The result of a read.
#[derive(Debug, PartialEq)]
pub enum Fill {
    /// Bytes, appended to the buffer.
    More,
    /// The end of the connection.
    End,
    /// The deadline passed.
    Timeout,
}

/// A connection with its unprocessed input.
pub struct Client {
    stream: Stream,
    /// Received bytes, from the first unprocessed one.
    pub buffer: Vec<u8>,
    /// Set once the server has closed.
    pub end: Option<End>,
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Client {
    /// Connects by the options of the `with` line. A failed handshake is an `end`, not an error.
    pub fn connect(options: &[String], place: &Place, tls: &Tls) -> Result<Client, String> {
        let value =
            |key: &str| options.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let to = place.fill_text(value("to").unwrap_or("127.0.0.1:@PORT@"));
        let to: SocketAddr = to.parse().map_err(|_| format!("to={to} is not an address"))?;
        let say = |e: std::io::Error| format!("connect to {to}: {e}");
        let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).map_err(say)?;
        if let Some(from) = value("from") {
            let from = format!("{from}:0").parse::<SocketAddr>();
            let from = from.map_err(|_| "from= requires an IPv4 address".to_owned())?;
            socket.bind(&from.into()).map_err(say)?;
        }
        socket.connect_timeout(&to.into(), CONNECT_LIMIT).map_err(say)?;
        socket.set_tcp_nodelay(true).map_err(say)?;
        let socket = TcpStream::from(socket);
        socket.set_write_timeout(Some(SEND_LIMIT)).map_err(say)?;
        socket.set_read_timeout(Some(SEND_LIMIT)).map_err(say)?;
        if let Some(first) = value("first") {
            (&socket).write_all(&unescape(first)?).map_err(say)?;
        }
        let mut end = None;
        let stream = if options.iter().any(|word| word == "tls") {
            let connection = tls.client(options)?;
            let mut stream = Box::new(StreamOwned::new(connection, socket));
            while stream.conn.is_handshaking() && end.is_none() {
                if let Err(error) = stream.conn.complete_io(&mut stream.sock) {
                    end = Some(ending(&error));
                }
            }
            Stream::Tls(stream)
        } else {
            Stream::Plain(socket)
        };
        Ok(Client { stream, buffer: Vec::new(), end })
    }

    /// The outcome of the handshake, as recorded; `None` in plain TCP.
    pub fn session(&self, tls: &Tls) -> Option<String> {
        match &self.stream {
            Stream::Tls(stream) => Some(tls::describe(&stream.conn, tls)),
            Stream::Plain(_) => None,
        }
    }

    /// Sends all bytes. If the server has already closed, that is not an error: its response may be
    /// waiting.
    pub fn send(&mut self, bytes: &[u8]) {
        let sent = match &mut self.stream {
            Stream::Plain(socket) => socket.write_all(bytes),
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        };
        drop(sent);
    }

    /// Closes the sending side.
    pub fn half_close(&mut self) {
        let socket = match &mut self.stream {
            Stream::Plain(socket) => socket,
            Stream::Tls(stream) => {
                stream.conn.send_close_notify();
                let _ = stream.flush();
                &mut stream.sock
            }
        };
        let _ = socket.shutdown(Shutdown::Write);
    }

    /// Reads once, at most until `deadline`.
    pub fn fill(&mut self, deadline: Deadline) -> Fill {
        if self.end.is_some() {
            return Fill::End;
        }
        let mut chunk = vec![0; READ_CHUNK_BYTES];
        loop {
            let Some(left) = deadline.left() else {
                return Fill::Timeout;
            };
            let left = left.max(Duration::from_millis(1));
            let read = match &mut self.stream {
                Stream::Plain(socket) => {
                    let _ = socket.set_read_timeout(Some(left));
                    socket.read(&mut chunk)
                }
                Stream::Tls(stream) => {
                    let _ = stream.sock.set_read_timeout(Some(left));
                    stream.read(&mut chunk)
                }
            };
            match read {
                Ok(0) => self.end = Some(End::Closed),
                Ok(count) => {
                    self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return Fill::More;
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                        continue;
                    }
                    _ => self.end = Some(ending(&error)),
                },
            }
            return Fill::End;
        }
    }
}

fn ending(error: &std::io::Error) -> End {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::AlertReceived(alert)) => End::Alert(format!("{alert:?}")),
        Some(other) => End::Alert(format!("({other})")),
        None if error.kind() == ErrorKind::UnexpectedEof => End::Cut,
        None => End::Closed,
    }
}
