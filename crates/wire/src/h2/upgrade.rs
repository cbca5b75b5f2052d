//! The beginning of a connection that was HTTP/1.1 (RFC 7540 section 3.2).

use super::connection::{Connection, Failure, Limits};
use super::stream::{State, Stream};
use super::window::SendWindow;

impl Connection {
    /// Returns a connection whose stream 1 is a request of HTTP/1.1 without a body, in which the
    /// client has sent `settings`, the value of `HTTP2-Settings`. No event tells of the request.
    ///
    /// `None` if the settings are invalid.
    pub fn upgraded(limits: Limits, settings: &[u8], now_ms: u64) -> Option<Connection> {
        let payload = decode_base64url(settings)?;
        let mut connection = Connection::new(limits, now_ms);
        connection.apply_settings(&payload).map_err(|Failure(_, why)| why).ok()?;
        connection.events.clear();
        (connection.last, connection.seen) = (1, 1);
        let window = SendWindow::new(connection.peer.initial_window_bytes);
        let own = connection.window_of_new();
        connection.streams.push(Stream::new(1, State::PeerEnded, window, own));
        Some(connection)
    }
}

/// Decodes base64 of the alphabet for URLs, without padding or with it (RFC 4648 section 5).
fn decode_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let (mut bits, mut held, mut bytes) = (0u32, 0, Vec::new());
    for digit in text.iter().take_while(|byte| **byte != b'=') {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_decoded() {
        assert_eq!(decode_base64url(b"").unwrap(), b"");
        assert_eq!(
            decode_base64url(b"AAMAAABkAAQAAP__").unwrap(),
            b"\0\x03\0\0\0\x64\0\x04\0\0\xff\xff"
        );
        assert_eq!(decode_base64url(b"Zg==").unwrap(), b"f");
        assert_eq!(decode_base64url(b"a+b"), None);
        assert!(Connection::upgraded(Limits::default(), b"AAMAAABkAAQAAP__", 0).is_some());
        assert!(Connection::upgraded(Limits::default(), b"AAMA", 0).is_none());
    }
}
