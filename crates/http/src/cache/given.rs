//! The properties of a cached response that the log of a request shows.

use std::rc::Rc;

use server::request::{CachedHead, Request};

use super::response::CachedResponse;
use super::texts::Text;

impl CachedResponse {
    /// Whether the log shows nothing of a request but its head and what was sent.
    pub fn is_logged_by_head(&self) -> bool {
        self.plan.log_reads_head_alone && self.redirected.is_empty()
    }

    /// Puts a request that this response was sent for under the response's configuration.
    pub fn give_place_to(&self, request: &mut Request) {
        request.layer = self.layer.clone();
        request.plan = self.plan.clone();
    }

    /// Fills in the properties of a request that this response was sent for, for the log.
    pub fn give_to(self: &Rc<Self>, request: &mut Request) {
        for redirected in &self.redirected {
            redirected.give_to(request);
        }
        self.give_place_to(request);
        let copy = |text, to: &mut Vec<u8>| {
            to.clear();
            to.extend_from_slice(self.texts.get(text));
        };
        copy(Text::Filename, &mut request.resource.filename);
        copy(Text::Uri, &mut request.resource.uri);
        copy(Text::PathInfo, &mut request.resource.path_info);
        request.response.content_type = self.texts.find(Text::ContentType).map(Into::into);
        request.handler = self.texts.find(Text::Handler).map(|text| text.to_vec().into());
        request.resource.file = self.file;
        request.tell_tls();
        request.tell_http2();
        request.give_variables(&self.env);
        self.give_timed(request);
        request.give(self.clone());
    }
}

impl CachedHead for CachedResponse {
    fn field(&self, name: &[u8]) -> Option<&[u8]> {
        let before = field_of(self.texts.get(Text::Before), name);
        before.or_else(|| field_in(self.after().split(is_end), name))
    }
}

/// A field in the lines before the connection's own.
pub(super) fn field_of<'l>(lines: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    // The first two pieces are the ends of `Date` and `Server`.
    field_in(lines.split(is_end).skip(2), name)
}

fn is_end(byte: &u8) -> bool {
    *byte == b'\n'
}

fn field_in<'l>(mut lines: impl Iterator<Item = &'l [u8]>, name: &[u8]) -> Option<&'l [u8]> {
    lines.find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (key, value) = line.split_at(colon);
        let is_it = key.eq_ignore_ascii_case(name);
        is_it.then(|| value.strip_prefix(b": ").unwrap_or_default().trim_ascii_end())
    })
}
