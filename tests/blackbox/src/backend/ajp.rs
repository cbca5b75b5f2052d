//! AJP 1.3 as a container sees it: packets are taken apart here and not by the codec under test, so
//! that a recording can't share its mistakes.

use crate::escape::{escape, unescape};

use super::Progress;

const HEADER_BYTES: usize = 4;
const FORWARD_REQUEST: u8 = 2;
const SEND_BODY_CHUNK: u8 = 3;
const SEND_HEADERS: u8 = 4;
const END_RESPONSE: u8 = 5;
const GET_BODY_CHUNK: u8 = 6;
const CPONG: u8 = 9;
const CPING: u8 = 10;
/// Most bytes of a body in one packet to the server.
const BODY_BYTES: usize = 8184;

const METHODS: [&str; 14] = [
    "OPTIONS",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "TRACE",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
];
const REQUEST_FIELDS: [&str; 14] = [
    "Accept",
    "Accept-Charset",
    "Accept-Encoding",
    "Accept-Language",
    "Authorization",
    "Connection",
    "Content-Type",
    "Content-Length",
    "Cookie",
    "Cookie2",
    "Host",
    "Pragma",
    "Referer",
    "User-Agent",
];
const RESPONSE_FIELDS: [&str; 11] = [
    "Content-Type",
    "Content-Language",
    "Content-Length",
    "Date",
    "Last-Modified",
    "Location",
    "Set-Cookie",
    "Set-Cookie2",
    "Servlet-Engine",
    "Status",
    "WWW-Authenticate",
];
const ATTRIBUTES: [&str; 13] = [
    "context",
    "servlet_path",
    "remote_user",
    "auth_type",
    "query_string",
    "jvm_route",
    "ssl_cert",
    "ssl_cipher",
    "ssl_session",
    "",
    "ssl_key_size",
    "secret",
    "stored_method",
];
const REQUEST_ATTRIBUTE: usize = 10;
const SSL_KEY_SIZE: usize = 11;
const ARE_DONE: usize = 0xff;
/// The attribute that differs from run to run.
const VARYING: [&[u8]; 1] = [b"AJP_REMOTE_PORT"];

/// A packet of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Packet {
    /// `SEND_HEADERS STATUS MESSAGE\nNAME: VALUE…`
    Headers(u16, Vec<u8>),
    /// `SEND_BODY_CHUNK TEXT`
    Body(Vec<u8>),
    /// `GET_BODY_CHUNK BYTES`
    GetBody(u16),
    /// `END_RESPONSE REUSE`
    End(u8),
    /// `CPONG`
    Pong,
}

impl Packet {
    /// Parses the packet's name and what it carries.
    pub fn parse(line: &str) -> Result<Packet, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let number = |text: &str| text.parse().map_err(|_| format!("{text:?} is no number"));
        match word {
            "SEND_HEADERS" => {
                let (status, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                Ok(Packet::Headers(number(status)?, unescape(rest)?))
            }
            "SEND_BODY_CHUNK" => Ok(Packet::Body(unescape(rest)?)),
            "GET_BODY_CHUNK" => Ok(Packet::GetBody(number(rest)?)),
            "END_RESPONSE" => {
                Ok(Packet::End(u8::try_from(number(rest)?).map_err(|error| error.to_string())?))
            }
            "CPONG" => Ok(Packet::Pong),
            _ => Err(format!("unknown packet {word:?}")),
        }
    }

    /// The packet, whose texts' placeholders are filled by `fill`.
    pub fn bytes(&self, fill: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let mut content = Vec::new();
        match self {
            Packet::Headers(status, text) => {
                content.push(SEND_HEADERS);
                content.extend(status.to_be_bytes());
                headers(&fill(text), &mut content);
            }
            Packet::Body(text) => {
                content.push(SEND_BODY_CHUNK);
                string(&fill(text), &mut content);
            }
            Packet::GetBody(most) => {
                content.push(GET_BODY_CHUNK);
                content.extend(most.to_be_bytes());
            }
            Packet::End(reuse) => content.extend([END_RESPONSE, *reuse]),
            Packet::Pong => content.push(CPONG),
        }
        let mut bytes = b"AB".to_vec();
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
        bytes
    }
}

fn headers(text: &[u8], content: &mut Vec<u8>) {
    let mut lines = text.split(|&byte| byte == b'\n');
    string(lines.next().unwrap_or_default(), content);
    let fields: Vec<&[u8]> = lines.collect();
    content.extend((fields.len() as u16).to_be_bytes());
    for field in fields {
        let colon = field.iter().position(|&byte| byte == b':').unwrap_or(field.len());
        let (name, value) = field.split_at(colon);
        match RESPONSE_FIELDS.iter().position(|known| known.as_bytes() == name) {
            Some(at) => content.extend((0xa001 + at as u16).to_be_bytes()),
            None => string(name, content),
        }
        string(value.strip_prefix(b": ").unwrap_or_default(), content);
    }
}

