//! What a response says of the connection, and which of its fields end at this hop (RFC 9110
//! section 7.6.1, `ap_proxy_clear_connection_fn`).

use super::fault::Fault;
use super::field::FieldName;
use super::head::ResponseHead;
use crate::chars::is_space;

/// The tokens of a `Connection` value as Apache's proxy sees them: blanks, commas and semicolons
/// separate; quoted strings stay whole with their quotes (`ap_get_token`).
pub fn connection_tokens(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    let is_separator = |byte: u8| matches!(byte, b',' | b';') || is_space(byte);
    let mut rest = value;
    std::iter::from_fn(move || {
        let start = rest.iter().position(|byte| !is_separator(*byte))?;
        rest = rest.get(start..).unwrap_or_default();
        let mut in_quotes = false;
        let end = rest.iter().position(|byte| {
            in_quotes ^= *byte == b'"';
            !in_quotes && is_separator(*byte)
        });
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(token)
    })
}

/// Drops the fields that end at this hop. Returns whether the backend closes the connection.
pub(super) fn clear(head: &mut ResponseHead, buf: &[u8], is_of_proxy: bool) -> bool {
    let keeps_challenge = is_of_proxy && head.status == 407;
    let mut closes = false;
    if head.has(FieldName::Connection) {
        for at in 0..head.fields.len() {
            let Some(field) = head.fields.get(at).copied() else { break };
            if field.name == FieldName::Connection {
                for token in connection_tokens(&field.value(buf)) {
                    closes |= token.eq_ignore_ascii_case(b"close");
                    head.remove(buf, token);
                }
            }
        }
    }
    for field in &mut head.fields {
        field.is_kept &= match field.name {
            FieldName::Connection
            | FieldName::KeepAlive
            | FieldName::ProxyConnection
            | FieldName::Te
            | FieldName::Trailer
            | FieldName::TransferEncoding
            | FieldName::Upgrade => false,
            FieldName::ProxyAuthenticate => keeps_challenge,
            _ => true,
        };
    }
    closes
}

/// Checks that a 101 was asked for.
pub(super) fn check_upgrade(
    head: &ResponseHead,
    buf: &[u8],
    expected: Option<&[u8]>,
) -> Result<(), Fault> {
    let found = head.first(FieldName::Upgrade).map(|field| field.value(buf));
    let matches = expected
        .zip(found.as_deref())
        .is_some_and(|(expected, found)| found.eq_ignore_ascii_case(expected));
    if matches {
        return Ok(());
    }
    Err(Fault::UnexpectedUpgrade {
        found: found.as_deref().unwrap_or(b"n/a").into(),
        expected: expected.unwrap_or(b"n/a").into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_connection() {
        let of = |value: &str| {
            let tokens = connection_tokens(value.as_bytes());
            tokens.map(|token| String::from_utf8_lossy(token).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(of(" close , X-A;x\tb,,"), ["close", "X-A", "x", "b"]);
        assert_eq!(of("\"close, x\" y"), ["\"close, x\"", "y"]);
        assert_eq!(of("a\"b c"), ["a\"b c"]);
        assert!(of(" ,; ").is_empty());
    }
}
