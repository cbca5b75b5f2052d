//! `ScriptLog`: what went in and out of a program that failed.
//!
//! Source: `log_script`, `log_scripterror`.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

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
        text.extend_from_slice(format!("%% {status} ").as_bytes());
        text.extend_from_slice(&[request.resource.filename.as_slice(), b"\n"].concat());
        Some(Entry { path, length: log.length, text })
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
        let written = pool.run(Work::File, move || {
            let Entry { path, length, text } = self;
            let size = std::fs::metadata(&path).map_or(0, |file| file.len());
            if i64::try_from(size).is_ok_and(|size| size > length) {
                return;
            }
            if let Ok(file) = mpm::logfile::open_file(&path) {
                let _ = File::from(file).write_all(&text);
            }
        });
        let _ = written.await;
    }
}
