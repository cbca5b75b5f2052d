//! How the values of a session are written: like a form.
//!
//! Source: `session_identity_encode`, `session_identity_decode`.

use wire::escape::urlencoded;
use wire::uri::unescape_query;

use super::Values;

/// The entry with the time at which a session ends.
const EXPIRY: &[u8] = b"expiry";

/// Writes the values.
pub(super) fn encode(values: &mut Values) -> Vec<u8> {
    if values.expiry_us != 0 {
        let is_other = |key: &[u8]| key != EXPIRY && key.eq_ignore_ascii_case(EXPIRY);
        if values.entries.iter().any(|(key, _)| is_other(key)) {
            // The end of the session would have that name, and not be read as its end.
            values.entries.unset(EXPIRY);
        }
        values.entries.set(EXPIRY, values.expiry_us.to_string().as_bytes());
    }
    let mut out = Vec::new();
    for (key, value) in values.entries.iter() {
        if !out.is_empty() {
            out.push(b'&');
        }
        urlencoded(&mut out, key);
        out.push(b'=');
        urlencoded(&mut out, value);
    }
    out
}

/// Reads values into a session. Those that are not encoded properly are left out, and one without
/// a value removes it.
pub(super) fn decode(text: &[u8], values: &mut Values) {
    for pair in text.split(|byte| *byte == b'&') {
        // As for `strtok`, nothing precedes the first equals sign.
        let start = pair.iter().position(|byte| *byte != b'=').unwrap_or(pair.len());
        let pair = pair.get(start..).unwrap_or_default();
        let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
        let (key, value) = pair.split_at(at);
        let value = value.get(1..).unwrap_or_default();
        if key.is_empty() {
            continue;
        }
        if value.is_empty() {
            values.entries.unset(key);
            continue;
        }
        let (Some(key), Some(value)) = (unescape(key), unescape(value)) else { continue };
        if key == EXPIRY {
            values.expiry_us = crate::atoi::atol(&value);
        } else {
            values.entries.set(&key, &value);
        }
    }
}

/// Unescapes a part; `None` for a bad escape, and for one of NUL.
fn unescape(text: &[u8]) -> Option<Vec<u8>> {
    let mut text = text.to_vec();
    unescape_query(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_written_like_a_form() {
        let mut values = Values::default();
        decode(b"a=b+c&&x=%26%2f&=n&e&bad=%zz&nul=%00&d=e=f&expiry=12", &mut values);
        assert_eq!(encode(&mut values), b"a=b+c&x=%26%2f&d=e%3df&expiry=12");
        decode(b"a=&x", &mut values);
        assert_eq!(encode(&mut values), b"d=e%3df&expiry=12");
    }

    #[test]
    fn a_value_does_not_hide_the_end() {
        let mut values = Values::default();
        decode(b"exPiry=2&expiry=12", &mut values);
        assert_eq!(encode(&mut values), b"expiry=12");
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_can_be_read(key in "[a-z]{1,5}", value: Vec<u8>) {
            proptest::prop_assume!(!value.contains(&0) && !value.is_empty() && key != "expiry");
            let (mut values, mut read) = (Values::default(), Values::default());
            values.set(key.as_bytes(), Some(&value));
            decode(&encode(&mut values), &mut read);
            proptest::prop_assert_eq!(read.get(key.as_bytes()), Some(value));
        }
    }
}
