//! Facts that the parser noted about a request's fields, which save looking them up.

/// A set of facts about a request head.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct HeadFlags(u32);

macro_rules! flags {
    ($($constant:ident = $bit:literal, $doc:literal;)*) => {
        impl HeadFlags {
            $(#[doc = $doc]
            pub const $constant: HeadFlags = HeadFlags(1 << $bit);)*
        }
        const NAMES: &[(&str, HeadFlags)] =
            &[$((stringify!($constant), HeadFlags::$constant)),*];
    };
}

flags! {
    HOST = 0, "There is a `Host` field.";
    CONNECTION = 1, "There is a `Connection` field.";
    CLOSE = 2, "`Connection` has the token `close`.";
    KEEP_ALIVE = 3, "`Connection` has the token `keep-alive`.";
    UPGRADE = 4, "There is an `Upgrade` field.";
    EXPECT = 5, "There is an `Expect` field.";
    EXPECT_CONTINUE = 6, "The client waits for `100 Continue` before it sends the body.";
    CONDITIONAL = 7, "There is an `If-Match`, `If-None-Match`, `If-Modified-Since`, \
        `If-Unmodified-Since` or `If-Range` field.";
    RANGE = 8, "There is a `Range` field.";
    CONTENT_LENGTH = 9, "There is a `Content-Length` field.";
    TRANSFER_ENCODING = 10, "There is a `Transfer-Encoding` field.";
    AUTHORIZATION = 11, "There is an `Authorization` field.";
    ACCEPT_ENCODING = 12, "There is an `Accept-Encoding` field.";
    COOKIE = 13, "There is a `Cookie` field.";
    TARGET_HOST = 14, "The target has a host: it is in absolute form (`GET http://host/path`), \
        or the method is `CONNECT`.";
    CLOSE_AFTER = 15, "The connection can't be kept: both `Content-Length` and \
        `Transfer-Encoding` were sent.";
    TE = 16, "There is a `TE` field.";
    USER_AGENT = 17, "There is a `User-Agent` field.";
    TRAILER = 18, "There is a `Trailer` field.";
}

impl HeadFlags {
    /// No flag.
    pub const NONE: HeadFlags = HeadFlags(0);

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: HeadFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    pub const fn any(self, other: HeadFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Flags of either.
    pub const fn with(self, other: HeadFlags) -> HeadFlags {
        HeadFlags(self.0 | other.0)
    }

    /// Sets the flags of `other`.
    pub const fn set(&mut self, other: HeadFlags) {
        self.0 |= other.0;
    }

    /// Removes the flags of `other`.
    pub const fn unset(&mut self, other: HeadFlags) {
        self.0 &= !other.0;
    }

    /// The flag for the presence of the field `name`; none for other names.
    pub(crate) fn of_field(name: &[u8]) -> HeadFlags {
        let Some(first) = name.first() else { return HeadFlags::NONE };
        // Length and first letter leave at most one candidate.
        let (full, flag): (&[u8], HeadFlags) = match (name.len(), first | 0x20) {
            (2, b't') => (b"te", HeadFlags::TE),
            (4, b'h') => (b"host", HeadFlags::HOST),
            (5, b'r') => (b"range", HeadFlags::RANGE),
            (6, b'e') => (b"expect", HeadFlags::EXPECT),
            (6, b'c') => (b"cookie", HeadFlags::COOKIE),
            (7, b'u') => (b"upgrade", HeadFlags::UPGRADE),
            (7, b't') => (b"trailer", HeadFlags::TRAILER),
            (8, b'i') if name.get(3).is_some_and(|byte| byte | 0x20 == b'm') => {
                (b"if-match", HeadFlags::CONDITIONAL)
            }
            (8, b'i') => (b"if-range", HeadFlags::CONDITIONAL),
            (10, b'c') => (b"connection", HeadFlags::CONNECTION),
            (10, b'u') => (b"user-agent", HeadFlags::USER_AGENT),
            (13, b'i') => (b"if-none-match", HeadFlags::CONDITIONAL),
            (13, b'a') => (b"authorization", HeadFlags::AUTHORIZATION),
            (14, b'c') => (b"content-length", HeadFlags::CONTENT_LENGTH),
            (15, b'a') => (b"accept-encoding", HeadFlags::ACCEPT_ENCODING),
            (17, b'i') => (b"if-modified-since", HeadFlags::CONDITIONAL),
            (17, b't') => (b"transfer-encoding", HeadFlags::TRANSFER_ENCODING),
            (19, b'i') => (b"if-unmodified-since", HeadFlags::CONDITIONAL),
            _ => return HeadFlags::NONE,
        };
        if name.eq_ignore_ascii_case(full) { flag } else { HeadFlags::NONE }
    }
}

impl std::fmt::Debug for HeadFlags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set()
            .entries(NAMES.iter().filter(|flag| self.has(flag.1)).map(|flag| flag.0))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_flag() {
        for (name, flag) in [
            ("TE", HeadFlags::TE),
            ("Host", HeadFlags::HOST),
            ("RANGE", HeadFlags::RANGE),
            ("Expect", HeadFlags::EXPECT),
            ("Cookie", HeadFlags::COOKIE),
            ("Upgrade", HeadFlags::UPGRADE),
            ("Trailer", HeadFlags::TRAILER),
            ("If-Match", HeadFlags::CONDITIONAL),
            ("If-Range", HeadFlags::CONDITIONAL),
            ("If-None-Match", HeadFlags::CONDITIONAL),
            ("If-Modified-Since", HeadFlags::CONDITIONAL),
            ("If-Unmodified-Since", HeadFlags::CONDITIONAL),
            ("Connection", HeadFlags::CONNECTION),
            ("User-Agent", HeadFlags::USER_AGENT),
            ("authorization", HeadFlags::AUTHORIZATION),
            ("Content-Length", HeadFlags::CONTENT_LENGTH),
            ("Accept-Encoding", HeadFlags::ACCEPT_ENCODING),
            ("Transfer-Encoding", HeadFlags::TRANSFER_ENCODING),
            ("Request-Range", HeadFlags::NONE),
            ("Hose", HeadFlags::NONE),
            ("", HeadFlags::NONE),
        ] {
            assert_eq!(HeadFlags::of_field(name.as_bytes()), flag, "{name}");
        }
    }
}
