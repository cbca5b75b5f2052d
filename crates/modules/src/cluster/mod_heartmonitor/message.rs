//! What servers say of themselves: `name=value` words that `&` separates.
//!
//! Source: `qs_to_table`, `hm_processmsg`, `hm_handler`.

use wire::uri::{Slashes, unescape_url};

use crate::atoi::atol;

/// The longest message, bytes: what follows does not count.
pub(super) const BYTES: usize = 1000;

/// The port of servers that name none.
pub(super) const DEFAULT_PORT: u32 = 80;

/// A server, by its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// Its address.
    pub ip: Vec<u8>,
    /// Idle threads.
    pub ready: i32,
    /// Busy ones.
    pub busy: i32,
    /// Its port, which nothing uses.
    pub port: u32,
    /// When it was heard, seconds since 1970.
    pub seen_s: u64,
}

/// The words of a message by their names; of several with one name the last counts.
#[derive(Debug, Default)]
pub(super) struct Words(Vec<(Vec<u8>, Vec<u8>)>);

impl Words {
    /// Parses a message; a word without a value has the value 1.
    pub fn parse(text: &[u8]) -> Words {
        let text = text.get(..BYTES).unwrap_or(text);
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let mut words = Words::default();
        for word in text.split(|byte| *byte == b'&').filter(|word| !word.is_empty()) {
            let at = word.iter().position(|byte| *byte == b'=');
            let (name, value) = match at {
                Some(at) => (word.get(..at), word.get(at + 1..)),
                None => (Some(word), Some(&b"1"[..])),
            };
            let (name, value) = (unescaped(name), unescaped(value));
            words.0.retain(|(other, _)| !other.eq_ignore_ascii_case(&name));
            words.0.push((name, value));
        }
        words
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        let is_it = |(other, _): &&(Vec<u8>, Vec<u8>)| other.eq_ignore_ascii_case(name.as_bytes());
        self.0.iter().find(is_it).map(|(_, value)| value.as_slice())
    }
}

/// A value that is a number as a whole, or empty, which is 0.
pub(super) fn number(value: &[u8]) -> Option<i64> {
    let digits = value.trim_ascii_start();
    let digits = digits.strip_prefix(b"-").or_else(|| digits.strip_prefix(b"+")).unwrap_or(digits);
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    (is_number || value.is_empty()).then(|| atol(value))
}

fn unescaped(text: Option<&[u8]>) -> Vec<u8> {
    let mut text = text.unwrap_or_default().to_vec();
    // A bad escape is kept as it is.
    let _ = unescape_url(&mut text, Slashes::Decode);
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text.truncate(end);
    text
}

impl Heartbeat {
    /// The line of a file, without its end.
    pub fn line(&self, now_s: u64) -> String {
        let ip = bstr::BStr::new(&self.ip);
        let (ready, busy) = (self.ready as u32, self.busy as u32);
        let (age, port) = (now_s.saturating_sub(self.seen_s), self.port);
        format!("{ip} &ready={ready}&busy={busy}&lastseen={age}&port={port}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read() {
        let words = Words::parse(b"v=1&Ready=3%34&busy&busy=2&&x=%zz\0&ready=9");
        assert_eq!(words.get("ready"), Some(&b"34"[..]));
        assert_eq!(words.get("busy"), Some(&b"2"[..]));
        assert_eq!(words.get("x"), Some(&b"%zz"[..]));
        assert_eq!(words.get("port"), None);
        assert_eq!(Words::parse(b"busy").get("busy"), Some(&b"1"[..]));
        let long = [&[b'a'; BYTES][..], b"&busy=1"].concat();
        assert_eq!(Words::parse(&long).get("busy"), None);
    }

    #[test]
    fn numbers_are_whole() {
        for (text, value) in [("7", Some(7)), (" -3", Some(-3)), ("", Some(0)), ("3z", None)] {
            assert_eq!(number(text.as_bytes()), value, "{text}");
        }
        assert_eq!(number(b" "), None);
    }
}
