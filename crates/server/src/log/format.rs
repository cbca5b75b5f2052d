//! `ErrorLogFormat`: its items, parsed.
//!
//! Source: `parse_errorlog_string`, `parse_errorlog_item` (server/core.c).

use std::sync::Arc;

use super::Level;
use crate::merge::{Merge, Setting};

/// The purpose of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatKind {
    /// Every line.
    Message,
    /// Lines that describe each connection once.
    Connection,
    /// Lines that describe each request once.
    Request,
}

/// A parsed format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    pub(crate) items: Vec<Item>,
}

/// An item of a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) what: What,
    /// Whether a new field starts here: a missing value omits the whole field.
    pub(crate) starts_field: bool,
    /// `-`: a missing value is shown as a hyphen.
    pub(crate) hyphen: bool,
    /// `+`: the whole line is omitted if this is missing.
    pub(crate) required: bool,
    /// The item is omitted from messages more urgent than this level number.
    pub(crate) least_level: u8,
}

/// The value of an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Text of the format itself.
    Literal(Vec<u8>),
    /// `%M`
    Message,
    /// `%a`: the client; `%{c}a`: the connection's peer.
    ClientAddress { peer: bool },
    /// `%A`
    LocalAddress,
    /// `%{NAME}e`
    Environment(Vec<u8>),
    /// `%E`
    SystemError,
    /// `%F`
    SourceFile,
    /// `%{NAME}i`
    RequestHeader(Vec<u8>),
    /// `%k`
    KeepAlives,
    /// `%l`
    Level,
    /// `%L`, `%{c}L`, `%{C}L`
    LogId(IdOf),
    /// `%m`
    Module,
    /// `%{NAME}n`
    Note(Vec<u8>),
    /// `%P`
    ProcessId,
    /// `%T`, `%{g}T`
    ThreadId,
    /// `%t`: compact ISO 8601, microseconds
    Time { compact: bool, micros: bool },
    /// `%v`
    ServerName,
    /// `%V`
    CanonicalName,
}

/// The subject of `%L`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdOf {
    /// The request's.
    Request,
    /// The connection's.
    Connection,
    /// The connection, if the message is not about a request.
    ConnectionAlone,
}

impl Format {
    /// Whether it contains `%M`.
    pub fn has_message(&self) -> bool {
        self.items.iter().any(|item| item.what == What::Message)
    }

    /// Whether an item has the flag `+`: a line without a value for it is omitted.
    pub fn has_required(&self) -> bool {
        self.items.iter().any(|item| item.required)
    }

    /// The default format of messages.
    pub fn standard() -> Format {
        const TEXT: &[u8] = b"[%{u}t] [%-m:%l] [pid %P:tid %T] %7F: %E: [client\\ %a] %M% \
                              ,\\ referer:\\ %{Referer}i";
        parse_format(TEXT).unwrap_or(Format { items: Vec::new() })
    }
}

/// The formats of a host and their inheritance.
#[derive(Clone, Debug, Default)]
pub struct Formats {
    message: Setting<Arc<Format>>,
    connection: Vec<Arc<Format>>,
    request: Vec<Arc<Format>>,
}

impl Formats {
    /// Adds a format: the last one for messages is used, those for connections and requests
    /// accumulate.
    pub fn add(&mut self, kind: FormatKind, format: Format) {
        match kind {
            FormatKind::Message => self.message.set(Arc::new(format)),
            FormatKind::Connection => self.connection.push(Arc::new(format)),
            FormatKind::Request => self.request.push(Arc::new(format)),
        }
    }

    /// The format of messages, if set.
    pub fn message(&self) -> Option<&Format> {
        self.message.get().map(|format| &**format)
    }

    /// The lines that describe each connection once.
    pub fn connection(&self) -> &[Arc<Format>] {
        &self.connection
    }

    /// The lines that describe each request once.
    pub fn request(&self) -> &[Arc<Format>] {
        &self.request
    }
}

