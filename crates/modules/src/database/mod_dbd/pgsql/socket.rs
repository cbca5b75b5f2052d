//! A socket that blocks until a deadline, and the messages that come from it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, recv};

use super::conninfo::Server;
use crate::database::mod_dbd::driver::RESULT_BYTES_MAX;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;
/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// A connection to a server, without TLS.
pub(super) struct Socket {
    stream: Stream,
    received: BytesMut,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Connects until the deadline.
    pub fn connect(server: &Server, deadline: Instant) -> io::Result<Socket> {
        let stream = match server {
            Server::Unix(path) => Stream::Unix(connect_unix(path, deadline)?),
            Server::Tcp(host, port) => Stream::Tcp(connect_tcp(host, *port, deadline)?),
        };
        Ok(Socket { stream, received: BytesMut::new() })
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let left = Some(left(deadline)?);
        match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_write_timeout(left)?;
                stream.write_all(bytes)
            }
            Stream::Unix(stream) => {
                stream.set_write_timeout(left)?;
                stream.write_all(bytes)
            }
        }
    }

    /// The next message.
    pub fn receive(&mut self, deadline: Instant) -> io::Result<Message> {
        loop {
            // A message is only waited for if it may be that long: the parser makes room for it.
            let header = Header::parse(&self.received)?;
            let length = header.and_then(|header| usize::try_from(header.len()).ok());
            if length.is_some_and(|length| length > RESULT_BYTES_MAX) {
                let why = "the message is too long";
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            if let Some(message) = Message::parse(&mut self.received)? {
                return Ok(message);
            }
            let mut bytes = [0; READ_BYTES];
            let count = self.read(&mut bytes, deadline)?;
            if count == 0 {
                let why = "server closed the connection unexpectedly";
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
            }
            self.received.extend_from_slice(bytes.get(..count).unwrap_or_default());
        }
    }

    fn read(&mut self, bytes: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let left = Some(left(deadline)?);
        match &mut self.stream {
            Stream::Tcp(stream) => {
                stream.set_read_timeout(left)?;
                stream.read(bytes)
            }
            Stream::Unix(stream) => {
                stream.set_read_timeout(left)?;
                stream.read(bytes)
            }
        }
    }

    /// Whether the server has sent nothing, and has not closed the connection.
    pub fn is_quiet(&self) -> bool {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let received = recv(self.fd(), &mut [0u8; 1], flags);
        self.received.is_empty() && matches!(received, Err(Errno::AGAIN))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

/// Where the server's queue is full, the system waits, but not for longer than a call may send.
fn connect_unix(path: &Path, deadline: Instant) -> io::Result<UnixStream> {
    let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None)?;
    set_socket_timeout(&socket, Timeout::Send, Some(left(deadline)?))?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
        done => Ok(done.map(|()| socket.into())?),
    }
}

fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in (host, port).to_socket_addrs()?.take(ADDRESSES_MAX) {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(why) => last = why,
        }
    }
    Err(last)
}

/// The time until a deadline.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connecting_to_a_server_that_accepts_nothing_ends_with_the_deadline() {
        let path = std::env::temp_dir().join(format!("tamarack-full-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let (family, kind) = (AddressFamily::UNIX, SocketType::STREAM);
        let server = rustix::net::socket(family, kind, None).unwrap();
        rustix::net::bind(&server, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        rustix::net::listen(&server, 0).unwrap();
        let _queued = UnixStream::connect(&path).unwrap();
        let began = Instant::now();
        let deadline = began + Duration::from_millis(100);
        assert!(connect_unix(&path, deadline).is_err());
        assert!(began.elapsed() < Duration::from_secs(20));
        std::fs::remove_file(&path).unwrap();
    }
}
