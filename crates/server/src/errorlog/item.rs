//! The value of one item of a format.

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::line::{About, Entry};
use crate::log::format::{IdOf, What};

/// Appends the item's value; returns false if there is none.
pub(super) fn append(what: &What, about: &About<'_>, entry: &Entry<'_>, out: &mut Vec<u8>) -> bool {
    let before = out.len();
    match what {
        What::Literal(text) => {
            out.extend_from_slice(text);
            return true;
        }
        What::Message => {
            message(entry, out);
            return true;
        }
        What::ClientAddress { peer } => client_address(about, *peer, out),
        What::LocalAddress => {
            if let Some(client) = about.client {
                let _ = write!(out, "{}", client.local);
            }
        }
        What::Environment(name) => escaped(about.request.and_then(|r| r.env.get(name)), out),
        What::RequestHeader(name) => {
            escaped(about.request.and_then(|r| r.head.headers_in.get(name)), out);
        }
        What::Note(name) => escaped(about.request.and_then(|r| r.notes.get(name)), out),
        What::SystemError => {
            if let Some(error) = entry.error {
                let _ = write!(out, "{error}");
            }
        }
        What::SourceFile => {
            if let Some((file, line)) = entry.source {
                // A module's own folder is more informative than its file.
                let start = file.find("/mod_").or_else(|| file.rfind('/')).map_or(0, |at| at + 1);
                let name = file.get(start..).unwrap_or(file);
                let _ = write!(out, "{name}({line})");
            }
        }
        What::KeepAlives => {
            if let Some(client) = about.client {
                let _ = write!(out, "{}", client.keepalives.get());
            }
        }
        What::Level => out.extend_from_slice(entry.level.name().as_bytes()),
        What::LogId(whose) => log_id(about, *whose, out),
        What::Module => out.extend_from_slice(entry.module.as_bytes()),
        What::ProcessId => {
            let _ = write!(out, "{}", std::process::id());
        }
        What::ThreadId => {
            let _ = write!(out, "{}", rustix::thread::gettid().as_raw_nonzero());
        }
        What::Time { compact, micros } => time(*compact, *micros, out),
        What::ServerName => out.extend_from_slice(about.host.name()),
        What::CanonicalName => {
            escaped(about.request.map(crate::request::Request::server_name), out)
        }
    }
    out.len() > before
}

fn message(entry: &Entry<'_>, out: &mut Vec<u8>) {
    if entry.number != 0 {
        let _ = write!(out, "AH{:05}: ", entry.number);
    }
    escape(entry.message, out);
}

fn client_address(about: &About<'_>, peer: bool, out: &mut Vec<u8>) {
    let address = match (about.request, about.client) {
        (Some(request), _) if !peer => request.useragent_addr,
        (_, Some(client)) => client.peer,
        _ => return,
    };
    let _ = write!(out, "{}:{}", address.ip().to_canonical(), address.port());
}

fn log_id(about: &About<'_>, whose: IdOf, out: &mut Vec<u8>) {
    match whose {
        IdOf::Request => {
            if let Some(id) = about.request.and_then(|request| request.log_id()) {
                out.extend_from_slice(id);
            }
        }
        IdOf::ConnectionAlone if about.request.is_some() => {}
        IdOf::Connection | IdOf::ConnectionAlone => {
            if let Some(id) = about.client.and_then(|client| client.log_id.get()) {
                out.extend_from_slice(&id);
            }
        }
    }
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
