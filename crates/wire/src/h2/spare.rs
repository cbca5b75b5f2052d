//! Memory that the requests of a connection use one after the other.

use crate::request::RequestHead;

/// The most heads that are kept: as many requests as usually arrive at a time.
const HEADS_MAX: usize = 32;

/// The most that each part keeps, bytes.
const KEPT_BYTES: usize = 4096;

/// Memory that requests take turns to use.
#[derive(Debug, Default)]
pub struct Spare {
    /// Of requests that have been served.
    #[expect(clippy::vec_box, reason = "they are boxed where requests wait for their turn")]
    heads: Vec<Box<RequestHead>>,
    pub(super) pseudo: Text,
    pub(super) cookies: Text,
}

impl Spare {
    /// Takes the head of a request that has been served.
    pub fn give(&mut self, head: Box<RequestHead>) {
        if self.heads.len() < HEADS_MAX {
            self.heads.push(head);
        }
    }

    /// A head, whose table is empty.
    pub(super) fn take_head(&mut self) -> Box<RequestHead> {
        let mut head = self.heads.pop().unwrap_or_else(|| Box::new(RequestHead::new()));
        head.headers.clear();
        head
    }

    /// Frees what is more than requests usually need.
    pub fn trim(&mut self) {
        self.heads.retain(|head| {
            head.headers.capacity_bytes() <= KEPT_BYTES && head.line().len() <= KEPT_BYTES
        });
        for text in [&mut self.pseudo, &mut self.cookies] {
            text.0.clear();
            text.0.shrink_to(KEPT_BYTES);
        }
    }
}

/// A buffer.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    /// The buffer, empty.
    pub fn take(&mut self) -> Vec<u8> {
        self.0.clear();
        std::mem::take(&mut self.0)
    }

    pub fn give(&mut self, text: Vec<u8>) {
        self.0 = text;
    }
}
