//! Reuse of a request's memory by another request.

use wire::Table;

use super::{Depth, FileInfo, PathInfoUse, Request};
use crate::phases::matching::Matching;
use crate::request::body::Body;
use crate::request::request_body::BodyIn;

impl Request {
    /// Texts that keep their memory between requests.
    fn texts(&mut self) -> [&mut Vec<u8>; 6] {
        [
            &mut self.request_line,
            &mut self.unparsed_uri,
            &mut self.uri,
            &mut self.filename,
            &mut self.canonical_filename,
            &mut self.path_info,
        ]
    }

    /// Tables that keep their memory between requests.
    fn tables(&mut self) -> [&mut Table; 7] {
        [
            &mut self.headers_in,
            &mut self.trailers_in,
            &mut self.env,
            &mut self.notes,
            &mut self.headers_out,
            &mut self.err_headers_out,
            &mut self.trailers_out,
        ]
    }

    /// Clears everything, so that another request can use the memory; see [`Request::begin`].
    pub fn renew(&mut self) {
        for text in self.texts() {
            text.clear();
        }
        for table in self.tables() {
            table.clear();
        }
        self.forget_answer();
        self.args = None;
        self.absolute = None;
        self.body_in = BodyIn::default();
        self.no_cache = false;
        self.no_local_copy = false;
        self.user = None;
        self.auth_type = None;
        self.if_walks = None;
        self.prev = None;
        self.main = None;
        self.pure = true;
        self.facets.clear();
        self.trace = None;
        self.file_lookup = false;
        self.depth = Depth::default();
        self.matching = Matching::default();
        self.extensions.clear();
        self.log_mark.take();
    }

    /// The part of [`Request::renew`] for the file and the response.
    fn forget_answer(&mut self) {
        self.used_path_info = PathInfoUse::Default;
        self.file = FileInfo::default();
        self.handler = None;
        self.handler_of_type = false;
        self.content_type = None;
        self.content_encoding = None;
        self.content_languages.clear();
        self.status = 200;
        self.status_line = None;
        self.body = Body::Empty;
        self.mtime_us = None;
        self.bytes_sent = 0;
        self.filters.clear();
        self.allowed = wire::MethodSet::EMPTY;
        self.chunked = false;
        self.judged = None;
        self.given = None;
    }
}
