//! Coded contents of the file that a response is made from.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use rt::ChangeSource;

use super::Request;
use crate::engine::Engine;
use crate::files::mirror::{CodedContent, Fact};
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

impl Request {
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
