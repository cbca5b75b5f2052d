//! Lines on their way to a sink: one write each, or gathered by `BufferedLogs`.

use std::cell::RefCell;

use server::engine::Engine;
use server::log::sinks::{Sink, SinkId};
use server::request::Request;

/// A buffer that holds this much is written, in bytes; Apache's holds 4,096.
const BUFFER_BYTES: usize = 64 * 1024;

/// The most bytes that wait in a thread's buffers; at the limit all of them are written. Each
/// virtual host can have a log of its own.
const WAITING_BYTES_MAX: usize = 4 * 1024 * 1024;

/// So many logs keep their buffers between two writes; where there are more, each gives it back.
const BUFFERS_KEPT: usize = 16;

/// Longer lines are truncated, in bytes; the limits of a request head keep lines shorter.
const LINE_BYTES_LIMIT: usize = 1024 * 1024;

/// syslog's severity of access log lines: info.
const SEVERITY: u8 = 6;

#[derive(Default)]
struct Buffers {
    line: Vec<u8>,
    /// Lines that wait, by [`SinkId::index`].
    waiting: Vec<Vec<u8>>,
    /// The sinks that lines wait for.
    sinks: Vec<SinkId>,
    bytes: usize,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// Makes a line and writes it, or keeps it for later.
pub fn write(
    request: &mut Request,
    sink: SinkId,
    is_buffered: bool,
    make: impl FnOnce(&Request, &mut Vec<u8>),
) {
    let engine = &request.engine;
    let Some(target) = engine.server.sinks.get(sink) else { return };
    BUFFERS.with_borrow_mut(|buffers| {
        if is_buffered {
            return buffers.add(engine, sink, target, |lines| make(request, lines));
        }
        let line = &mut buffers.line;
        line.clear();
        make(request, line);
        line.truncate(LINE_BYTES_LIMIT);
        line.push(b'\n');
        target.write(line, SEVERITY);
    });
}

/// Writes what waits: every second, and when a loop ends.
pub fn flush(engine: &Engine) {
    BUFFERS.with_borrow_mut(|buffers| buffers.flush(engine));
}

impl Buffers {
    /// Adds a line. What waited for the same sink is written before it would exceed what the sink
    /// takes in one piece.
    fn add(
        &mut self,
        engine: &Engine,
        sink: SinkId,
        target: &Sink,
        make: impl FnOnce(&mut Vec<u8>),
    ) {
        if self.waiting.len() <= sink.index() {
            self.waiting.resize_with(sink.index() + 1, Vec::new);
        }
        let Some(lines) = self.waiting.get_mut(sink.index()) else { return };
        let before = lines.len();
        make(lines);
        lines.truncate(before + LINE_BYTES_LIMIT);
        lines.push(b'\n');
        if before == 0 {
            self.sinks.push(sink);
        }
        self.bytes += lines.len() - before;
        if lines.len() > target.atomic_bytes() && before > 0 {
            let (waited, _) = lines.split_at(before);
            target.write(waited, SEVERITY);
            lines.drain(..before);
            self.bytes -= before;
        }
        if lines.len() >= BUFFER_BYTES.min(target.atomic_bytes()) {
            target.write(lines, SEVERITY);
            self.bytes -= lines.len();
            lines.clear();
            self.sinks.retain(|waits| *waits != sink);
        }
        if self.bytes > WAITING_BYTES_MAX {
            self.flush(engine);
        }
    }

    fn flush(&mut self, engine: &Engine) {
        let keeps = self.sinks.len() <= BUFFERS_KEPT;
        for sink in self.sinks.drain(..) {
            let Some(lines) = self.waiting.get_mut(sink.index()) else { continue };
            if let Some(target) = engine.server.sinks.get(sink) {
                target.write(lines, SEVERITY);
            }
            if keeps {
                lines.clear();
            } else {
                *lines = Vec::new();
            }
        }
        self.bytes = 0;
    }
}
