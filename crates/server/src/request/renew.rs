//! Reuse of a request's memory by another request.

use super::{Depth, Request, Traffic};
use crate::phases::matching::Matching;
use crate::request::request_body::BodyIn;

impl Request {
    /// Clears everything, so that another request can use the memory; see [`Request::begin`].
    pub fn renew(&mut self) {
        // Every field is named: one that is forgotten here does not compile.
        #[rustfmt::skip]
        let Request {
            // [`Request::begin`] and [`Request::find_host`] set them.
            engine: _, connection: _, host: _, layer: _, plan: _, copy: _, time_us: _,
            useragent_addr: _, hostname: _, named_port: _,
            head, resource, response, depends, traffic, body_in, user, auth_type, handler,
            handler_of_type, env, notes, if_walks, prev, failed, main, file_lookup, depth,
            matching, extensions, given, log_mark,
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
        (*handler, *handler_of_type) = (None, false);
        *if_walks = None;
        (*prev, *failed, *main, *file_lookup) = (None, None, None, false);
        (*depth, *matching) = (Depth::default(), Matching::default());
        *given = None;
        extensions.clear();
        log_mark.take();
    }
}
