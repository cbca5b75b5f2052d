//! The properties of a cached response that the log of a request shows.

use std::rc::Rc;

use server::request::{CachedHead, Request};

use super::response::CachedResponse;

impl CachedResponse {
    /// Fills in the properties of a request that this response was sent for, for the log.
    pub fn give_to(self: &Rc<Self>, request: &mut Request) {
        request.layer = self.layer.clone();
        request.plan = self.plan.clone();
        request.resource.filename.clone_from(&self.filename);
        request.resource.uri.clone_from(&self.uri);
        request.response.content_type.clone_from(&self.content_type);
        request.handler.clone_from(&self.handler);
        request.resource.file = self.file;
        request.resource.path_info.clone_from(&self.path_info);
        request.tell_tls();
        self.give_timed(request);
        request.give(self.clone());
    }
}

impl CachedHead for CachedResponse {
    fn field(&self, name: &[u8]) -> Option<&[u8]> {
        field_of(&self.before, name).or_else(|| field_in(self.after.split(is_end), name))
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
