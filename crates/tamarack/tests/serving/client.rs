//! A client that sees every byte: one connection, requests one after the other.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer, or anything else that is waited for, may take: much more than it does, for
/// machines that have other things to do.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to the server.
pub struct Client {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    received: Vec<u8>,
}

/// What a connection is read from and written to: a socket, or TLS over one.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// What came for one request.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    /// A field's value.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// Whether the server closes after it.
    pub fn closes(&self) -> bool {
        self.field("Connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Client {
    pub fn connect(port: u16) -> io::Result<Client> {
        let socket = TcpStream::connect(("127.0.0.1", port))?;
        socket.set_read_timeout(Some(PATIENCE))?;
        socket.set_nodelay(true)?;
        Ok(Client { stream: Box::new(socket.try_clone()?), socket, received: Vec::new() })
    }

    /// The same, over what `wrap` makes of the socket.
    pub fn connect_over<S: Read + Write + Send + 'static>(
        port: u16,
        wrap: impl FnOnce(TcpStream) -> io::Result<S>,
    ) -> io::Result<Client> {
        let Client { socket, .. } = Client::connect(port)?;
        let stream = Box::new(wrap(socket.try_clone()?)?);
        Ok(Client { stream, socket, received: Vec::new() })
    }

    /// Its own port.
    pub fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a GET without waiting for the answer.
    pub fn ask(&mut self, path: &str) -> io::Result<()> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(path)?;
        self.answer()
    }

    /// Reads an answer with a Content-Length, in chunks without trailers, or without a body.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        let head = String::from_utf8_lossy(&self.received[..end - 2]).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {head}")))?;
        let answer = Answer { status, head, body: Vec::new() };
        if answer.field("Transfer-Encoding").is_some_and(|coding| coding == "chunked") {
            self.received.drain(..end);
            return Ok(Answer { body: self.chunks()?, ..answer });
        }
        let length = answer.field("Content-Length").and_then(|value| value.parse().ok());
        let length: usize = length.unwrap_or(0);
        while self.received.len() < end + length {
            self.receive()?;
        }
        let body = self.received[end..end + length].to_vec();
        self.received.drain(..end + length);
        Ok(Answer { body, ..answer })
    }

    /// Takes chunks up to the last one, which is empty.
    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = loop {
                match self.received.windows(2).position(|two| two == b"\r\n") {
                    Some(line) => break line,
                    None => self.wait_for_bytes(self.received.len() + 1)?,
                }
            };
            let size = String::from_utf8_lossy(&self.received[..line]);
            let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
            let (begin, end) = (line + 2, line + 2 + size);
            self.wait_for_bytes(end + 2)?;
            body.extend_from_slice(&self.received[begin..end]);
            self.received.drain(..end + 2);
            if size == 0 {
                return Ok(body);
            }
        }
    }

    /// Reads until there are so many bytes that nobody has taken yet.
    pub fn wait_for_bytes(&mut self, count: usize) -> io::Result<()> {
        while self.received.len() < count {
            self.receive()?;
        }
        Ok(())
    }

    /// Whether the server has closed, having sent no more.
    pub fn is_closed(&mut self) -> bool {
        self.received.is_empty() && matches!(self.stream.read(&mut [0]), Ok(0))
    }

    /// Waits no longer than this for an answer.
    pub fn give_up_after(&self, time: Duration) {
        self.socket.set_read_timeout(Some(time)).unwrap();
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        match self.stream.read(&mut bytes)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.received.extend_from_slice(&bytes[..count]);
                Ok(())
            }
        }
    }
}
