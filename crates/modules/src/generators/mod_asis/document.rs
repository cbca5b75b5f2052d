//! A file with its own header fields: its beginning in memory, and the rest on disk.

use std::fs::File;
use std::io::{self, Read};
use std::rc::Rc;

use bytes::Bytes;
use rt::{PoolError, Work};
use server::body::{Body, FileSlice};
use server::path;
use server::request::Request;

/// The maximum number of bytes of a file that are read for header fields.
const BEGINNING_BYTES: usize = 64 * 1024;

/// A file that is to be sent.
pub(super) struct Document {
    /// The beginning, or all of it.
    beginning: Bytes,
    /// The file, if there is more of it, and its size in bytes.
    more: Option<(File, u64)>,
}

/// Why a file can't be sent.
pub(super) enum Failure {
    /// It can't be opened or read.
    Open(io::Error),
    /// No thread is available to read it.
    Pool(PoolError),
}

impl Document {
    /// Reads as much of the request's file as is needed.
    pub async fn read(request: &Request) -> Result<Document, Failure> {
        let name = request.resource.filename.clone();
        if let Some((_, content)) = request.engine.content(&name) {
            return Ok(Document { beginning: content, more: None });
        }
        let pool = request.engine.handle.blocking().clone();
        let read = pool.run(Work::File, move || open(&name)).await;
        read.map_err(Failure::Pool)?.map_err(Failure::Open)
    }

    /// The beginning, with all header fields that count.
    pub fn beginning(&self) -> &[u8] {
        &self.beginning
    }

    /// What follows the first `start` bytes.
    pub fn body(self, start: usize) -> Body {
        match self.more {
            Some((file, size)) => {
                let offset = start as u64;
                let length = size.saturating_sub(offset);
                Body::File(FileSlice { file: Rc::new(file), offset, length })
            }
            None => Body::Bytes(self.beginning.slice(start.min(self.beginning.len())..)),
        }
    }
}

fn open(name: &[u8]) -> io::Result<Document> {
    let (mut file, stat) = regular::open_with_stat(path::as_path(name))?;
    let size = u64::try_from(stat.st_size).unwrap_or(0);
    let mut beginning = Vec::new();
    file.by_ref().take(BEGINNING_BYTES as u64).read_to_end(&mut beginning)?;
    let has_more = size > beginning.len() as u64;
    Ok(Document { beginning: beginning.into(), more: has_more.then_some((file, size)) })
}
