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
        // Every field is named: one that is forgotten here does not compile.
        #[rustfmt::skip]
        let Request {
            // [`Request::begin`] and [`Request::find_host`] set them.
            engine: _, connection: _, host: _, layer: _, plan: _, copy: _, time_us: _,
            useragent_addr: _, hostname: _, named_port: _,
            // [`Request::take_head`] does.
            method: _, method_name: _, header_only: _, protocol: _, simple: _, flags: _,
            // `texts` and `tables` did.
            request_line: _, unparsed_uri: _, uri: _, filename: _, canonical_filename: _,
            path_info: _, headers_in: _, trailers_in: _, env: _, notes: _, headers_out: _,
            err_headers_out: _, trailers_out: _,
            args, absolute, body_in, no_cache, no_local_copy, used_path_info, file, user,
            auth_type, handler, handler_of_type, content_type, content_encoding,
            content_languages, status, status_line, body, mtime_us, bytes_sent, filters, allowed,
            chunked, if_walks, prev, main, pure, facets, trace, file_lookup, depth, matching,
            extensions, judged, given, log_mark,
        } = self;
        (*args, *absolute) = (None, None);
        *body_in = BodyIn::default();
        (*no_cache, *no_local_copy, *file_lookup) = (false, false, false);
        (*user, *auth_type) = (None, None);
        *used_path_info = PathInfoUse::Default;
        *file = FileInfo::default();
        (*handler, *handler_of_type) = (None, false);
        (*content_type, *content_encoding) = (None, None);
        content_languages.clear();
        (*status, *status_line) = (200, None);
        (*body, *chunked) = (Body::Empty, false);
        (*mtime_us, *bytes_sent) = (None, 0);
        filters.clear();
        *allowed = wire::MethodSet::EMPTY;
        *if_walks = None;
        (*prev, *main) = (None, None);
        *depth = Depth::default();
        (*pure, *trace) = (true, None);
        (*judged, *given) = (None, None);
        facets.clear();
        *matching = Matching::default();
        extensions.clear();
        log_mark.take();
    }
}
