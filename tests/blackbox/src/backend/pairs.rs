//! SCGI and uwsgi: a block of names and values, then a body of `CONTENT_LENGTH` bytes.

use crate::escape::escape;

use super::Progress;

/// Variables that differ from run to run or between programs.
const VARYING: [&[u8]; 2] = [b"REMOTE_PORT", b"SERVER_SOFTWARE"];

/// A request as far as it has arrived.
#[derive(Debug, Default, PartialEq)]
pub struct Request {
    /// `NAME=value` in order; empty until all have arrived.
    pub parameters: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The length, once all of it is there.
    pub len: Option<usize>,
}

type Pair<'a> = (&'a [u8], &'a [u8]);

/// A variable as it is recorded.
pub fn shown(name: &[u8], value: &[u8]) -> String {
    let value = if VARYING.contains(&name) { "*".to_owned() } else { escape(value) };
    format!("{}={value}", escape(name))
}

/// How far a request of SCGI has arrived.
pub fn scgi_progress(bytes: &[u8]) -> Progress {
    of(&scgi(bytes))
}

/// How far a request of uwsgi has arrived.
pub fn uwsgi_progress(bytes: &[u8]) -> Progress {
    of(&uwsgi(bytes))
}

fn of(request: &Request) -> Progress {
    match request.len {
        Some(len) => Progress::Whole(len),
        None if request.parameters.is_empty() => Progress::Partial,
        None => Progress::Head,
    }
}

/// Reads a request of SCGI: a netstring of texts that end with NUL.
pub fn scgi(bytes: &[u8]) -> Request {
    let read = || {
        let colon = bytes.iter().position(|&byte| byte == b':')?;
        let length: usize = std::str::from_utf8(bytes.get(..colon)?).ok()?.parse().ok()?;
        let block = bytes.get(colon + 1..)?.get(..length)?;
        let body = bytes.get(colon + 2 + length..)?;
        let texts: Vec<&[u8]> = block.split(|&byte| byte == 0).collect();
        let pairs = texts.chunks_exact(2).filter_map(|pair| match pair {
            [name, value] => Some((*name, *value)),
            _ => None,
        });
        Some((pairs.collect::<Vec<Pair<'_>>>(), body))
    };
    request(bytes, read())
}

/// Reads a request of uwsgi: four bytes of header, then texts with their lengths, little-endian.
pub fn uwsgi(bytes: &[u8]) -> Request {
    let read = || {
        let (&[_, low, high, _], rest) = bytes.split_first_chunk::<4>()?;
        let (mut block, body) =
            rest.split_at_checked(usize::from(u16::from_le_bytes([low, high])))?;
        let mut pairs = Vec::new();
        while let Some((name, after)) = uwsgi_text(block)
            && let Some((value, after)) = uwsgi_text(after)
        {
            pairs.push((name, value));
            block = after;
        }
        Some((pairs, body))
    };
    request(bytes, read())
}

fn uwsgi_text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))
}

fn request(bytes: &[u8], read: Option<(Vec<Pair<'_>>, &[u8])>) -> Request {
    let Some((pairs, body)) = read else {
        return Request::default();
    };
    let length = pairs.iter().find(|(name, _)| *name == b"CONTENT_LENGTH");
    let length = length.and_then(|(_, value)| std::str::from_utf8(value).ok()?.parse().ok());
    let length: usize = length.unwrap_or(0);
    let whole = body.get(..length);
    Request {
        parameters: pairs.iter().map(|(name, value)| shown(name, value)).collect(),
        body: whole.unwrap_or(body).to_vec(),
        len: whole.map(|whole| bytes.len() - body.len() + whole.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, scgi, scgi_progress, uwsgi, uwsgi_progress};

    #[test]
    fn scgi_is_a_netstring_and_a_body() {
        let bytes = b"27:CONTENT_LENGTH\x002\0SCGI\x001\0A\0\0,hi";
        let request = scgi(bytes);
        assert_eq!(request.parameters, ["CONTENT_LENGTH=2", "SCGI=1", "A="]);
        assert_eq!((request.body.as_slice(), request.len), (&b"hi"[..], Some(bytes.len())));
        assert_eq!(scgi_progress(&bytes[..bytes.len() - 1]), Progress::Head);
        assert_eq!(scgi_progress(&bytes[..9]), Progress::Partial);
    }

    #[test]
    fn uwsgi_has_little_endian_lengths() {
        let bytes = b"\0\x0c\0\0\x01\0A\x02\0xy\x01\0B\0\0rest";
        assert_eq!(uwsgi(bytes).parameters, ["A=xy", "B="]);
        assert_eq!(uwsgi_progress(&bytes[..12]), Progress::Partial);
        assert_eq!(uwsgi_progress(bytes), Progress::Whole(bytes.len() - 4));
    }
}
