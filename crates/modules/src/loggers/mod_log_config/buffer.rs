//! Writes lines to a log: one write each, or gathered by `BufferedLogs`.

use std::cell::RefCell;

use server::engine::Engine;
use server::request::Request;
use server::sinks::SinkId;

/// The size in bytes at which a buffer is written.
const BUFFER_BYTES: usize = 64 * 1024;

/// Most bytes of a line, which is truncated. The limits of a request head keep lines shorter.
const LINE_BYTES_LIMIT: usize = 1024 * 1024;

/// The syslog severity of access log lines: info.
const SEVERITY: u8 = 6;

#[derive(Default)]
struct Buffers {
    line: Vec<u8>,
    waiting: Vec<(SinkId, Vec<u8>)>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Formats a line, and writes or buffers it.
pub fn write(
    request: &mut Request,
    sink: SinkId,
    is_buffered: bool,
    make: impl FnOnce(&Request, &mut Vec<u8>),
) {
    BUFFERS.with_borrow_mut(|buffers| {
        if !is_buffered {
            let line = &mut buffers.line;
            line.clear();
            make(request, line);
            line.truncate(LINE_BYTES_LIMIT);
            line.push(b'\n');
            send(&request.engine, sink, line);
            return;
        }
        let place = buffers.waiting.iter().position(|(of, _)| *of == sink);
        let place = place.unwrap_or_else(|| {
            buffers.waiting.push((sink, Vec::with_capacity(BUFFER_BYTES)));
            buffers.waiting.len() - 1
        });
        let Some((_, lines)) = buffers.waiting.get_mut(place) else { return };
        let start = lines.len();
        make(request, lines);
        lines.truncate(start + LINE_BYTES_LIMIT);
        lines.push(b'\n');
        if lines.len() >= BUFFER_BYTES {
            send(&request.engine, sink, lines);
            lines.clear();
        }
    });
}

/// Writes buffered lines. Called every second, and when a loop ends.
pub fn flush(engine: &Engine) {
    BUFFERS.with_borrow_mut(|buffers| {
        for (sink, lines) in &mut buffers.waiting {
            if !lines.is_empty() {
                send(engine, *sink, lines);
                lines.clear();
            }
        }
    });
}

fn send(engine: &Engine, sink: SinkId, lines: &[u8]) {
    if let Some(sink) = engine.server.sinks.get(sink) {
        sink.write(lines, SEVERITY);
    }
}
