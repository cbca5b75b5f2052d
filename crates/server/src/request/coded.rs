//! What is made of the file that a response is made from: its content coded, or parsed.

use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rt::ChangeSource;

use super::Request;
use crate::engine::Engine;
use crate::files::mirror::{CodedContent, Fact, ParsedContent};
use crate::request::body::Body;

/// The longest coded content that is cached, bytes.
const CODED_BYTES_MAX: usize = 256 * 1024;

/// The content of a file in a coding such as gzip: made once, and found by every URL of the file.
pub struct FileCoding {
    engine: Rc<Engine>,
    fact: Arc<Fact>,
    coding: u64,
}

impl FileCoding {
    /// The content, if it was made before and the file is unchanged.
    pub fn get(&self) -> Option<CodedContent> {
        self.engine.files.coded(&self.fact, self.coding)
    }

    /// Whether a content of this length would be cached.
    pub fn has_room(&self, bytes: usize) -> bool {
        bytes <= CODED_BYTES_MAX
    }

    /// Caches the content, unless the file has changed since the request came.
    pub fn put(self, bytes: Bytes, has_length: bool) {
        let ChangeSource::Watcher(watcher) = self.engine.handle.change_source() else { return };
        if self.has_room(bytes.len()) {
            let content = CodedContent { bytes, has_length };
            self.engine.files.keep_coded(watcher, self.fact, self.coding, content);
        }
    }
}

/// The parsed content of a file: parsed once, and found by every URL of the file.
pub struct FileParse(FileCoding);

impl FileParse {
    /// The parsed content, if the file is unchanged.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<Arc<T>> {
        let FileParse(FileCoding { engine, fact, coding }) = self;
        engine.files.parsed(fact, *coding)?.value.downcast().ok()
    }

    /// Caches the parsed content, which takes this memory, unless the file has changed since the
    /// request came.
    pub fn put<T: Any + Send + Sync>(self, value: Arc<T>, bytes: usize) {
        let FileParse(FileCoding { engine, fact, coding }) = self;
        let ChangeSource::Watcher(watcher) = engine.handle.change_source() else { return };
        engine.files.keep_parsed(watcher, fact, coding, ParsedContent { value, bytes });
    }
}

impl Request {
    /// The parsed content of the request's file, under the conditions of [`Request::file_coding`].
    pub fn file_parse(&self, body: &Body, parser: u64) -> Option<FileParse> {
        self.file_coding(body, parser).map(FileParse)
    }

    /// The coded content of the request's file, if `body` is that file and a watch reports its
    /// changes. `coding` is a number for everything besides the content that the result depends on.
    pub fn file_coding(&self, body: &Body, coding: u64) -> Option<FileCoding> {
        let resource = &self.resource;
        let is_whole = match body {
            Body::File(slice) => slice.offset == 0 && slice.length == resource.file.size,
            Body::Bytes(bytes) => {
                let (_, content) = self.engine.content(&resource.filename)?;
                (content.as_ptr(), content.len()) == (bytes.as_ptr(), bytes.len())
            }
            Body::Empty | Body::Parts(_) | Body::Stream(_) => false,
        };
        if !is_whole {
            return None;
        }
        let fact = self.engine.fact(&resource.filename)?;
        let is_it = fact.stat().is_ok_and(|info| info == resource.file);
        is_it.then(|| FileCoding { engine: self.engine.clone(), fact, coding })
    }
}
