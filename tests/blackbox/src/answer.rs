//! Parses bytes from the server into a response: interim heads, head, body, trailers. Violations of
//! its own framing are reported, not repaired.

use crate::client::{Client, Fill};
use crate::stall::Deadline;

/// A response of a server.
#[derive(Debug, Default)]
pub struct Answer {
    /// 1xx heads before the final one.
    pub interim: Vec<Head>,
    /// `None`: an HTTP/0.9 response, which has only a body, or no response at all.
    pub head: Option<Head>,
    /// The body without chunking.
    pub body: Vec<u8>,
    /// The fields after a chunked body.
    pub trailers: Vec<(String, Vec<u8>)>,
    /// A framing error in words.
    pub broken: Option<String>,
}

/// Status line and fields.
#[derive(Debug, Default, Clone)]
pub struct Head {
    /// The line as received, without its line end.
    pub status_line: Vec<u8>,
    /// In order.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// The first field with this name.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let mut found = self.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_slice())
    }

    /// Replaces the value of each field with this name.
    pub fn set(&mut self, name: &str, value: Vec<u8>) {
        for (known, old) in &mut self.fields {
            if known.eq_ignore_ascii_case(name) {
                old.clone_from(&value);
            }
        }
    }

    /// The three digits, or 0.
    pub fn status(&self) -> u16 {
        let digits = self.status_line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
    }
}

/// Reads the response to a request with this method. `None` if nothing arrived before the end of
/// the connection or the deadline.
pub fn read(client: &mut Client, method: &str, deadline: Deadline) -> Option<Answer> {
    let mut answer = Answer::default();
    loop {
        while client.buffer.len() < 5 && client.fill(deadline) == Fill::More {}
        if client.buffer.is_empty() {
            return None;
        }
        if !client.buffer.starts_with(b"HTTP/") {
            while client.fill(deadline) == Fill::More {}
            answer.body = std::mem::take(&mut client.buffer);
            return Some(answer);
        }
        let Some(head) = read_head(client, deadline) else {
            answer.broken = Some("the head is cut off".into());
            answer.body = std::mem::take(&mut client.buffer);
            return Some(answer);
        };
        if (100..200).contains(&head.status()) && head.status() != 101 {
            answer.interim.push(head);
            continue;
        }
        let status = head.status();
        let bodiless = method == "HEAD" || matches!(status, 204 | 304 | 101);
        answer.head = Some(head);
        if !bodiless {
            read_body(client, &mut answer, deadline);
        }
        return Some(answer);
    }
}

fn read_head(client: &mut Client, deadline: Deadline) -> Option<Head> {
    let end = loop {
        match find(&client.buffer, b"\r\n\r\n") {
            Some(at) => break at,
            None if client.fill(deadline) == Fill::More => {}
            None => return None,
        }
    };
    let head: Vec<u8> = client.buffer.drain(..end + 4).collect();
    let mut lines = lines(&head);
    let status_line = lines.next()?.to_vec();
    Some(Head { status_line, fields: lines.filter_map(field).collect() })
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

fn field(line: &[u8]) -> Option<(String, Vec<u8>)> {
    if line.is_empty() {
        return None;
    }
    let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
    let value = line.get(colon + 1..).unwrap_or_default();
    let value = value.strip_prefix(b" ").unwrap_or(value);
    let name = line.get(..colon).unwrap_or_default();
    Some((crate::escape::escape(name), value.to_vec()))
}

fn read_body(client: &mut Client, answer: &mut Answer, deadline: Deadline) {
    let Some(head) = &answer.head else {
        return;
    };
    let chunked = head.field("Transfer-Encoding").is_some();
    let length = head
        .field("Content-Length")
        .map(|text| std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok()));
    match (chunked, length) {
        (true, Some(_)) => answer.broken = Some("both Transfer-Encoding and Content-Length".into()),
        (true, None) => {
            if let Err(what) = read_chunks(client, answer, deadline) {
                answer.broken = Some(what.into());
            }
        }
        (false, Some(None)) => answer.broken = Some("Content-Length is no number".into()),
        (false, Some(Some(length))) => {
            while client.buffer.len() < length && client.fill(deadline) == Fill::More {}
            let have = length.min(client.buffer.len());
            answer.body = client.buffer.drain(..have).collect();
            if have < length {
                answer.broken = Some(format!("{have} of {length} bytes came"));
            }
        }
        (false, None) => {
            let mut last = Fill::More;
            while last == Fill::More {
                last = client.fill(deadline);
            }
            answer.body = std::mem::take(&mut client.buffer);
            if last == Fill::Timeout {
                answer.broken = Some("a body without length on an open connection".into());
            }
        }
    }
}

fn read_chunks(
    client: &mut Client,
    answer: &mut Answer,
    deadline: Deadline,
) -> Result<(), &'static str> {
    loop {
        let line = read_line(client, deadline).ok_or("cut off before a chunk size")?;
        let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
        let digits = std::str::from_utf8(digits).map_err(|_| "a chunk size is no number")?;
        let size = usize::from_str_radix(digits.trim_end(), 16);
        let size = size.map_err(|_| "a chunk size is no number")?;
        if size == 0 {
            break;
        }
        while client.buffer.len() < size + 2 {
            if client.fill(deadline) != Fill::More {
                answer.body.append(&mut client.buffer);
                return Err("cut off inside a chunk");
            }
        }
        let chunk: Vec<u8> = client.buffer.drain(..size + 2).collect();
        answer.body.extend_from_slice(chunk.get(..size).unwrap_or_default());
        if !chunk.ends_with(b"\r\n") {
            return Err("a chunk does not end with CRLF");
        }
    }
    loop {
        let line = read_line(client, deadline).ok_or("cut off in the trailers")?;
        match field(&line) {
            Some(trailer) => answer.trailers.push(trailer),
            None => return Ok(()),
        }
    }
}

fn read_line(client: &mut Client, deadline: Deadline) -> Option<Vec<u8>> {
    loop {
        if let Some(at) = find(&client.buffer, b"\r\n") {
            let mut line: Vec<u8> = client.buffer.drain(..at + 2).collect();
            line.truncate(at);
            return Some(line);
        }
        if client.fill(deadline) != Fill::More {
            return None;
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
