//! A line of the error log: composed by its format, and written in one call.

use std::sync::OnceLock;

use super::{Cause, Facts, item};
use crate::config::host::{Host, Server};
use crate::log::Level;
use crate::log::format::{Format, What};
use crate::request::Request;
use crate::request::connection_info::ConnectionInfo;

/// Most bytes of a line, which is truncated (`MAX_STRING_LEN`).
pub const LINE_BYTES_LIMIT: usize = 8192;

/// The subject of a line.
#[derive(Clone, Copy)]
pub struct About<'a> {
    /// The host, whose log it goes to.
    pub host: &'a Host,
    /// The connection.
    pub client: Option<&'a ConnectionInfo>,
    /// The request.
    pub request: Option<&'a Request>,
    /// What the line says of a request that is no longer at hand.
    pub facts: Option<&'a Facts>,
}

/// The contents of a line.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The level.
    pub level: Level,
    /// The module, such as `core` or `mpm_event`.
    pub module: &'a str,
    /// Apache's number of the event (`AH00128` is 128), or ours from 20000; 0 for none.
    pub number: u32,
    /// Why something failed, if it did.
    pub error: Option<Cause>,
    /// File and line of the source code that logs it.
    pub source: Option<(&'static str, u32)>,
    /// The message.
    pub message: &'a [u8],
}

/// Writes an entry to the log of the host. Failures have no further effect: a line that can't be
/// written is dropped and counted by the sink.
pub fn write(server: &Server, about: &About<'_>, entry: &Entry<'_>) {
    let formats = &about.host.core.error_log_formats;
    let severity = (entry.level as u8).min(Level::Debug as u8);
    let mut line = Vec::with_capacity(256);
    // The first message gives a connection or request its identifier; lines about it precede it.
    if let Some(client) = about.client
        && client.log_id.get().is_none()
    {
        client.log_id.set(Some(crate::log::fresh_log_id()));
        for format in formats.connection() {
            let about = About { request: None, facts: None, ..*about };
            if compose(format, &about, entry, &mut line) {
                emit(server, &about, &mut line, severity);
            }
        }
    }
    if let Some(request) = about.request
        && request.mark_log_id()
    {
        for format in formats.request() {
            if compose(format, about, entry, &mut line) {
                emit(server, about, &mut line, severity);
            }
        }
    }
    if compose(message_format(about.host), about, entry, &mut line) {
        emit(server, about, &mut line, severity);
    }
}

/// The format of a host's messages.
pub(super) fn message_format(host: &Host) -> &Format {
    static STANDARD: OnceLock<Format> = OnceLock::new();
    let own = host.core.error_log_formats.message();
    own.unwrap_or_else(|| STANDARD.get_or_init(Format::standard))
}

fn emit(server: &Server, about: &About<'_>, line: &mut Vec<u8>, severity: u8) {
    line.truncate(LINE_BYTES_LIMIT);
    line.push(b'\n');
    let sink = about.host.core.error_log.get().copied();
    match about.request.and_then(|request| request.depth.held_lines.as_deref()) {
        Some(held) => held.hold(sink, std::mem::take(line), severity),
        None => server.sinks.write(sink, line, severity),
    }
    line.clear();
}

/// Composes a line; returns false if it is omitted. A field with a missing item is omitted as a
/// whole. Source: `do_errorlog_format` (server/log.c).
pub(super) fn compose(
    format: &Format,
    about: &About<'_>,
    entry: &Entry<'_>,
    out: &mut Vec<u8>,
) -> bool {
    out.clear();
    let mut field_start = 0;
    let mut skipping = false;
    for (at, item) in format.items.iter().enumerate() {
        if item.starts_field {
            if !skipping {
                field_start = out.len();
            }
            skipping = false;
        }
        if skipping {
            continue;
        }
        if !matches!(item.what, What::Message) && (entry.level as u8) < item.least_level {
            out.truncate(field_start);
            skipping = true;
        } else if !item::append((at, &item.what), about, entry, out) {
            if item.required {
                return false;
            }
            if item.hyphen {
                out.push(b'-');
            } else {
                out.truncate(field_start);
                skipping = true;
            }
        }
    }
    !out.is_empty()
}
