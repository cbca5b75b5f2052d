//! What a page has made so far.

use std::collections::VecDeque;

use bytes::Bytes;
use server::body::Body;

/// A shorter text is copied: a part of its own would cost more.
const COPIED_BYTES: usize = 4096;

/// Parts of a body.
#[derive(Default)]
pub struct Output {
    parts: VecDeque<Body>,
    text: Vec<u8>,
    /// Whether something was made since the last [`Output::pass`].
    has_more: bool,
    /// Whether something was passed on.
    has_passed: bool,
}

impl Output {
    /// Adds a text.
    pub fn put(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.has_more |= !text.is_empty();
    }

    /// Adds a part of the page.
    pub fn put_slice(&mut self, slice: Bytes) {
        if slice.len() < COPIED_BYTES {
            return self.put(&slice);
        }
        self.put_body(Body::Bytes(slice));
        self.has_more = true;
    }

    /// Adds what a subrequest has made, which is passed on at once.
    pub fn put_passed(&mut self, body: Body) {
        match body {
            Body::Empty => return,
            Body::Bytes(bytes) if bytes.len() < COPIED_BYTES => self.put(&bytes),
            body => self.put_body(body),
        }
        (self.has_passed, self.has_more) = (true, false);
    }

    fn put_body(&mut self, body: Body) {
        if !self.text.is_empty() {
            self.parts.push_back(Body::from(std::mem::take(&mut self.text)));
        }
        self.parts.push_back(body);
    }

    /// An element begins, where Apache passes on what it has made, be it empty in a part that is
    /// shown: the length of a page that does so before its end is not known.
    pub fn pass(&mut self, is_shown: bool) {
        self.has_passed |= is_shown || std::mem::take(&mut self.has_more);
    }

    /// The body, and whether its length may be told.
    pub fn finish(mut self) -> (Body, bool) {
        let has_length = !self.has_passed;
        if self.parts.is_empty() {
            let body = if self.text.is_empty() { Body::Empty } else { Body::from(self.text) };
            return (body, has_length);
        }
        if !self.text.is_empty() {
            self.parts.push_back(Body::from(self.text));
        }
        (Body::Parts(self.parts), has_length)
    }
}
