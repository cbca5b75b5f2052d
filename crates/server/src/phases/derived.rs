//! Requests of the server's own: look-ups, internal redirects, twins. Each is derived from another
//! request.

use crate::phases::walk;
use crate::request::{Request, SentCredentials};

impl Request {
    /// Gives an empty request of the server's own for `uri` what all of them have. As in a client's
    /// target, a fragment does not count, nor do further slashes at the beginning (`ap_parse_uri`).
    pub(super) fn derive(&mut self, next: &mut Request, uri: &[u8]) {
        let known = uri.split(|byte| *byte == b'#').next().unwrap_or_default();
        let mark = known.iter().position(|byte| *byte == b'?').unwrap_or(known.len());
        let (path, args) = known.split_at(mark);
        let args = args.get(1..).map(<[u8]>::to_vec);
        let further = path.iter().take_while(|byte| **byte == b'/').count().saturating_sub(1);
        next.resource.uri.extend_from_slice(path.get(further..).unwrap_or_default());
        next.resource.args = args;
        next.head.unparsed_uri.extend_from_slice(uri);
        next.head.request_line.clone_from(&self.head.request_line);
        next.head.protocol = self.head.protocol;
        next.head.simple = self.head.simple;
        next.head.flags = self.head.flags;
        next.hostname.clone_from(&self.hostname);
        next.head.headers_in.extend(&self.head.headers_in);
        next.time_us = self.time_us;
        next.useragent_addr = self.useragent_addr;
        next.depth = self.depth.clone();
        next.matching = self.matching.hand_down();
        next.log_mark.clone_from(&self.log_mark);
        walk::hand_down(self, next);
        if let Some(matched) = self.kept::<walk::MatchedSections>() {
            next.keep(matched.clone());
        }
        if let Some(sent) = self.kept::<SentCredentials>() {
            next.keep(sent.clone());
        }
    }
}
