//! Requests of HTTP/1 as a backend receives them. Nothing is repaired: what does not parse is shown
//! as it came.

use crate::escape::escape;

use super::Progress;

/// A request as far as it has arrived.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// Lines of the head.
    pub head: Vec<Vec<u8>>,
    /// The body without chunking.
    pub body: Vec<u8>,
    /// Lines after a chunked body.
    pub trailers: Vec<Vec<u8>>,
    /// A violation of its framing.
    pub broken: Option<&'static str>,
    /// The length, once all of it is there.
    pub len: Option<usize>,
}

/// How far the request has arrived.
pub fn progress(bytes: &[u8]) -> Progress {
    let request = read(bytes);
    match request.len {
        Some(len) => Progress::Whole(len),
        None if request.head.is_empty() => Progress::Partial,
        None => Progress::Head,
    }
}

/// Reads a request. Its head is empty until it is complete.
pub fn read(bytes: &[u8]) -> Request {
    let mut request = Request::default();
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return request;
    };
    let head = bytes.get(..end).unwrap_or_default();
    let body = bytes.get(end + 4..).unwrap_or_default();
    request.head = lines(head);
    if let Some(coding) = request.field("Transfer-Encoding") {
        if coding.eq_ignore_ascii_case(b"chunked") {
            let left = request.chunks(body);
            request.len = left.map(|left| bytes.len() - left);
        } else {
            request.broken = Some("an unknown Transfer-Encoding");
            request.len = Some(end + 4);
        }
        return request;
    }
    let length = request
        .field("Content-Length")
        .map(|text| std::str::from_utf8(&text).ok().and_then(|text| text.parse::<usize>().ok()));
    let length = match length {
        Some(Some(length)) => length,
        Some(None) => {
            request.broken = Some("Content-Length is no number");
            0
        }
        None => 0,
    };
    request.body = body.get(..length).unwrap_or(body).to_vec();
    request.len = (body.len() >= length).then_some(end + 4 + length);
    request
}

impl Request {
    /// The value of the first field with this name.
    pub fn field(&self, name: &str) -> Option<Vec<u8>> {
        self.head.iter().skip(1).find_map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (known, value) = line.split_at(colon);
            let value = value.get(1..)?.trim_ascii();
            known.eq_ignore_ascii_case(name.as_bytes()).then(|| value.to_vec())
        })
    }

    /// Reads chunks and trailers, and returns how many bytes remain behind them.
    fn chunks(&mut self, mut rest: &[u8]) -> Option<usize> {
        loop {
            let (line, after) = line(rest)?;
            let digits = line.split(|&byte| byte == b';').next().unwrap_or_default();
            let size = std::str::from_utf8(digits).ok();
            let Some(size) = size.and_then(|digits| usize::from_str_radix(digits, 16).ok()) else {
                self.broken = Some("a chunk size is no number");
                return Some(0);
            };
            rest = after;
            if size == 0 {
                break;
            }
            self.body.extend_from_slice(rest.get(..size)?);
            rest = rest.get(size..)?;
            if rest.len() < 2 {
                return None;
            }
            let Some(after) = rest.strip_prefix(b"\r\n") else {
                self.broken = Some("a chunk does not end with CRLF");
                return Some(0);
            };
            rest = after;
        }
        loop {
            let (line, after) = line(rest)?;
            rest = after;
            if line.is_empty() {
                return Some(rest.len());
            }
            self.trailers.push(line.to_vec());
        }
    }

    /// The answer of a backend without a script: what was received, fields sorted by name.
    pub fn echo(&self, backend: &str) -> Vec<u8> {
        let mut fields: Vec<&Vec<u8>> = self.head.iter().skip(1).collect();
        fields.sort_by_key(|line| line.split(|&byte| byte == b':').next().map(<[u8]>::to_vec));
        let mut text = String::new();
        for line in self.head.iter().take(1).chain(fields) {
            text.push_str(&escape(line));
            text.push('\n');
        }
        let mut body = text.into_bytes();
        body.extend(echoed(&self.body));
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nBackend: \
             {backend}\r\n\r\n",
            body.len()
        );
        let is_head = self.head.first().is_some_and(|line| line.starts_with(b"HEAD "));
        let mut answer = head.into_bytes();
        if !is_head {
            answer.extend(body);
        }
        answer
    }
}

/// A body below the head in an echo. The hash of a long text could not be compared, since the head
/// contains the port.
pub fn echoed(body: &[u8]) -> Vec<u8> {
    const SHOWN_BYTES: usize = 4 * 1024;
    match body.len() {
        0 => Vec::new(),
        1..=SHOWN_BYTES => [b"\n", body].concat(),
        length => format!("\nbody length={length}\n").into_bytes(),
    }
}

fn lines(head: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut rest = head;
    while let Some((line, after)) = line(rest) {
        found.push(line.to_vec());
        rest = after;
    }
    found.push(rest.to_vec());
    found
}

/// A line without its end, and what follows.
fn line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = find(bytes, b"\r\n")?;
    Some((bytes.get(..end)?, bytes.get(end + 2..)?))
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::{Progress, progress, read};

    #[test]
    fn a_request_ends_with_its_body() {
        let get = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        assert_eq!(progress(&get[..20]), Progress::Partial);
        assert_eq!(progress(get), Progress::Whole(get.len()));
        let post = b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET";
        assert_eq!(progress(&post[..post.len() - 5]), Progress::Head);
        assert_eq!(progress(post), Progress::Whole(post.len() - 3));
        assert_eq!(read(post).body, b"abc");
    }

    #[test]
    fn chunks_are_joined_and_trailers_kept() {
        let post =
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n\
            0\r\nA: 1\r\n\r\nrest";
        let request = read(post);
        assert_eq!((request.body.as_slice(), request.len), (&b"abc"[..], Some(post.len() - 4)));
        assert_eq!(request.trailers, [b"A: 1"]);
        assert_eq!(progress(&post[..post.len() - 6]), Progress::Head);
    }

    #[test]
    fn broken_framing_is_told_and_ends_the_request() {
        let chunk = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert_eq!(read(chunk).broken, Some("a chunk size is no number"));
        assert_eq!(progress(chunk), Progress::Whole(chunk.len()));
        let length = read(b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n");
        assert_eq!(length.broken, Some("Content-Length is no number"));
    }

    #[test]
    fn an_echo_shows_the_request_with_sorted_fields() {
        let request = read(b"POST /a HTTP/1.1\r\nHost: b\r\nContent-Length: 2\r\n\r\nhi");
        let answer = String::from_utf8(request.echo("one")).expect("text");
        assert!(answer.contains("\r\nBackend: one\r\n"));
        let body = "\r\n\r\nPOST /a HTTP/1.1\nContent-Length: 2\nHost: b\n\nhi";
        assert!(answer.ends_with(body), "{answer}");
    }
}