fn string(text: &[u8], content: &mut Vec<u8>) {
    content.extend((text.len() as u16).to_be_bytes());
    content.extend(text);
    content.push(0);
}

/// Takes the content of a packet off, and returns what follows.
fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, _, high, low], rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))
}

/// A request is one packet, and another one if it has a `Content-Length`.
pub fn progress(bytes: &[u8]) -> Progress {
    let Some((content, rest)) = take(bytes) else { return Progress::Partial };
    if !has_first_chunk(content) {
        return Progress::Whole(bytes.len() - rest.len());
    }
    match take(rest) {
        Some((_, rest)) => Progress::Whole(bytes.len() - rest.len()),
        None => Progress::Head,
    }
}

fn has_first_chunk(content: &[u8]) -> bool {
    length(&lines(content)).is_some_and(|length| length > 0)
}

/// `Content-Length`, which counts without a `Transfer-Encoding`.
fn length(lines: &[String]) -> Option<usize> {
    let is_chunked = lines.iter().any(|line| line.starts_with("Transfer-Encoding: "));
    let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
    length.filter(|_| !is_chunked)?.parse().ok()
}

/// A request in readable form.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// Whether it is a `CPING`.
    pub is_ping: bool,
    /// The request line, addresses, fields and attributes.
    pub lines: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether an empty packet ended the body.
    pub has_ended: bool,
    /// Whether more of the body is to come.
    pub is_incomplete: bool,
    /// A violation of the format.
    pub broken: Option<&'static str>,
}

/// Reads a request with the packets of its body that have arrived; their lengths are not shown.
pub fn read(bytes: &[u8]) -> Request {
    let mut request = Request::default();
    let Some((content, mut rest)) = take(bytes) else { return request };
    request.is_ping = content == [CPING];
    request.lines = lines(content);
    if bytes.get(..2) != Some(b"\x12\x34") {
        request.broken = Some("no packet to a container");
    }
    while let Some((content, after)) = take(rest) {
        rest = after;
        match content.split_first_chunk::<2>() {
            None if content.is_empty() => request.has_ended = true,
            Some((&size, bytes)) if usize::from(u16::from_be_bytes(size)) == bytes.len() => {
                request.has_ended |= bytes.is_empty();
                request.body.extend_from_slice(bytes);
            }
            _ => request.broken = Some("a part of the body has another length"),
        }
    }
    if !rest.is_empty() {
        request.broken = Some("a packet is cut off");
    }
    let is_chunked = request.lines.iter().any(|line| line == "Transfer-Encoding: chunked");
    let length = length(&request.lines).unwrap_or(0);
    request.is_incomplete = !request.has_ended && (is_chunked || request.body.len() < length);
    request
}

/// What a packet says, but for the parts of a body.
fn lines(content: &[u8]) -> Vec<String> {
    match content.split_first() {
        Some((&FORWARD_REQUEST, rest)) => {
            let mut lines = Vec::new();
            if forward(&mut Reader(rest), &mut lines).is_none() {
                lines.push("(cut off)".into());
            }
            lines
        }
        Some((&CPING, [])) => vec!["CPING".into()],
        _ => vec![format!("PACKET {}", escape(content))],
    }
}

fn forward(reader: &mut Reader<'_>, lines: &mut Vec<String>) -> Option<()> {
    let method = usize::from(reader.byte()?);
    let name = method.checked_sub(1).and_then(|at| METHODS.get(at).copied());
    let name = name.map_or_else(|| format!("method={method}"), str::to_owned);
    let protocol = reader.text()?;
    lines.push(format!("{name} {} {protocol}", reader.text()?));
    for name in ["remote_addr", "remote_host", "server_name"] {
        lines.push(format!("{name}={}", reader.text()?));
    }
    lines.push(format!("server_port={}", reader.number()?));
    lines.push(format!("is_ssl={}", reader.byte()?));
    for _ in 0..reader.number()? {
        let code = reader.peek()?;
        let name = match code & 0xff00 {
            0xa000 => {
                reader.number()?;
                let at = usize::from(code & 0xff).checked_sub(1)?;
                REQUEST_FIELDS.get(at).map(|name| (*name).to_owned())?
            }
            _ => reader.text()?,
        };
        lines.push(format!("{name}: {}", reader.text()?));
    }
    loop {
        let code = usize::from(reader.byte()?);
        match code {
            ARE_DONE => return Some(()),
            REQUEST_ATTRIBUTE => {
                let (name, value) = (reader.string()?, reader.string()?);
                let value = if VARYING.contains(&name) { "*".to_owned() } else { escape(value) };
                lines.push(format!("attribute {}={value}", escape(name)));
            }
            SSL_KEY_SIZE => lines.push(format!("ssl_key_size={}", reader.number()?)),
            _ => {
                let name = ATTRIBUTES.get(code.checked_sub(1)?)?;
                lines.push(format!("{name}={}", reader.text()?));
            }
        }
    }
}

