//! What a program writes to its standard error, line by line in the log of the request's host.

use std::rc::Rc;
use std::sync::Arc;

use bstr::ByteSlice;
use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::errorlog::Facts;
use server::host::Host;
use server::log::Level;
use server::request::Request;

/// The longest line (`HUGE_STRING_LEN`); a longer one is several.
const LINE_BYTES: usize = 8191;

/// Lines on their way to the log.
pub(crate) struct ErrorLines {
    engine: Rc<Engine>,
    host: Arc<Host>,
    connection: Rc<ConnectionInfo>,
    module: &'static str,
    /// The number of a line's message.
    number: u32,
    /// What precedes a line.
    program: Vec<u8>,
    /// What else lines say of the request.
    facts: Facts,
    /// The beginning of a line.
    pub buffer: Vec<u8>,
    /// Where lines go beside the error log.
    pub copy: Option<Box<dyn Fn(&[u8])>>,
}

impl ErrorLines {
    /// The lines of a request's program, as messages of `module` with this number.
    pub fn new(request: &Request, module: &'static str, number: u32, program: &[u8]) -> ErrorLines {
        ErrorLines {
            engine: request.engine.clone(),
            host: request.host.clone(),
            connection: request.connection.clone(),
            module,
            number,
            program: [b"stderr from ", program, b": "].concat(),
            facts: Facts::of(request),
            buffer: Vec::new(),
            copy: None,
        }
    }

    /// The file of the module that logs.
    pub fn module(&self) -> &'static str {
        self.module
    }

    /// Logs the whole lines in the buffer.
    pub fn log_whole(&mut self) {
        let mut rest = std::mem::take(&mut self.buffer);
        let mut start = 0;
        loop {
            let unread = rest.get(start..).unwrap_or_default();
            let end = unread.find_byte(b'\n').filter(|end| *end <= LINE_BYTES);
            match end {
                Some(end) => {
                    let line = unread.get(..end).unwrap_or_default();
                    self.log(line.strip_suffix(b"\r").unwrap_or(line));
                    start += end + 1;
                }
                None if unread.len() > LINE_BYTES => {
                    self.log(unread.get(..LINE_BYTES).unwrap_or_default());
                    start += LINE_BYTES;
                }
                None => break,
            }
        }
        rest.drain(..start);
        self.buffer = rest;
    }

    /// Logs the last line, which has no end.
    pub fn log_rest(&mut self) {
        self.log_whole();
        let rest = std::mem::take(&mut self.buffer);
        if !rest.is_empty() {
            self.log(&rest);
        }
    }

    /// Logs a line.
    pub fn log(&self, line: &[u8]) {
        self.log_about(Level::Error, self.number, &[&self.program, line].concat());
        if let Some(copy) = &self.copy {
            copy(line);
        }
    }

    /// Logs something about the request.
    pub fn log_about(&self, level: Level, number: u32, text: &[u8]) {
        let about = (&*self.host, &*self.connection, Some(&self.facts));
        self.engine.server.log_client(about, self.module, level, number, None, text);
    }
}
