//! Reuse of a request's memory by another request.

use super::{Depth, Request, Traffic};
use crate::phases::matching::Matching;
use crate::request::request_body::BodyIn;

impl Request {
    /// Clears everything, so that another request can use the memory; see [`Request::begin`].
    pub fn renew(&mut self) {
        self.return_to_first();
        // Every field is named: one that is forgotten here does not compile.
        #[rustfmt::skip]
        let Request {
            // [`Request::begin`] and [`Request::find_host`] set them.
            engine: _, connection: _, host: _, layer: _, plan: _, copy: _, time_us: _,
            useragent_addr: _, hostname: _, named_port: _,
            // It was cleared when it became that.
            spare: _,
            head, resource, response, depends, traffic, body_in, user, auth_type, handler,
            handler_of_type, reached_handler, env, notes, if_walks, prev, failed, main, file_lookup,
            quick_lookup, depth, matching, extensions, given, log_mark,
        } = self;
        head.renew();
        resource.renew();
        response.renew();
        depends.renew();
        *traffic = Traffic::default();
        env.clear();
        notes.clear();
        *body_in = BodyIn::default();
        (*user, *auth_type) = (None, None);
        (*handler, *handler_of_type, *reached_handler) = (None, false, false);
        *if_walks = None;
        (*prev, *failed, *main, *file_lookup) = (None, None, None, false);
        *quick_lookup = false;
        (*depth, *matching) = (Depth::default(), Matching::default());
        *given = None;
        extensions.clear();
        log_mark.take();
    }

    /// Frees memory that nothing uses, for a request that lasts long and then is logged.
    pub fn shrink(&mut self) {
        let Request { head, response, env, notes, .. } = self;
        let out = [&mut response.headers_out, &mut response.err_headers_out];
        for table in [&mut head.headers_in, env, notes].into_iter().chain(out) {
            table.shrink_to(0);
        }
        self.extensions.shrink_to_fit();
        self.spare = None;
    }

    /// Becomes the first of the requests that internal redirects replaced, whose memory fits those
    /// of clients. The memory of the last one is for the next redirect.
    fn return_to_first(&mut self) {
        let Some(mut first) = self.prev.take() else { return };
        while let Some(before) = first.prev.take() {
            first = before;
        }
        std::mem::swap(self, &mut first);
        first.renew();
        first.spare = None;
        self.spare = Some(first);
    }
}
