//! FastCGI as a backend sees it: requests are taken apart here and not by the codec under test, so
//! that a recording can't share its mistakes.

use crate::escape::{escape, unescape};

use super::Progress;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
const HEADER_BYTES: usize = 8;
/// The flag of `BEGIN_REQUEST` that asks for the connection to be kept.
const KEEP_CONN: u8 = 1;

/// A record of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    version: u8,
    kind: u8,
    id: u16,
    padding: u8,
    /// The length in the header, if it isn't that of the content.
    length: Option<u16>,
    content: Vec<u8>,
}

impl Record {
    /// Parses `STDOUT TEXT`, `STDERR TEXT`, `END_REQUEST [APP_STATUS [PROTOCOL_STATUS]]`, or
    /// `RECORD [type=N] [version=N] [id=N] [padding=N] [length=N] TEXT`.
    pub fn parse(line: &str) -> Result<Record, String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let of =
            |kind, content| Record { version: 1, kind, id: 1, padding: 0, length: None, content };
        match word {
            "STDOUT" => Ok(of(STDOUT, unescape(rest)?)),
            "STDERR" => Ok(of(STDERR, unescape(rest)?)),
            "END_REQUEST" => {
                let (app, protocol) = rest.split_once(' ').unwrap_or((rest, ""));
                let mut content = number::<u32>(app)?.to_be_bytes().to_vec();
                content.extend([number::<u8>(protocol)?, 0, 0, 0]);
                Ok(of(END_REQUEST, content))
            }
            "RECORD" => general(of(STDOUT, Vec::new()), rest),
            _ => Err(format!("unknown record {word:?}")),
        }
    }

    /// The record for a content whose placeholders are filled by `fill`.
    pub fn bytes(&self, fill: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
        let content = fill(&self.content);
        let length = self.length.unwrap_or(u16::try_from(content.len()).unwrap_or(u16::MAX));
        let mut bytes = vec![self.version, self.kind];
        bytes.extend(self.id.to_be_bytes());
        bytes.extend(length.to_be_bytes());
        bytes.extend([self.padding, 0]);
        bytes.extend(content);
        bytes.resize(bytes.len() + usize::from(self.padding), 0);
        bytes
    }
}

fn number<T: std::str::FromStr + Default>(text: &str) -> Result<T, String> {
    if text.is_empty() {
        return Ok(T::default());
    }
    text.parse().map_err(|_| format!("{text:?} is no number of its size"))
}

fn general(mut record: Record, mut rest: &str) -> Result<Record, String> {
    loop {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        match word.split_once('=') {
            Some(("type", value)) => record.kind = number(value)?,
            Some(("version", value)) => record.version = number(value)?,
            Some(("id", value)) => record.id = number(value)?,
            Some(("padding", value)) => record.padding = number(value)?,
            Some(("length", value)) => record.length = Some(number(value)?),
            _ => {
                record.content = unescape(rest)?;
                return Ok(record);
            }
        }
        rest = after;
    }
}

/// A received record.
struct Received<'a> {
    version: u8,
    kind: u8,
    id: u16,
    content: &'a [u8],
}

/// Takes a record off, and returns what follows.
fn take(bytes: &[u8]) -> Option<(Received<'_>, &[u8])> {
    let (&[version, kind, id_high, id_low, high, low, padding, _], rest) =
        bytes.split_first_chunk::<HEADER_BYTES>()?;
    let (content, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    let rest = rest.get(usize::from(padding)..)?;
    let id = u16::from_be_bytes([id_high, id_low]);
    Some((Received { version, kind, id, content }, rest))
}

/// A request ends with an empty record of its body, its head with one of its parameters.
pub fn progress(bytes: &[u8]) -> Progress {
    let (mut rest, mut seen) = (bytes, Progress::Partial);
    while let Some((record, after)) = take(rest) {
        rest = after;
        match record.kind {
            PARAMS if record.content.is_empty() => seen = Progress::Head,
            STDIN if record.content.is_empty() => {
                return Progress::Whole(bytes.len() - rest.len());
            }
            _ => {}
        }
    }
    seen
}

/// A request in readable form.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// The records other than parameters and body.
    pub records: Vec<String>,
    /// `NAME=value` in order.
    pub parameters: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
    /// A violation of the format.
    pub broken: Option<&'static str>,
    /// Whether the backend is to keep the connection.
    pub keeps: bool,
}