/// What is left of a packet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn peek(&self) -> Option<u16> {
        self.0.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    fn number(&mut self) -> Option<u16> {
        let number = self.peek()?;
        self.0 = self.0.get(2..)?;
        Some(number)
    }

    /// A string, of which there may be none.
    fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        if length == 0xffff {
            return Some(b"(none)");
        }
        let (text, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest.strip_prefix(b"\0")?;
        Some(text)
    }

    fn text(&mut self) -> Option<String> {
        self.string().map(escape)
    }
}

/// The packets of an answer with status 200, from a container of this name.
pub fn answer(name: &str, body: &[u8]) -> Vec<u8> {
    let fields = format!("OK\nContent-Type: text/plain\nBackend: {name}");
    let mut packets = vec![Packet::Headers(200, fields.into_bytes())];
    packets.extend(body.chunks(BODY_BYTES).map(|part| Packet::Body(part.to_vec())));
    packets.push(Packet::End(1));
    packets.iter().flat_map(|packet| packet.bytes(<[u8]>::to_vec)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Packet, Progress, answer, progress, read};

    fn packet(text: &str) -> Vec<u8> {
        Packet::parse(text).expect("a packet").bytes(<[u8]>::to_vec)
    }

    fn request() -> Vec<u8> {
        let mut content =
            b"\x02\x04\0\x08HTTP/1.1\0\0\x02/x\0\0\x01c\0\xff\xff\0\x01s\0\0\x50\0".to_vec();
        content.extend(b"\0\x02\xa0\x08\0\x012\0\0\x01A\0\0\x01b\0");
        content.extend(b"\x0c\0\x01z\0\x0a\0\x0fAJP_REMOTE_PORT\0\0\x0212\0\x0b\x01\0\xff");
        let mut bytes = b"\x12\x34".to_vec();
        bytes.extend((content.len() as u16).to_be_bytes());
        bytes.extend(content);
        bytes
    }

    #[test]
    fn a_request_with_a_length_has_another_packet() {
        let mut bytes = request();
        let length = bytes.len();
        assert_eq!(progress(&bytes[..length - 1]), Progress::Partial);
        assert_eq!(progress(&bytes), Progress::Head);
        bytes.extend(b"\x12\x34\0\x04\0\x02hi");
        assert_eq!(progress(&bytes), Progress::Whole(length + 8));
        let request = read(&bytes);
        let head = ["POST /x HTTP/1.1", "remote_addr=c", "remote_host=(none)", "server_name=s"];
        assert_eq!(request.lines[..4], head);
        let rest = ["server_port=80", "is_ssl=0", "Content-Length: 2", "A: b"];
        assert_eq!(request.lines[4..8], rest);
        let rest = ["secret=z", "attribute AJP_REMOTE_PORT=*", "ssl_key_size=256"];
        assert_eq!(request.lines[8..], rest);
        assert_eq!((request.body.as_slice(), request.broken), (&b"hi"[..], None));
        assert!(!request.is_incomplete && !request.has_ended);
    }

    #[test]
    fn what_is_cut_off_is_told() {
        let mut bytes = request();
        bytes.extend(b"\x12\x34\0\x04\0");
        assert_eq!(read(&bytes).broken, Some("a packet is cut off"));
        assert_eq!(read(b"\x12\x34\0\x02\x02\x04").lines, ["(cut off)"]);
        assert!(read(b"\x12\x34\0\x01\x0a").is_ping);
    }

    #[test]
    fn packets_are_written_as_told() {
        assert_eq!(packet("SEND_BODY_CHUNK a\\n"), b"AB\0\x06\x03\0\x02a\n\0");
        assert_eq!(packet("GET_BODY_CHUNK 8186"), b"AB\0\x03\x06\x1f\xfa");
        assert_eq!(packet("END_RESPONSE 1"), b"AB\0\x02\x05\x01");
        let head = b"AB\0\x17\x04\x01\x94\0\x01N\0\0\x02\xa0\x01\0\x01t\0\0\x01B\0\0\x01c\0";
        assert_eq!(packet("SEND_HEADERS 404 N\\nContent-Type: t\\nB: c"), head);
        assert!(Packet::parse("END").is_err());
        assert_eq!(answer("tom", b"").len(), 45 + 6);
    }
}
