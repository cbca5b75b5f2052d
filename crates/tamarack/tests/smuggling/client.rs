//! The client: a payload on a connection of its own, and what comes back until its end.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::payload::tag_in;

/// The time after which the server is taken to be stuck: a failure by itself.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client got.
pub struct Answers {
    /// Statuses in order, `0.9` for what has none, and what is wrong with the last.
    pub statuses: Vec<String>,
    /// The tags that the backend gave.
    pub tags: Vec<String>,
}

/// Sends a payload, half-closes, and reads to the end.
pub fn exchange(port: u16, payload: &[u8]) -> Answers {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // A server that has refused the beginning may close before the rest is sent.
    let _ = stream.write_all(payload).and_then(|()| stream.shutdown(Shutdown::Write));
    let mut received = Vec::new();
    let end = stream.read_to_end(&mut received);
    let mut answers = Answers { statuses: Vec::new(), tags: Vec::new() };
    answers.read(&received, payload.starts_with(b"HEAD "));
    if end.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock) {
        answers.statuses.push("stuck".to_owned());
    }
    if answers.statuses.is_empty() {
        answers.statuses.push("none".to_owned());
    }
    answers
}

impl Answers {
    fn read(&mut self, mut input: &[u8], mut is_head: bool) {
        while !input.is_empty() {
            let end = input.windows(4).position(|four| four == b"\r\n\r\n");
            let Some(end) = end.filter(|_| input.starts_with(b"HTTP/1.1 ")) else {
                self.statuses.push("0.9".to_owned());
                self.tags.extend(tag_in(input));
                return;
            };
            let head = String::from_utf8_lossy(&input[..end]).into_owned();
            let status = head[9..].split([' ', '\r']).next().unwrap_or_default();
            self.statuses.push(status.to_owned());
            let field = |name: &str| {
                let line = head.lines().find_map(|line| line.strip_prefix(name));
                line.map(str::trim)
            };
            self.tags.extend(field("Tag:").filter(|tag| *tag != "-").map(str::to_owned));
            input = &input[end + 4..];
            if std::mem::take(&mut is_head) || status.starts_with('1') {
                continue;
            }
            let length = field("Content-Length:").and_then(|text| text.parse().ok());
            let used = match length {
                Some(length) => length,
                None if field("Transfer-Encoding:").is_some() => chunked(input),
                None => input.len(),
            };
            if used > input.len() {
                self.statuses.push("cut".to_owned());
                return;
            }
            input = &input[used..];
        }
    }
}

/// The length of a chunked body.
fn chunked(input: &[u8]) -> usize {
    let end = input.windows(5).position(|five| five == b"0\r\n\r\n");
    end.map_or(usize::MAX, |end| end + 5)
}
