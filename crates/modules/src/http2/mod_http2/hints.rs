//! Responses 103, which tell a client early what it will need (RFC 8297). Source:
//! `check_early_hints`.

use server::hooks::{Bound, Step};
use server::request::Request;
use wire::chars::{is_field_value, is_token_string};
use wire::table::Overlap;
use wire::{HeadFlags, Table};

use super::Http2Module;

/// Whether there is something to tell.
pub(super) fn are_configured(bound: Bound<'_, Http2Module>) -> bool {
    lines(bound).is_some()
}

/// The fields as lines: those of the directory, or else those of the server.
pub(super) fn lines(bound: Bound<'_, Http2Module>) -> Option<Vec<u8>> {
    let Bound { server, dir } = bound;
    let resources = if dir.resources.is_empty() { &server.resources } else { &dir.resources };
    let hints = if dir.early_hints.is_empty() { &server.early_hints } else { &dir.early_hints };
    let mut fields = Table::new();
    for resource in resources.iter() {
        let critical: &[u8] = if resource.is_critical { b"; critical" } else { b"" };
        fields.add(b"Link", &[b"<", &resource.path[..], b">; rel=preload", critical].concat());
    }
    for (name, value) in hints.iter() {
        fields.add(name, value);
    }
    fields.compress(Overlap::Merge);
    let lines = write(&fields);
    (!lines.is_empty()).then_some(lines)
}

fn write(fields: &Table) -> Vec<u8> {
    let is_valid = |(name, value): &(&[u8], &[u8])| is_token_string(name) && is_field_value(value);
    let mut lines = Vec::new();
    for (name, value) in fields.iter().filter(is_valid) {
        for part in [name, b": ", value, b"\r\n"] {
            lines.extend_from_slice(part);
        }
    }
    lines
}

/// Tells a client of HTTP/2 early. The fields that the response has so far belong to the 103 alone,
/// as in Apache.
pub(super) fn send<'r>(_: Bound<'r, Http2Module>, request: &'r mut Request) -> Step<'r> {
    // Also without a body.
    let expects_continue = request.head.flags.has(HeadFlags::EXPECT_CONTINUE);
    if request.main.is_some() || expects_continue {
        return Step::DECLINED;
    }
    if request.prev.is_some() || !request.response.headers_out.is_empty() {
        // A cached response comes with the lines of its own configuration alone.
        request.depends.pure = false;
    }
    request.response.has_early_hints = true;
    if request.connection.stream.is_none() {
        return Step::DECLINED;
    }
    let Some(lines) = request.plan.http2.hints.clone() else { return Step::DECLINED };
    let mut early = std::mem::take(&mut request.response.headers_out);
    early.compress(Overlap::Merge);
    let mut text = request.connection.interim.take().into_vec();
    text.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\n");
    text.extend_from_slice(&write(&early));
    text.extend_from_slice(&lines);
    text.extend_from_slice(b"\r\n");
    request.connection.interim.set(text.into());
    Step::DECLINED
}
