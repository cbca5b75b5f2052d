//! The text protocol of memcached: `get` and `set` of one key.
//!
//! Specification: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt>.

/// The longest key, bytes.
pub const KEY_BYTES: usize = 250;

/// The longest line of a reply that is understood, bytes: that of a value has a key and numbers.
pub const LINE_BYTES: usize = 512;

/// Why a reply is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemcacheFault {
    /// A line that the specification does not have here.
    #[error("the reply is not of memcached's protocol")]
    Syntax,
    /// A line or a value is longer than allowed.
    #[error("the reply is too long")]
    TooLong,
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemcacheReply {
    /// A value.
    Value(Vec<u8>),
    /// The key has no value.
    Missing,
    /// The value was stored.
    Stored,
    /// The server refuses, with this line: out of memory, too large.
    Refused(Vec<u8>),
}

/// Whether a key is one: without blanks and control characters, and not too long.
pub fn is_key(key: &[u8]) -> bool {
    (1..=KEY_BYTES).contains(&key.len()) && key.iter().all(|byte| (0x21..0x7f).contains(byte))
}

/// Appends the request for the value of a key, which has to be [one](is_key).
pub fn write_get(out: &mut Vec<u8>, key: &[u8]) {
    debug_assert!(is_key(key));
    out.extend_from_slice(&[b"get ", key, b"\r\n"].concat());
}

/// Appends the request to store a value for some seconds. 0 would mean forever, and more than 30
/// days a date.
pub fn write_set(out: &mut Vec<u8>, key: &[u8], value: &[u8], seconds: u32) {
    debug_assert!(is_key(key));
    let rest = format!(" 0 {seconds} {}\r\n", value.len());
    out.extend_from_slice(&[b"set ", key, rest.as_bytes(), value, b"\r\n"].concat());
}

/// Reads a reply at the beginning of `bytes`: `None` if more bytes are needed, otherwise the reply
/// and its length. A value may have `value_bytes`.
pub fn read_reply(
    bytes: &[u8],
    value_bytes: usize,
) -> Result<Option<(MemcacheReply, usize)>, MemcacheFault> {
    let Some((line, length)) = line(bytes)? else { return Ok(None) };
    let reply = match line {
        b"END" => MemcacheReply::Missing,
        b"STORED" => MemcacheReply::Stored,
        b"ERROR" | b"NOT_STORED" => MemcacheReply::Refused(line.to_vec()),
        _ if line.starts_with(b"SERVER_ERROR ") || line.starts_with(b"CLIENT_ERROR ") => {
            MemcacheReply::Refused(line.to_vec())
        }
        _ => return value(bytes, line, length, value_bytes),
    };
    Ok(Some((reply, length)))
}

/// A value after its line, `VALUE key flags bytes`, and the end.
fn value(
    bytes: &[u8],
    line: &[u8],
    start: usize,
    limit: usize,
) -> Result<Option<(MemcacheReply, usize)>, MemcacheFault> {
    let rest = line.strip_prefix(b"VALUE ").ok_or(MemcacheFault::Syntax)?;
    let size = rest.split(|byte| *byte == b' ').nth(2).ok_or(MemcacheFault::Syntax)?;
    let size = std::str::from_utf8(size).ok().filter(|size| size.len() <= 9);
    let size: usize = size.and_then(|size| size.parse().ok()).ok_or(MemcacheFault::Syntax)?;
    if size > limit {
        return Err(MemcacheFault::TooLong);
    }
    const END: &[u8] = b"\r\nEND\r\n";
    let rest = bytes.get(start..).unwrap_or_default();
    let (value, after) = match (rest.get(..size), rest.get(size..size + END.len())) {
        (Some(value), Some(after)) => (value, after),
        _ => return Ok(None),
    };
    if after != END {
        return Err(MemcacheFault::Syntax);
    }
    Ok(Some((MemcacheReply::Value(value.to_vec()), start + size + END.len())))
}

/// The first line without its end, and its length with it.
fn line(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, MemcacheFault> {
    let window = bytes.get(..LINE_BYTES).unwrap_or(bytes);
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LINE_BYTES { Ok(None) } else { Err(MemcacheFault::TooLong) };
    };
    Ok(Some((window.get(..end).unwrap_or_default(), end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(MemcacheReply, usize)>, MemcacheFault> {
        read_reply(text.as_bytes(), 100)
    }

    #[test]
    fn requests_are_written() {
        let mut out = Vec::new();
        write_get(&mut out, b"a:1");
        write_set(&mut out, b"a:1", b"x\r\ny", 30);
        assert_eq!(out, b"get a:1\r\nset a:1 0 30 4\r\nx\r\ny\r\n");
        assert!(is_key(b"a") && !is_key(b"") && !is_key(b"a b") && !is_key(&[b'a'; 251]));
    }

    #[test]
    fn replies_are_read() {
        let value = MemcacheReply::Value(b"ab\r\n".to_vec());
        assert_eq!(read("VALUE k 0 4\r\nab\r\n\r\nEND\r\nmore"), Ok(Some((value, 24))));
        assert_eq!(read("END\r\n"), Ok(Some((MemcacheReply::Missing, 5))));
        assert_eq!(read("STORED\r\n"), Ok(Some((MemcacheReply::Stored, 8))));
        let full = b"SERVER_ERROR out of memory".to_vec();
        assert_eq!(
            read("SERVER_ERROR out of memory\r\n"),
            Ok(Some((MemcacheReply::Refused(full), 28)))
        );
        for part in ["", "VAL", "VALUE k 0 4\r\nab\r\n\r\nEND\r", "END\r"] {
            assert_eq!(read(part), Ok(None), "{part}");
        }
        for wrong in ["what\r\n", "VALUE k 0 x\r\n", "VALUE k 0\r\n", "VALUE k 0 1\r\nabcdefgh\r\n"]
        {
            assert_eq!(read(wrong), Err(MemcacheFault::Syntax), "{wrong}");
        }
        assert_eq!(read("VALUE k 0 101\r\n"), Err(MemcacheFault::TooLong));
        assert_eq!(read(&"x".repeat(600)), Err(MemcacheFault::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn no_reply_panics(bytes: Vec<u8>) {
            let _ = read_reply(&bytes, 64);
        }

        #[test]
        fn a_value_is_read_in_pieces(value: Vec<u8>) {
            let head = format!("VALUE k 0 {}\r\n", value.len());
            let whole = [head.as_bytes(), &value, b"\r\nEND\r\n"].concat();
            for end in 0..whole.len() {
                proptest::prop_assert_eq!(read_reply(&whole[..end], 1000), Ok(None));
            }
            let read = read_reply(&whole, 1000);
            proptest::prop_assert_eq!(read, Ok(Some((MemcacheReply::Value(value), whole.len()))));
        }
    }
}
