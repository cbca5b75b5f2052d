//! Ports of `AllowCONNECT`.

use std::ops::RangeInclusive;

/// The ports without a directive: those of HTTPS and of NNTP over TLS.
const DEFAULT: [u16; 2] = [443, 563];

/// One port, or all from one to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRange(RangeInclusive<i64>);

impl PortRange {
    /// Reads `port` or `port-port`. The numbers may be larger than any port.
    ///
    /// # Errors
    /// Apache's words.
    pub fn parse(text: &[u8]) -> Result<PortRange, String> {
        let Some((first, rest)) = number(text) else {
            return Err("AllowCONNECT: port numbers must be numeric".to_owned());
        };
        // Apache shows what follows the hyphen.
        let (last, rest, shown) = match rest.strip_prefix(b"-") {
            Some(after) => match number(after) {
                Some((last, rest)) => (Some(last), rest, after),
                None => (None, after, after),
            },
            None => (Some(first), rest, text),
        };
        match (last, rest) {
            (Some(last), []) => Ok(PortRange(first..=last)),
            _ => Err(format!("Cannot parse '{}' as port number", String::from_utf8_lossy(shown))),
        }
    }
}

/// Whether the ranges, or without any the default, have a port.
pub fn allow(ranges: &[PortRange], port: u16) -> bool {
    match ranges {
        [] => DEFAULT.contains(&port),
        some => some.iter().any(|PortRange(range)| range.contains(&port.into())),
    }
}

/// The digits at the beginning, and what follows.
fn number(text: &[u8]) -> Option<(i64, &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() {
        return None;
    }
    let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
    Some((number.unwrap_or(i64::MAX), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read_as_apache_does() {
        for (text, port, is_in) in
            [("80", 80, true), ("80", 81, false), ("80-90", 85, true), ("90-80", 85, false)]
        {
            let range = PortRange::parse(text.as_bytes()).unwrap();
            assert_eq!(allow(&[range], port), is_in, "{text} {port}");
        }
        assert!(allow(&[], 443) && allow(&[], 563) && !allow(&[], 80));
        for text in ["", "x", "-1"] {
            let why = PortRange::parse(text.as_bytes()).unwrap_err();
            assert_eq!(why, "AllowCONNECT: port numbers must be numeric");
        }
        for (text, shown) in [("80x", "80x"), ("80-", ""), ("80-x", "x"), ("80-90-100", "90-100")] {
            let why = PortRange::parse(text.as_bytes()).unwrap_err();
            assert_eq!(why, format!("Cannot parse '{shown}' as port number"));
        }
    }
}
