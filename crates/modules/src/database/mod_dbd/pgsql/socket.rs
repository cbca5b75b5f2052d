//! A socket that blocks until a deadline, with TLS or without, and the messages that come from it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use postgres_protocol::message::backend::{Header, Message};
use postgres_protocol::message::frontend;
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType, recv};
use rustls::{ClientConfig, ClientConnection};
use rustls_pki_types::ServerName;

use super::conninfo::Server;
use crate::database::mod_dbd::driver::RESULT_BYTES_MAX;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;
/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// A connection to a server.
pub(super) struct Socket {
    stream: Stream,
    tls: Option<Box<ClientConnection>>,
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
            Server::Unix { folder, port } => {
                let path = format!("{folder}/.s.PGSQL.{port}");
                Stream::Unix(connect_unix(Path::new(&path), deadline)?)
            }
            Server::Tcp { host, address, port } => {
                let host = address.as_ref().unwrap_or(host);
                Stream::Tcp(connect_tcp(host, *port, deadline)?)
            }
        };
        Ok(Socket { stream, tls: None, received: BytesMut::new() })
    }

    /// Asks for TLS, as the first of all; false if the server has none.
    ///
    /// Specification:
    /// <https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-SSL>.
    pub fn secure(
        &mut self,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        deadline: Instant,
    ) -> io::Result<bool> {
        let mut out = BytesMut::new();
        frontend::ssl_request(&mut out);
        self.send(&out, deadline)?;
        // No byte more: what follows must come by TLS.
        let mut answer = [0];
        match (self.read(&mut answer, deadline)?, answer) {
            (0, _) => return Err(closed()),
            (_, [b'N']) => return Ok(false),
            (_, [b'S']) => {}
            _ => return Err(io::Error::other("received invalid response to SSL negotiation")),
        }
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut timed = Timed { stream: &mut self.stream, deadline };
        while tls.is_handshaking() {
            tls.complete_io(&mut timed)?;
        }
        self.tls = Some(Box::new(tls));
        Ok(true)
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8], deadline: Instant) -> io::Result<()> {
        let mut timed = Timed { stream: &mut self.stream, deadline };
        match &mut self.tls {
            Some(tls) => {
                let mut stream = rustls::Stream::new(tls.as_mut(), &mut timed);
                stream.write_all(bytes)?;
                stream.flush()
            }
            None => timed.write_all(bytes),
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
                return Err(closed());
            }
            self.received.extend_from_slice(bytes.get(..count).unwrap_or_default());
        }
    }

    fn read(&mut self, bytes: &mut [u8], deadline: Instant) -> io::Result<usize> {
        let mut timed = Timed { stream: &mut self.stream, deadline };
        match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls.as_mut(), &mut timed).read(bytes),
            None => timed.read(bytes),
        }
    }

    /// Whether the server has sent nothing, and has not closed the connection.
    pub fn is_quiet(&mut self) -> bool {
        let is_quiet = match &mut self.tls {
            None => {
                let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
                let received = recv(self.stream.fd(), &mut [0u8; 1], flags);
                matches!(received, Err(Errno::AGAIN))
            }
            Some(tls) => is_quiet(tls, &mut Waiting(&self.stream)).unwrap_or(false),
        };
        is_quiet && self.received.is_empty()
    }
}

/// Whether nothing has come but what TLS itself wants to say, as its tickets.
fn is_quiet(tls: &mut ClientConnection, waiting: &mut Waiting<'_>) -> Result<bool, rustls::Error> {
    loop {
        let state = tls.process_new_packets()?;
        if state.plaintext_bytes_to_read() > 0 || state.peer_has_closed() {
            return Ok(false);
        }
        match tls.read_tls(waiting) {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(why) => return Ok(why.kind() == io::ErrorKind::WouldBlock),
        }
    }
}

/// What has arrived.
struct Waiting<'a>(&'a Stream);

impl Read for Waiting<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let (count, _) = recv(self.0.fd(), bytes, RecvFlags::DONTWAIT)?;
        Ok(count)
    }
}

/// A stream whose calls end with the deadline.
struct Timed<'a> {
    stream: &'a mut Stream,
    deadline: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let left = Some(left(self.deadline)?);
        match self.stream {
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
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let left = Some(left(self.deadline)?);
        match self.stream {
            Stream::Tcp(stream) => {
                stream.set_write_timeout(left)?;
                stream.write(bytes)
            }
            Stream::Unix(stream) => {
                stream.set_write_timeout(left)?;
                stream.write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        }
    }
}

fn closed() -> io::Error {
    let why = "server closed the connection unexpectedly";
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
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
