//! A field of a response head: places in the buffer, and what its name means to a proxy.

use std::borrow::Cow;

use crate::words;

/// The names that a proxy treats in a way of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FieldName {
    /// Any other name.
    Other,
    /// `Connection`
    Connection,
    /// `Content-Length`
    ContentLength,
    /// `Content-Location`
    ContentLocation,
    /// `Content-Type`
    ContentType,
    /// `Date`
    Date,
    /// `Destination`
    Destination,
    /// `Expires`
    Expires,
    /// `Keep-Alive`
    KeepAlive,
    /// `Last-Modified`
    LastModified,
    /// `Location`
    Location,
    /// `Proxy-Authenticate`
    ProxyAuthenticate,
    /// `Proxy-Connection`
    ProxyConnection,
    /// `Set-Cookie`
    SetCookie,
    /// `TE`
    Te,
    /// `Trailer`
    Trailer,
    /// `Transfer-Encoding`
    TransferEncoding,
    /// `Upgrade`
    Upgrade,
    /// `URI`
    Uri,
    /// `Warning`
    Warning,
}

impl FieldName {
    /// What a name means, ignoring case.
    pub fn of(name: &[u8]) -> FieldName {
        let Some(first) = name.first() else { return FieldName::Other };
        // Length and first letter leave at most one candidate.
        let (full, meaning): (&[u8], FieldName) = match (name.len(), first | 0x20) {
            (2, b't') => (b"te", FieldName::Te),
            (3, b'u') => (b"uri", FieldName::Uri),
            (4, b'd') => (b"date", FieldName::Date),
            (7, b'e') => (b"expires", FieldName::Expires),
            (7, b't') => (b"trailer", FieldName::Trailer),
            (7, b'u') => (b"upgrade", FieldName::Upgrade),
            (7, b'w') => (b"warning", FieldName::Warning),
            (8, b'l') => (b"location", FieldName::Location),
            (10, b'c') => (b"connection", FieldName::Connection),
            (10, b'k') => (b"keep-alive", FieldName::KeepAlive),
            (10, b's') => (b"set-cookie", FieldName::SetCookie),
            (11, b'd') => (b"destination", FieldName::Destination),
            (12, b'c') => (b"content-type", FieldName::ContentType),
            (13, b'l') => (b"last-modified", FieldName::LastModified),
            (14, b'c') => (b"content-length", FieldName::ContentLength),
            (16, b'c') => (b"content-location", FieldName::ContentLocation),
            (16, b'p') => (b"proxy-connection", FieldName::ProxyConnection),
            (17, b't') => (b"transfer-encoding", FieldName::TransferEncoding),
            (18, b'p') => (b"proxy-authenticate", FieldName::ProxyAuthenticate),
            _ => return FieldName::Other,
        };
        if words::same(name, full) { meaning } else { FieldName::Other }
    }

    /// Its bit in [`super::ResponseHead::seen`].
    pub const fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// A field: offsets into the buffer that was parsed.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub(super) start: u32,
    pub(super) name_len: u32,
    pub(super) value_at: u32,
    pub(super) value_len: u32,
    /// The end of its last line.
    pub(super) next: u32,
    /// What its name means.
    pub name: FieldName,
    /// Whether it goes on to the client. Set it to `false` to drop the field.
    pub is_kept: bool,
    /// Whether its lines are `name: value` and CR LF, and can be sent as they are.
    pub(super) is_canonical: bool,
    pub(super) is_folded: bool,
    /// The name is a token.
    pub(super) has_valid_name: bool,
    /// The value is without control characters.
    pub(super) has_valid_value: bool,
}

impl Field {
    /// The name as received.
    pub fn name<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        span(buf, self.start, self.name_len)
    }

    /// The value without blanks around it. Lines that continue it are joined as in Apache: the line
    /// ends go, the blanks stay.
    pub fn value<'b>(&self, buf: &'b [u8]) -> Cow<'b, [u8]> {
        let raw = span(buf, self.value_at, self.value_len);
        if !self.is_folded {
            return Cow::Borrowed(raw);
        }
        let mut joined = Vec::with_capacity(raw.len());
        let mut lines = raw.split(|byte| *byte == b'\n').peekable();
        while let Some(line) = lines.next() {
            let is_last = lines.peek().is_none();
            joined.extend_from_slice(if is_last { line } else { without_cr(line) });
        }
        Cow::Owned(joined)
    }

    /// Appends the field as `name: value` and CR LF.
    pub fn write(&self, buf: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(self.name(buf));
        out.extend_from_slice(b": ");
        out.extend_from_slice(&self.value(buf));
        out.extend_from_slice(b"\r\n");
    }
}

pub(super) fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn span(buf: &[u8], at: u32, len: u32) -> &[u8] {
    buf.get(at as usize..at as usize + len as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_matter_are_found() {
        for name in [
            "TE",
            "uri",
            "DATE",
            "Expires",
            "Trailer",
            "Upgrade",
            "Warning",
            "Location",
            "Connection",
            "Keep-Alive",
            "Set-Cookie",
            "Destination",
            "Content-Type",
            "Last-Modified",
            "Content-Length",
            "Content-Location",
            "Proxy-Connection",
            "Transfer-Encoding",
            "Proxy-Authenticate",
        ] {
            assert_ne!(FieldName::of(name.as_bytes()), FieldName::Other, "{name}");
        }
        for name in ["", "X", "Content-Lengtx", "Set-Cookie2", "transfer_encoding"] {
            assert_eq!(FieldName::of(name.as_bytes()), FieldName::Other, "{name}");
        }
    }
}