impl Merge for Formats {
    fn merge(outer: &Self, inner: &Self) -> Self {
        let either = |outer: &Vec<Arc<Format>>, inner: &Vec<Arc<Format>>| {
            if inner.is_empty() { outer.clone() } else { inner.clone() }
        };
        Formats {
            message: Merge::merge(&outer.message, &inner.message),
            connection: either(&outer.connection, &inner.connection),
            request: either(&outer.request, &inner.request),
        }
    }
}

/// Parses a format.
///
/// # Errors
/// Apache's message for an unknown item or an unterminated argument.
pub fn parse_format(text: &[u8]) -> Result<Format, String> {
    let mut items = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (item, after) =
            if rest.first() == Some(&b'%') { directive(rest)? } else { literal(rest) };
        items.push(item);
        rest = after;
    }
    Ok(Format { items })
}

fn plain(what: What) -> Item {
    Item { what, starts_field: false, hyphen: false, required: false, least_level: 0 }
}

/// Text up to the next blank or percent sign; a leading blank begins a field.
fn literal(text: &[u8]) -> (Item, &[u8]) {
    let mut out = Vec::new();
    let mut item = plain(What::Message);
    let mut rest = text;
    if let Some((b' ', after)) = rest.split_first() {
        item.starts_field = true;
        out.push(b' ');
        rest = after;
    }
    loop {
        match rest {
            [] | [b'%' | b' ', ..] => break,
            [b'\\', escaped, after @ ..] => {
                out.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    item.what = What::Literal(out);
    (item, rest)
}

/// `%[-+][digits][{argument}]letter`
fn directive(text: &[u8]) -> Result<(Item, &[u8]), String> {
    const CUT: &str = "Ran off end of error log format parsing args to some directive";
    let mut item = plain(What::Message);
    let mut argument: Option<&[u8]> = None;
    let mut rest = text.get(1..).unwrap_or_default();
    loop {
        let Some((byte, after)) = rest.split_first() else { return Err(CUT.to_owned()) };
        match byte {
            b'-' => item.hyphen = true,
            b'+' => item.required = true,
            b'0'..=b'9' => {
                let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let number = std::str::from_utf8(rest.get(..digits).unwrap_or_default());
                let number = number.ok().and_then(|text| text.parse::<u8>().ok()).unwrap_or(0);
                item.least_level = number.min(Level::Trace8 as u8);
                rest = rest.get(digits..).unwrap_or_default();
                continue;
            }
            b'{' => {
                let end = after.iter().position(|byte| *byte == b'}').ok_or(CUT)?;
                argument = after.get(..end);
                rest = after.get(end + 1..).unwrap_or_default();
                continue;
            }
            letter => {
                item.what = what(*letter, argument.unwrap_or_default(), &mut item.starts_field)?;
                return Ok((item, after));
            }
        }
        rest = after;
    }
}

fn what(letter: u8, argument: &[u8], starts_field: &mut bool) -> Result<What, String> {
    let name = || argument.to_vec();
    Ok(match letter {
        b'%' => What::Literal(b"%".to_vec()),
        b' ' => {
            *starts_field = true;
            What::Literal(Vec::new())
        }
        b'M' => What::Message,
        b'a' => What::ClientAddress { peer: argument == b"c" },
        b'A' => What::LocalAddress,
        b'e' => What::Environment(name()),
        b'E' => What::SystemError,
        b'F' => What::SourceFile,
        b'i' => What::RequestHeader(name()),
        b'k' => What::KeepAlives,
        b'l' => What::Level,
        b'L' if argument == b"c" => What::LogId(IdOf::Connection),
        b'L' if argument == b"C" => What::LogId(IdOf::ConnectionAlone),
        b'L' => What::LogId(IdOf::Request),
        b'm' => What::Module,
        b'n' => What::Note(name()),
        b'P' => What::ProcessId,
        b'T' => What::ThreadId,
        b't' => What::Time { compact: argument.contains(&b'c'), micros: argument.contains(&b'u') },
        b'v' => What::ServerName,
        b'V' => What::CanonicalName,
        other => {
            let shown = char::from(other);
            return Err(format!("Unrecognized error log format directive %{shown}"));
        }
    })
}
