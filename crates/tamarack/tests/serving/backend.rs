//! An HTTP server for the tests of a proxy: it responds as the path asks, and counts.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How long a late response takes.
const LATE: Duration = Duration::from_millis(20);

/// What the backend counts, and what it waits for.
pub struct Counts {
    /// Connections accepted.
    pub accepted: AtomicUsize,
    /// Connections that are open.
    pub open: AtomicUsize,
    /// Requests received.
    pub requests: AtomicUsize,
    /// Late responses in progress, and the most at the same time.
    pub late: [AtomicUsize; 2],
    steps: Mutex<Receiver<()>>,
}

/// The backend.
pub struct Backend {
    pub port: u16,
    pub counts: Arc<Counts>,
    next: Sender<()>,
}

impl Backend {
    pub fn start() -> Backend {
        Backend::at(0)
    }

    /// One that listens at a port; 0: any.
    pub fn at(port: u16) -> Backend {
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (next, steps) = channel();
        let counts = Arc::new(Counts {
            accepted: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            late: Default::default(),
            steps: Mutex::new(steps),
        });
        let own = counts.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                own.accepted.fetch_add(1, Ordering::SeqCst);
                own.open.fetch_add(1, Ordering::SeqCst);
                let own = own.clone();
                thread::spawn(move || {
                    let _ = serve(stream, &own);
                    own.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Backend { port, counts, next }
    }

    /// Lets a response that waits go on.
    pub fn step(&self) {
        self.next.send(()).unwrap();
    }

    pub fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// The most late responses that were in progress at the same time.
    pub fn most_late(&self) -> usize {
        self.counts.late[1].load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> usize {
        self.counts.requests.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, counts: &Counts) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut input = Vec::new();
    for number in 1.. {
        let Some(head) = head(&mut stream, &mut input)? else { return Ok(()) };
        counts.requests.fetch_add(1, Ordering::SeqCst);
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        if path.ends_with("/sink") {
            let count = sink(&mut stream, &mut input, &head)?;
            whole(&mut stream, count.to_string().as_bytes())?;
            continue;
        }
        let body = body(&mut stream, &mut input, &head)?;
        let wait = || counts.steps.lock().unwrap().recv();
        match path.rsplit('/').next().unwrap_or_default() {
            "dies" => return stream.shutdown(Shutdown::Both),
            "dies-reused" if number > 1 => return stream.shutdown(Shutdown::Both),
            "echo" => whole(&mut stream, &body)?,
            "head" => whole(&mut stream, head.as_bytes())?,
            "breaks" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nsome")?;
                return Ok(());
            }
            "breaks-chunked" => {
                stream
                    .write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")?;
                return Ok(());
            }
            "waits" => {
                let _ = wait();
                whole(&mut stream, b"waited")?;
            }
            "late" => {
                let [late, most] = &counts.late;
                most.fetch_max(late.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                thread::sleep(LATE);
                late.fetch_sub(1, Ordering::SeqCst);
                whole(&mut stream, b"late")?;
            }
            "events" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
                for number in 0..3 {
                    write!(stream, "9\r\nevent {number}\n\n\r\n")?;
                    let _ = wait();
                }
                stream.write_all(b"0\r\n\r\n")?;
            }
            name if let Some(length) = name.strip_prefix("pattern-") => {
                whole(&mut stream, &pattern(length.parse().map_err(io::Error::other)?))?;
            }
            name if let Some(length) = name.strip_prefix("stream-") => {
                source(&mut stream, length.parse().map_err(io::Error::other)?)?;
            }
            // As many bytes.
            name => match name.parse::<usize>() {
                Ok(length) => whole(&mut stream, &vec![b'x'; length])?,
                Err(_) => whole(&mut stream, format!("request {number}\n").as_bytes())?,
            },
        }
    }
    Ok(())
}

/// Reads a body of known length, of which nothing is kept; returns its length.
fn sink(stream: &mut TcpStream, input: &mut Vec<u8>, head: &str) -> io::Result<usize> {
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |text| text.trim().parse().unwrap());
    let mut count = input.len();
    input.clear();
    while count < length {
        fill(stream, input)?;
        count += input.len();
        input.clear();
    }
    Ok(count)
}

/// Sends a body of this length.
fn source(stream: &mut TcpStream, length: usize) -> io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n")?;
    let piece = vec![b'x'; 256 * 1024];
    let mut left = length;
    while left > 0 {
        let count = left.min(piece.len());
        stream.write_all(&piece[..count])?;
        left -= count;
    }
    Ok(())
}

/// Bytes in which no two places look alike.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 256 + at / 65_536) as u8).collect()
}

fn whole(stream: &mut TcpStream, body: &[u8]) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nServer: back\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat())
}

fn head(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<Option<String>> {
    loop {
        if let Some(at) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = input.split_off(at + 4);
            let head = std::mem::replace(input, rest);
            return Ok(Some(String::from_utf8_lossy(&head).into_owned()));
        }
        if receive(stream, input)? == 0 {
            return Ok(None);
        }
    }
}

fn body(stream: &mut TcpStream, input: &mut Vec<u8>, head: &str) -> io::Result<Vec<u8>> {
    let lower = head.to_ascii_lowercase();
    if lower.contains("transfer-encoding: chunked") {
        let mut decoded = Vec::new();
        loop {
            let line = loop {
                match input.windows(2).position(|two| two == b"\r\n") {
                    Some(at) => break at,
                    None => fill(stream, input)?,
                }
            };
            let size = usize::from_str_radix(&String::from_utf8_lossy(&input[..line]), 16);
            let size = size.map_err(io::Error::other)?;
            while input.len() < line + 2 + size + 2 {
                fill(stream, input)?;
            }
            decoded.extend_from_slice(&input[line + 2..line + 2 + size]);
            input.drain(..line + 2 + size + 2);
            if size == 0 {
                return Ok(decoded);
            }
        }
    }
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |text| text.trim().parse().unwrap());
    while input.len() < length {
        fill(stream, input)?;
    }
    let rest = input.split_off(length);
    Ok(std::mem::replace(input, rest))
}

fn fill(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<()> {
    match receive(stream, input)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

fn receive(stream: &mut TcpStream, input: &mut Vec<u8>) -> io::Result<usize> {
    let mut bytes = vec![0; 256 * 1024];
    let count = stream.read(&mut bytes)?;
    input.extend_from_slice(&bytes[..count]);
    Ok(count)
}
