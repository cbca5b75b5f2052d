//! Facts that the parser noted about a request's fields, which save looking them up.

use crate::list;
use crate::table::mark_of;
use crate::words;

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
    PRIORITY = 19, "There is a `Priority` field.";
    ACCEPT_PUSH_POLICY = 20, "There is an `Accept-Push-Policy` field.";
    UNREAD = 21, "The request line is too long, or has an invalid line end.";
    BLANK = 22, "The request line has only blanks.";
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

    /// [`HeadFlags::CLOSE`] and [`HeadFlags::KEEP_ALIVE`] for a value of `Connection`.
    pub fn of_connection(value: &[u8]) -> HeadFlags {
        let mut found = HeadFlags::NONE;
        if words::same(value, b"keep-alive") {
            return HeadFlags::KEEP_ALIVE;
        }
        for token in list::tokens(value) {
            if list::token_means(token, b"close") {
                found.set(HeadFlags::CLOSE);
            } else if list::token_means(token, b"keep-alive") {
                found.set(HeadFlags::KEEP_ALIVE);
            }
        }
        found
    }

    /// The flag for the presence of the field `name`, whose [`mark_of`] is `mark`; none for other
    /// names.
    #[inline]
    pub(crate) fn of_field(name: &[u8], mark: u32) -> HeadFlags {
        match known_field(mark) {
            Some((full, flag)) if words::same(name, full) => flag,
            _ => HeadFlags::NONE,
        }
    }
}

macro_rules! fields {
    ($($constant:ident $name:literal $flag:ident,)*) => {
        /// The field that has this mark, and its flag.
        #[inline]
        fn known_field(mark: u32) -> Option<(&'static [u8], HeadFlags)> {
            $(const $constant: u32 = mark_of($name);)*
            match mark {
                $($constant => Some(($name, HeadFlags::$flag)),)*
                _ => None,
            }
        }
    };
}

fields! {
    TE b"te" TE,
    HOST b"host" HOST,
    RANGE b"range" RANGE,
    EXPECT b"expect" EXPECT,
    COOKIE b"cookie" COOKIE,
    UPGRADE b"upgrade" UPGRADE,
    PRIORITY b"priority" PRIORITY,
    ACCEPT_PUSH_POLICY b"accept-push-policy" ACCEPT_PUSH_POLICY,
    TRAILER b"trailer" TRAILER,
    IF_MATCH b"if-match" CONDITIONAL,
    IF_RANGE b"if-range" CONDITIONAL,
    IF_NONE_MATCH b"if-none-match" CONDITIONAL,
    IF_MODIFIED_SINCE b"if-modified-since" CONDITIONAL,
    IF_UNMODIFIED_SINCE b"if-unmodified-since" CONDITIONAL,
    CONNECTION b"connection" CONNECTION,
    USER_AGENT b"user-agent" USER_AGENT,
    AUTHORIZATION b"authorization" AUTHORIZATION,
    CONTENT_LENGTH b"content-length" CONTENT_LENGTH,
    ACCEPT_ENCODING b"accept-encoding" ACCEPT_ENCODING,
    TRANSFER_ENCODING b"transfer-encoding" TRANSFER_ENCODING,
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
            ("Priority", HeadFlags::PRIORITY),
            ("Accept-Push-Policy", HeadFlags::ACCEPT_PUSH_POLICY),
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
            assert_eq!(
                HeadFlags::of_field(name.as_bytes(), mark_of(name.as_bytes())),
                flag,
                "{name}"
            );
        }
    }
}
