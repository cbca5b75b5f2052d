//! `ScriptLog`: what went in and out of a program that failed.
//!
//! Source: `log_script`, `log_scripterror`.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use rt::Work;
use server::merge::Merge;
use server::request::Request;

use super::rows::{BUFFER, LENGTH};
use crate::ctime::ctime;

/// `ScriptLog`, `ScriptLogLength`, `ScriptLogBuffer`. A host with a log of its own inherits neither
/// length nor buffer.
#[derive(Clone, Debug)]
pub struct ScriptLog {
    /// The file; `None` without a log.
    pub path: Option<PathBuf>,
    /// Nothing is written to a file that is longer, bytes.
    pub length: i64,
    /// The most bytes of a request's body.
    pub buffer: usize,
}

impl Default for ScriptLog {
    fn default() -> Self {
        ScriptLog { path: None, length: LENGTH, buffer: BUFFER }
    }
}

impl Merge for ScriptLog {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.path.is_some() { inner.clone() } else { outer.clone() }
    }
}

/// What is written about a request.
pub(super) struct Entry {
    path: PathBuf,
    length: i64,
    text: Vec<u8>,
}

impl Entry {
    /// The beginning of an entry; `None` without a log.
    pub fn new(log: &ScriptLog, request: &Request, status: u16) -> Option<Entry> {
        let path = log.path.clone()?;
        let mut text = Entry::request_line(request);
        text.extend_from_slice(format!("%% {status} ").as_bytes());
        text.extend_from_slice(&[request.resource.filename.as_slice(), b"\n"].concat());
        Some(Entry { path, length: log.length, text })
    }

    /// The first line.
    fn request_line(request: &Request) -> Vec<u8> {
        let seconds = i64::try_from(request.time_us / 1_000_000).unwrap_or(0);
        let mut text = format!("%% [{}] ", ctime(seconds)).into_bytes();
        let query = request.query();
        for part in [&request.head.method_name, &b" "[..], &request.resource.uri] {
            text.extend_from_slice(part);
        }
        if let Some(query) = query {
            text.extend_from_slice(&[b"?", query].concat());
        }
        text.extend_from_slice(&[b" ", &*request.protocol_name(), b"\n"].concat());
        text
    }

    /// Adds why the program was not started.
    pub fn error(mut self, text: &str) -> Entry {
        self.text.extend_from_slice(format!("%error\n{text}\n").as_bytes());
        self
    }

    /// Adds the fields and the beginning of the body of the request, the fields that were received,
    /// and the line that is none.
    pub fn head(mut self, request: &Request, body: &[u8], bad_line: &[u8]) -> Entry {
        self.text.extend_from_slice(b"%request\n");
        self.fields(request.head.headers_in.iter());
        if !body.is_empty() {
            self.text.extend_from_slice(&[b"\n", body, b"\n"].concat());
        }
        self.text.extend_from_slice(b"%response\n");
        self.fields(request.response.headers_out.iter());
        if !bad_line.is_empty() {
            self.text.extend_from_slice(&[bad_line, b"\n"].concat());
        }
        self
    }

    /// Adds the output that was not used.
    pub fn output(mut self, output: &[u8]) -> Entry {
        if !output.is_empty() {
            self.text.extend_from_slice(&[b"%stdout\n", output, b"\n"].concat());
        }
        self
    }

    fn fields<'f>(&mut self, fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) {
        for (name, value) in fields {
            self.text.extend_from_slice(&[name, b": ", value, b"\n"].concat());
        }
    }

    /// Appends the entry to the file, unless that is too long or can't be opened.
    pub async fn write(self, request: &Request) {
        let pool = request.engine.handle.blocking().clone();
        let _ = pool.run(Work::File, move || append(&self.path, self.length, &self.text)).await;
    }
}

/// Appends to a log, unless that is too long or can't be opened.
fn append(path: &Path, length: i64, text: &[u8]) {
    let size = std::fs::metadata(path).map_or(0, |file| file.len());
    if i64::try_from(size).is_ok_and(|size| size > length) {
        return;
    }
    if let Ok(file) = mpm::logfile::open_file(path) {
        let _ = File::from(file).write_all(text);
    }
}

/// The lines of a program's standard error, of which mod_cgi makes an entry each.
///
/// Source: `log_script_err`
pub(super) struct Messages {
    path: PathBuf,
    length: i64,
    request_line: Vec<u8>,
    file: Vec<u8>,
    /// The status of the response so far.
    pub status: Cell<u16>,
    /// Entries that follow the one of the request, while that is in the making.
    held: RefCell<Option<Vec<u8>>>,
}

impl Messages {
    /// The messages of a request's program; `None` without a log.
    pub fn new(log: &ScriptLog, request: &Request) -> Option<Messages> {
        Some(Messages {
            path: log.path.clone()?,
            length: log.length,
            request_line: Entry::request_line(request),
            file: request.resource.filename.clone(),
            status: Cell::new(request.response.status),
            held: RefCell::default(),
        })
    }

    /// Writes an entry, as the error log is written: at once, so that none is lost or late.
    pub fn write(&self, line: &[u8]) {
        let status = format!("%% {} ", self.status.get());
        let parts =
            [&*self.request_line, status.as_bytes(), &*self.file, b"\n%error\n", line, b"\n"];
        let text = parts.concat();
        match &mut *self.held.borrow_mut() {
            Some(held) => held.extend_from_slice(&text),
            None => append(&self.path, self.length, &text),
        }
    }

    /// Keeps entries for [`Messages::release`].
    pub fn hold(&self) {
        self.held.replace(Some(Vec::new()));
    }

    /// Writes what was kept.
    pub fn release(&self) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            append(&self.path, self.length, &held);
        }
    }
}
