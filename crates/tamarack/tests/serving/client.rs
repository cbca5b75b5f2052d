//! A client that sees every byte: one connection, with sequential requests.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The longest wait for a response or any other event: far more than usual, for busy machines.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A connection to the server.
pub struct Client {
    stream: Box<dyn Stream>,
    socket: TcpStream,
    received: Vec<u8>,
}

/// The transport of a connection: a socket, or TLS over one.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// The response to one request.
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

    /// Whether the server closes the connection after it.
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

    /// Like [`Client::connect`], over the stream that `wrap` returns.
    pub fn connect_over<S: Read + Write + Send + 'static>(
        port: u16,
        wrap: impl FnOnce(TcpStream) -> io::Result<S>,
    ) -> io::Result<Client> {
        let Client { socket, .. } = Client::connect(port)?;
        let stream = Box::new(wrap(socket.try_clone()?)?);
        Ok(Client { stream, socket, received: Vec::new() })
    }

    /// The client's port.
    pub fn port(&self) -> u16 {
        self.socket.local_addr().unwrap().port()
    }

    /// Another handle of the client's socket.
    pub fn socket(&self) -> TcpStream {
        self.socket.try_clone().unwrap()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// Sends a GET without waiting for the response.
    pub fn ask(&mut self, path: &str) -> io::Result<()> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.ask(path)?;
        self.answer()
    }

    /// Reads the response to a HEAD: a head alone.
    pub fn head(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.receive()?;
        };
        let head = String::from_utf8_lossy(&self.received[..end - 2]).into_owned();
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {head}")))?;
        self.received.drain(..end);
        Ok(Answer { status, head, body: Vec::new() })
    }

    /// Reads a response with a Content-Length, in chunks without trailers, or without a body.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let answer = self.head()?;
        if answer.field("Transfer-Encoding").is_some_and(|coding| coding == "chunked") {
            return Ok(Answer { body: self.chunks()?, ..answer });
        }
        let length = answer.field("Content-Length").and_then(|value| value.parse().ok());
        let body = self.take(length.unwrap_or(0))?;
        Ok(Answer { body, ..answer })
    }

    /// Reads this many bytes.
    pub fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.wait_for_bytes(count)?;
        Ok(self.received.drain(..count).collect())
    }

    /// Reads chunks up to the last one, which is empty.
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

    /// Reads until this many bytes are buffered.
    pub fn wait_for_bytes(&mut self, count: usize) -> io::Result<()> {
        while self.received.len() < count {
            self.receive()?;
        }
        Ok(())
    }

    /// Whether the server has closed the connection without sending more.
    pub fn is_closed(&mut self) -> bool {
        self.received.is_empty() && matches!(self.stream.read(&mut [0]), Ok(0))
    }

    /// Sets the longest wait for a response.
    pub fn give_up_after(&self, time: Duration) {
        self.socket.set_read_timeout(Some(time)).unwrap();
    }

    fn receive(&mut self) -> io::Result<()> {
        let mut bytes = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    self.received.extend_from_slice(&bytes[..count]);
                    return Ok(());
                }
                // Sockets with a time limit fail in this way without a signal, too.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
