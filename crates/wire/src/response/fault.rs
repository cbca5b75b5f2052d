//! What is wrong with a response, in Apache's words.

use crate::chunked::ChunkError;
use crate::status::Status;
use bstr::BString;

/// What is wrong with a response. The connection can't be used after it. Bytes of the backend are
/// as received: escape them. They are at most a line long.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The connection ended before a status line, or the line contains NUL, or is empty twice.
    #[error("Error reading from remote server")]
    NoStatusLine,
    /// A uwsgi server closed at once, or its first line is empty, too long, or contains NUL.
    #[error("uwsgi server sent no status line")]
    NoUwsgiStatusLine,
    /// The version is not HTTP/1, or the line is too long.
    #[error("Corrupt status line returned by remote server: {0}")]
    CorruptStatusLine(BString),
    /// The connection ended among the fields, or a line contains NUL.
    #[error("Error reading headers from backend")]
    Unreadable,
    /// A field is too long.
    #[error(
        "header size is over the limit allowed by ResponseFieldSize ({limit} bytes). \
        Bad response header: '{shown}[...]'"
    )]
    LineTooLong {
        /// The limit.
        limit: usize,
        /// The beginning of the field.
        shown: BString,
    },
    /// A line without a colon.
    #[error("bad HTTP/1.{minor} header")]
    NotAField {
        /// The minor version.
        minor: u8,
    },
    /// The head exceeds [`super::ResponseRules::head_bytes`]. Not in Apache.
    #[error("header of the response exceeds {0} bytes")]
    HeadTooLarge(usize),
    /// More fields than [`super::ResponseRules::fields`]. Not in Apache.
    #[error("response has more than {0} header fields")]
    TooManyFields(usize),
    /// Too many interim responses.
    #[error("Too many ({0}) interim responses from origin server")]
    TooManyInterims(u8),
    /// A 101 that was not asked for, or to another protocol.
    #[error("Unexpected Upgrade: {found} (expecting {expected})")]
    UnexpectedUpgrade {
        /// The first `Upgrade`, or `n/a`.
        found: BString,
        /// The protocol that was asked for, or `n/a`.
        expected: BString,
    },
    /// A field name is empty.
    #[error("Empty response header name, aborting request")]
    EmptyName,
    /// A field name is not a token.
    #[error("Response header name '{0}' contains invalid characters, aborting request")]
    InvalidName(BString),
    /// A field value has control characters.
    #[error(
        "Response header '{name}' value of '{value}' contains invalid characters, aborting request"
    )]
    InvalidValue {
        /// The field's name.
        name: BString,
        /// Its value.
        value: BString,
    },
    /// `Content-Length` is not a decimal number below 2⁶³.
    #[error("Invalid Content-Length")]
    InvalidLength,
    /// A chunk or a trailer is malformed.
    #[error(transparent)]
    Chunk(#[from] ChunkError),
    /// The connection ended before the body did.
    #[error("error reading response")]
    Incomplete,
    /// What Apache takes, and [`super::ResponseRules::strict`] refuses.
    #[error("ambiguous response: {0}")]
    Lie(Lie),
}

/// What makes a response mean different things to different readers. Apache 2.4.71 takes each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Lie {
    /// The first line is not a status line: HTTP/0.9.
    #[error("no status line")]
    Simple,
    /// A field is continued on the next line.
    #[error("folded field")]
    Folded,
    /// A line ends in LF alone, or a CR is within.
    #[error("line without CR LF")]
    BareLineEnd,
    /// Both `Transfer-Encoding` and `Content-Length`: Apache drops the length.
    #[error("Transfer-Encoding and Content-Length")]
    CodingAndLength,
    /// Several `Content-Length` that differ: Apache takes the first.
    #[error("several Content-Length")]
    Lengths,
    /// A coding other than chunked: Apache reads until the connection ends.
    #[error("unknown Transfer-Encoding")]
    Coding,
}

impl Fault {
    /// The status of the response to the client, if nothing of it was sent. Behind a uwsgi server
    /// Apache answers 502 for invalid names and values, too.
    pub const fn status(&self) -> Status {
        match self {
            Fault::NoUwsgiStatusLine
            | Fault::EmptyName
            | Fault::InvalidName(_)
            | Fault::InvalidValue { .. } => 500,
            _ => 502,
        }
    }

    /// The number of the message that names the cause; 0 if Apache has none.
    pub const fn log_number(&self) -> u32 {
        match self {
            Fault::NoStatusLine => 1102,
            Fault::CorruptStatusLine(_)
            | Fault::TooManyInterims(_)
            | Fault::UnexpectedUpgrade { .. } => 898,
            Fault::Unreadable => 10404,
            Fault::LineTooLong { .. } => 10124,
            Fault::NotAField { .. } => 1106,
            Fault::NoUwsgiStatusLine
            | Fault::HeadTooLarge(_)
            | Fault::TooManyFields(_)
            | Fault::Lie(_) => 0,
            Fault::EmptyName => 2428,
            Fault::InvalidName(_) => 2429,
            Fault::InvalidValue { .. } => 2430,
            Fault::InvalidLength => 1587,
            Fault::Chunk(error) => error.log_number(),
            Fault::Incomplete => 1110,
        }
    }
}
