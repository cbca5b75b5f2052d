//! The value of one item of a format.

use std::io::Write;
use std::net::SocketAddr;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::line::{About, Entry};
use crate::log::format::{IdOf, What};
use crate::request::Request;

/// Appends the value of the item, which stands at this place of its format; returns false if there
/// is none.
pub(super) fn append(
    (at, what): (usize, &What),
    about: &About<'_>,
    entry: &Entry<'_>,
    out: &mut Vec<u8>,
) -> bool {
    let before = out.len();
    match about.request {
        Some(request) => append_of_request(what, request, out),
        None => out.extend_from_slice(about.facts.and_then(|facts| facts.at(at)).unwrap_or(b"")),
    }
    if out.len() > before {
        return true;
    }
    match what {
        What::Literal(text) => {
            out.extend_from_slice(text);
            return true;
        }
        What::Message => {
            message(entry, out);
            return true;
        }
        What::ClientAddress { .. } => {
            about.client.into_iter().for_each(|client| address(client.peer, out));
        }
        What::LocalAddress => {
            if let Some(client) = about.client {
                let _ = write!(out, "{}", client.local);
            }
        }
        What::Environment(_)
        | What::RequestHeader(_)
        | What::Note(_)
        | What::CanonicalName
        | What::LogId(IdOf::Request) => {}
        What::SystemError => {
            if let Some(error) = entry.error {
                let _ = write!(out, "{error}");
            }
        }
        What::SourceFile => {
            if let Some((file, line)) = entry.source {
                source(file, line, out);
            }
        }
        What::KeepAlives => {
            if let Some(client) = about.client {
                let _ = write!(out, "{}", client.keepalives.get());
            }
        }
        What::Level => out.extend_from_slice(entry.level.name().as_bytes()),
        What::LogId(IdOf::ConnectionAlone) if about.request.is_some() || about.facts.is_some() => {}
        What::LogId(_) => {
            if let Some(id) = about.client.and_then(|client| client.log_id.get()) {
                out.extend_from_slice(&id);
            }
        }
        What::Module => out.extend_from_slice(entry.module.as_bytes()),
        What::ProcessId => {
            let _ = write!(out, "{}", std::process::id());
        }
        What::ThreadId => {
            let _ = write!(out, "{}", rustix::thread::gettid().as_raw_nonzero());
        }
        What::Time { compact, micros } => time(*compact, *micros, out),
        What::ServerName => out.extend_from_slice(about.host.name()),
    }
    out.len() > before
}

fn source(file: &str, line: u32, out: &mut Vec<u8>) {
    // A module's own folder is more informative than its file.
    let start = file.find("/mod_").or_else(|| file.rfind('/')).map_or(0, |at| at + 1);
    let name = file.get(start..).unwrap_or(file);
    let _ = write!(out, "{name}({line})");
}

fn message(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if entry.number != 0 {
        let _ = write!(out, "AH{:05}: ", entry.number);
    }
    escape(entry.message, out);
}

/// Appends the value of an item that is one of the request alone.
pub(super) fn append_of_request(what: &What, request: &Request, out: &mut Vec<u8>) {
    match what {
        What::ClientAddress { peer: false } => address(request.useragent_addr, out),
        What::Environment(name) => escaped(request.env.get(name), out),
        What::RequestHeader(name) => escaped(request.head.headers_in.get(name), out),
        What::Note(name) => escaped(request.notes.get(name), out),
        What::CanonicalName => escape(request.server_name(), out),
        What::LogId(IdOf::Request) => {
            out.extend_from_slice(request.log_id().unwrap_or_default());
        }
        _ => {}
    }
}

fn address(of: SocketAddr, out: &mut Vec<u8>) {
    let _ = write!(out, "{}:{}", of.ip().to_canonical(), of.port());
}

fn time(compact: bool, micros: bool, out: &mut Vec<u8>) {
    let now = Timestamp::now().to_zoned(TimeZone::system());
    let format = match (compact, micros) {
        (false, true) => "%a %b %d %H:%M:%S.%6f %Y",
        (false, false) => "%a %b %d %H:%M:%S %Y",
        (true, true) => "%Y-%m-%d %H:%M:%S.%6f",
        (true, false) => "%Y-%m-%d %H:%M:%S",
    };
    let _ = write!(out, "{}", now.strftime(format));
}

fn escaped(value: Option<&[u8]>, out: &mut Vec<u8>) {
    if let Some(value) = value {
        escape(value, out);
    }
}

/// Escapes bytes of a client: control bytes, bytes over 126 and the backslash
/// (`ap_escape_errorlog_item`).
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0b => out.extend_from_slice(b"\\v"),
            b' '..=b'~' => out.push(*byte),
            other => {
                let _ = write!(out, "\\x{other:02x}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_of_clients_are_escaped() {
        let mut out = Vec::new();
        escape(b"a\"\\\n\x01\xff", &mut out);
        assert_eq!(out, b"a\"\\\\\\n\\x01\\xff");
    }
}
