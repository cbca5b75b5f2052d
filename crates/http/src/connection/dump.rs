//! Logs what a connection receives and sends (mod_dumpio), in Apache's words: the filter, how it
//! was called, and each piece of data with its kind and size.
//!
//! Source: modules/debugging/mod_dumpio.c. A piece here is a line of a head, what was received of a
//! body, and what is sent of a response; Apache's pieces are those of its buffers.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use server::body::{Body, BodyStream, Chunk, FileSlice};
use server::connection_info::ConnectionInfo;
use server::log::Level;

use super::{Connection, send};
use crate::service::Service;

/// Bytes in a line (`dumpio_MAX_STRING_LEN`).
const LINE_BYTES: usize = 1968;

/// Bytes of a file that are read at once.
const PIECE_BYTES: u64 = 64 * 1024;

const INPUT: &str = "dumpio_in";
const OUTPUT: &str = "dumpio_out";

/// Writes the lines of a connection.
pub(super) struct Dumper {
    service: Rc<Service>,
    info: Rc<ConnectionInfo>,
}

/// Logs the lines of a head, if the input of the connection is logged.
pub(super) fn head(connection: &Connection, bytes: &[u8]) {
    if let Some(dumper) = Dumper::of_input(connection) {
        dumper.lines(bytes);
    }
}

/// Logs a response. A body that is not in memory is logged while it is sent.
pub(super) fn response(dumper: Dumper, head: &[u8], body: Body, has_body: bool) -> Body {
    dumper.call(OUTPUT);
    if !head.is_empty() {
        dumper.data(OUTPUT, "HEAP", head);
    }
    match body {
        Body::Bytes(bytes) if has_body => {
            dumper.call(OUTPUT);
            dumper.data(OUTPUT, "HEAP", &bytes);
            dumper.end();
            Body::Bytes(bytes)
        }
        Body::File(slice) if has_body => {
            dumper.call(OUTPUT);
            dumper.file(&slice);
            dumper.end();
            Body::File(slice)
        }
        Body::Empty => {
            dumper.end();
            Body::Empty
        }
        body if !has_body => {
            dumper.end();
            body
        }
        body => {
            // Its length, if known, has been sent, and counts no more.
            Body::Stream(Box::pin(Dumped { body, dumper }))
        }
    }
}

impl Dumper {
    pub fn new(service: &Rc<Service>, info: &Rc<ConnectionInfo>) -> Dumper {
        Dumper { service: service.clone(), info: info.clone() }
    }

    /// For the input of a connection; `None` if it is not logged: while a request is explained,
    /// nothing is received.
    pub fn of_input(connection: &Connection) -> Option<Dumper> {
        let is_on = connection.info.base_host.dump.input && connection.engine.recorder.is_none();
        is_on.then(|| Dumper::new(&connection.engine, &connection.info))
    }

    /// Logs what was received of a body, of which this many bytes are expected.
    pub fn body(&self, expected: u64, bytes: &[u8]) {
        self.log(format_args!("mod_dumpio: {INPUT} [readbytes-blocking] {expected} readbytes"));
        self.data(INPUT, self.input_kind(), bytes);
    }

    /// Logs what was received of a chunked body: lines, and as many bytes of data at the end.
    pub fn chunk(&self, bytes: &[u8], length: usize) {
        let (lines, data) = bytes.split_at(bytes.len().saturating_sub(length));
        self.lines(lines);
        if !data.is_empty() {
            self.body(data.len() as u64, data);
        }
    }

    fn lines(&self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.log(format_args!("mod_dumpio: {INPUT} [getline-blocking] 0 readbytes"));
            self.data(INPUT, self.input_kind(), line);
        }
    }

    fn input_kind(&self) -> &'static str {
        if self.info.tls.is_some() { "TRANSIENT" } else { "HEAP" }
    }

    fn call(&self, filter: &str) {
        self.log(format_args!("mod_dumpio: {filter}"));
    }

    fn data(&self, filter: &str, kind: &str, bytes: &[u8]) {
        self.size(filter, kind, bytes.len() as u64);
        self.text(filter, kind, bytes);
    }

    fn size(&self, filter: &str, kind: &str, bytes: u64) {
        self.log(format_args!("mod_dumpio:  {filter} (data-{kind}): {bytes} bytes"));
    }

    /// As in Apache, a line ends at a zero byte.
    fn text(&self, filter: &str, kind: &str, bytes: &[u8]) {
        for piece in bytes.chunks(LINE_BYTES) {
            let shown = piece.split(|byte| *byte == 0).next().unwrap_or_default();
            let mut line = format!("mod_dumpio:  {filter} (data-{kind}): ").into_bytes();
            line.extend_from_slice(shown);
            self.log_bytes(&line);
        }
    }

    fn file(&self, slice: &FileSlice) {
        self.size(OUTPUT, "FILE", slice.length);
        let mut rest = slice.clone();
        while rest.length > 0 {
            let length = rest.length.min(PIECE_BYTES);
            match send::read(&FileSlice { length, ..rest.clone() }) {
                Ok(bytes) => self.text(OUTPUT, "MMAP", &bytes),
                Err(_) => {
                    let what = "error reading data";
                    return self.log(format_args!("mod_dumpio:  {OUTPUT} (data-FILE): {what}"));
                }
            }
            rest.offset += length;
            rest.length -= length;
        }
    }

    /// Logs the end of a response.
    fn end(&self) {
        self.log(format_args!("mod_dumpio:  {OUTPUT} (metadata-EOS): 0 bytes"));
        self.call(OUTPUT);
        self.log(format_args!("mod_dumpio:  {OUTPUT} (metadata-EOR): 0 bytes"));
    }

    fn log(&self, message: fmt::Arguments<'_>) {
        self.log_bytes(message.to_string().as_bytes());
    }

    fn log_bytes(&self, message: &[u8]) {
        let server = &self.service.server;
        server.log_connection_bytes(&self.info, "mod_dumpio.c", Level::Trace7, 0, message);
    }
}

/// A body that is logged while it is sent.
struct Dumped {
    body: Body,
    dumper: Dumper,
}

impl BodyStream for Dumped {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let chunk = ready!(self.body.poll_chunk(cx));
        match &chunk {
            Some(Ok(Chunk::Bytes(bytes))) => {
                self.dumper.call(OUTPUT);
                self.dumper.data(OUTPUT, "HEAP", bytes);
            }
            Some(Ok(Chunk::File(slice))) => {
                self.dumper.call(OUTPUT);
                self.dumper.file(slice);
            }
            Some(Ok(Chunk::Flush)) => {
                self.dumper.log(format_args!("mod_dumpio:  {OUTPUT} (metadata-FLUSH): 0 bytes"));
            }
            Some(Err(_)) => {}
            None => self.dumper.end(),
        }
        Poll::Ready(chunk)
    }
}