/// Reads a request as far as it has arrived. The lengths of its records are not shown.
pub fn read(bytes: &[u8]) -> Request {
    let mut request = Request::default();
    let (mut rest, mut parameters) = (bytes, Vec::new());
    while let Some((record, after)) = take(rest) {
        rest = after;
        if (record.version, record.id) != (1, 1) {
            request.broken = Some("not version 1 or not request 1");
        }
        match (record.kind, record.content) {
            (BEGIN_REQUEST, &[high, low, flags, ..]) => {
                request.keeps = flags & KEEP_CONN != 0;
                let role = u16::from_be_bytes([high, low]);
                request.records.push(format!("BEGIN_REQUEST role={role} flags={flags}"));
            }
            (PARAMS, content) => parameters.extend_from_slice(content),
            (STDIN, content) => request.body.extend_from_slice(content),
            (kind, content) => {
                request.records.push(format!("RECORD type={kind} {}", escape(content)));
            }
        }
    }
    if !rest.is_empty() {
        request.broken = Some("a record is cut off");
    }
    let mut rest = parameters.as_slice();
    while !rest.is_empty() {
        let Some((name, value, after)) = pair(rest) else {
            request.broken = Some("a parameter is cut off");
            break;
        };
        request.parameters.push(super::pairs::shown(name, value));
        rest = after;
    }
    request
}

fn pair(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = length(bytes)?;
    let (value, rest) = length(rest)?;
    let (name, rest) = rest.split_at_checked(name)?;
    let (value, rest) = rest.split_at_checked(value)?;
    Some((name, value, rest))
}

/// A length has one byte, or four if the first one's top bit is set.
fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [short @ 0..=127, rest @ ..] => Some((usize::from(*short), rest)),
        [a, b, c, d, rest @ ..] => Some((u32::from_be_bytes([a & 127, *b, *c, *d]) as usize, rest)),
        _ => None,
    }
}

/// The records of an answer with this output.
pub fn answer(output: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let parts = output.chunks(usize::from(u16::MAX)).map(|part| (STDOUT, part.to_vec()));
    let end = [(STDOUT, Vec::new()), (END_REQUEST, vec![0; 8])];
    for (kind, content) in parts.chain(end) {
        let record = Record { version: 1, kind, id: 1, padding: 0, length: None, content };
        bytes.extend(record.bytes(<[u8]>::to_vec));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::{Progress, Record, answer, progress, read};

    fn record(text: &str) -> Vec<u8> {
        Record::parse(text).expect("a record").bytes(<[u8]>::to_vec)
    }

    fn request() -> Vec<u8> {
        [
            "RECORD type=1 \\x00\\x01\\x01\\x00\\x00\\x00\\x00\\x00",
            "RECORD type=4 padding=3 \\x01\\x02Axy\\x01",
            "RECORD type=4 \\x80\\x00\\x00\\x01Bz",
            "RECORD type=4",
            "RECORD type=5 body",
            "RECORD type=5",
        ]
        .iter()
        .flat_map(|text| record(text))
        .collect()
    }

    #[test]
    fn a_request_is_read_across_records() {
        let bytes = request();
        assert_eq!(progress(&bytes), Progress::Whole(bytes.len()));
        assert_eq!(progress(&bytes[..bytes.len() - 8]), Progress::Head);
        assert_eq!(progress(&bytes[..30]), Progress::Partial);
        let request = read(&bytes);
        assert_eq!(request.records, ["BEGIN_REQUEST role=1 flags=1"]);
        assert_eq!(request.parameters, ["A=xy", "B=z"]);
        assert_eq!((request.body.as_slice(), request.broken), (&b"body"[..], None));
        assert!(request.keeps);
    }

    #[test]
    fn records_are_written_as_told() {
        assert_eq!(record("STDOUT a\\n"), b"\x01\x06\0\x01\0\x02\0\0a\n");
        assert_eq!(record("STDERR"), b"\x01\x07\0\x01\0\0\0\0");
        let end = b"\x01\x03\0\x01\0\x08\0\0\0\0\0\x03\x02\0\0\0";
        assert_eq!(record("END_REQUEST 3 2"), end);
        let odd = b"\x02\x06\0\x07\0\x09\x01\0a b\0";
        assert_eq!(record("RECORD version=2 id=7 length=9 padding=1 a b"), odd);
        assert!(Record::parse("STDIN x").is_err());
        assert_eq!(answer(b"").len(), 24);
    }

    #[test]
    fn what_is_cut_off_is_told() {
        assert_eq!(read(&request()[..30]).broken, Some("a record is cut off"));
        assert_eq!(
            read(&record("RECORD type=4 \\x01\\x09Ax")).broken,
            Some("a parameter is cut off")
        );
    }
}
