//! Redis' protocol, version 2 (RESP): commands as arrays of strings, and the replies to `GET` and
//! `SETEX`.
//!
//! Specification: <https://redis.io/docs/latest/develop/reference/protocol-spec/>.

/// The longest line of a reply, bytes; that of an error has a text.
pub const LINE_BYTES: usize = 1024;

/// Why a reply is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisFault {
    /// A line that the specification does not have, or a kind of reply that these commands do not.
    #[error("the reply is not of Redis' protocol")]
    Syntax,
    /// A line or a value is longer than allowed.
    #[error("the reply is too long")]
    TooLong,
}

/// A reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisReply {
    /// A value (`$`).
    Value(Vec<u8>),
    /// There is no value (`$-1`).
    Missing,
    /// The command was executed (`+`).
    Done,
    /// The server refuses, with this text (`-`).
    Refused(Vec<u8>),
}

/// Appends a command.
pub fn write_command(out: &mut Vec<u8>, words: &[&[u8]]) {
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Reads a reply at the beginning of `bytes`: `None` if more bytes are needed, otherwise the reply
/// and its length. A value may have `value_bytes`.
pub fn read_reply(
    bytes: &[u8],
    value_bytes: usize,
) -> Result<Option<(RedisReply, usize)>, RedisFault> {
    let window = bytes.get(..LINE_BYTES).unwrap_or(bytes);
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.len() < LINE_BYTES { Ok(None) } else { Err(RedisFault::TooLong) };
    };
    let (kind, text) = window.get(..end).and_then(<[u8]>::split_first).ok_or(RedisFault::Syntax)?;
    let start = end + 2;
    match kind {
        b'+' => Ok(Some((RedisReply::Done, start))),
        b'-' => Ok(Some((RedisReply::Refused(text.to_vec()), start))),
        b'$' if text == b"-1" => Ok(Some((RedisReply::Missing, start))),
        b'$' => {
            let size = std::str::from_utf8(text).ok().filter(|size| size.len() <= 9);
            let size: usize = size.and_then(|size| size.parse().ok()).ok_or(RedisFault::Syntax)?;
            if size > value_bytes {
                return Err(RedisFault::TooLong);
            }
            let Some(rest) = bytes.get(start..start + size + 2) else { return Ok(None) };
            let value = rest.strip_suffix(b"\r\n").ok_or(RedisFault::Syntax)?;
            Ok(Some((RedisReply::Value(value.to_vec()), start + size + 2)))
        }
        _ => Err(RedisFault::Syntax),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<(RedisReply, usize)>, RedisFault> {
        read_reply(text.as_bytes(), 100)
    }

    #[test]
    fn commands_are_written() {
        let mut out = Vec::new();
        write_command(&mut out, &[b"SETEX", b"k", b"30", b"x\r\n"]);
        assert_eq!(out, b"*4\r\n$5\r\nSETEX\r\n$1\r\nk\r\n$2\r\n30\r\n$3\r\nx\r\n\r\n");
    }

    #[test]
    fn replies_are_read() {
        assert_eq!(read("$3\r\na\r\n\r\n"), Ok(Some((RedisReply::Value(b"a\r\n".to_vec()), 9))));
        assert_eq!(read("$0\r\n\r\n"), Ok(Some((RedisReply::Value(Vec::new()), 6))));
        assert_eq!(read("$-1\r\n"), Ok(Some((RedisReply::Missing, 5))));
        assert_eq!(read("+OK\r\n"), Ok(Some((RedisReply::Done, 5))));
        let refused = RedisReply::Refused(b"OOM no".to_vec());
        assert_eq!(read("-OOM no\r\n"), Ok(Some((refused, 9))));
        for part in ["", "$", "$3\r\nab", "$3\r\nabc\r", "+OK\r"] {
            assert_eq!(read(part), Ok(None), "{part}");
        }
        for wrong in ["\r\n", ":1\r\n", "*0\r\n", "$x\r\n", "$-2\r\n", "$1\r\nabc"] {
            assert_eq!(read(wrong), Err(RedisFault::Syntax), "{wrong}");
        }
        assert_eq!(read("$101\r\n"), Err(RedisFault::TooLong));
        assert_eq!(read(&"+".repeat(2000)), Err(RedisFault::TooLong));
    }

    proptest::proptest! {
        #[test]
        fn no_reply_panics(bytes: Vec<u8>) {
            let _ = read_reply(&bytes, 64);
        }

        #[test]
        fn what_is_written_is_read(value: Vec<u8>) {
            let mut out = Vec::new();
            write_command(&mut out, &[&value]);
            let reply = out.strip_prefix(b"*1\r\n").unwrap();
            for end in 0..reply.len() {
                proptest::prop_assert_eq!(read_reply(&reply[..end], 1000), Ok(None));
            }
            let whole = Ok(Some((RedisReply::Value(value), reply.len())));
            proptest::prop_assert_eq!(read_reply(reply, 1000), whole);
        }
    }
}
