//! Heads that were answered before, byte for byte. Clients repeat themselves: who polls a document
//! sends the same bytes each time, and so do health checks, proxies and programs that fetch.
//!
//! Bytes that came to the same address select the same host, make the same request and get the same
//! answer, as long as it depends on nothing else ([`crate::cache::resource`]) and no hook
//! looks at a request before its host's configuration is known (`post_read_request`). So what the
//! parser and the choice of a host made of them is kept with the answer, and done once.

use std::cell::{Cell, RefCell};
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::cache::resource::Resource;
use server::connection_info::{Client, TlsFacts};
use server::request::Request;

/// The longest head that is kept, bytes.
const HEAD_BYTES: usize = 2048;

/// A head that was answered.
pub(crate) struct Repeat {
    /// The address that it came to.
    local: SocketAddr,
    bytes: Box<[u8]>,
    /// The host that it is for, by the number that handshakes know it by.
    host: u32,
    /// It names that host.
    is_named: bool,
    resource: Rc<Resource>,
    /// The request that it makes; away while one is being answered.
    request: Cell<Option<Box<Request>>>,
}

impl Repeat {
    /// The head's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The answer. It may not be true any more.
    pub fn resource(&self) -> &Rc<Resource> {
        &self.resource
    }

    /// Whether a client may ask for the host: one on TLS has been let in for it by the long way.
    pub fn admits(&self, client: &Client) -> bool {
        let admitted = |tls: &Rc<TlsFacts>| self.is_named && tls.admitted.get() == Some(self.host);
        client.tls.as_ref().is_none_or(admitted)
    }

    /// The request, of this client and of now; `None` while another connection has it.
    pub fn request(self: &Rc<Self>, repeats: &Rc<Repeats>, client: &Rc<Client>) -> Option<Lent> {
        let mut request = self.request.take()?;
        request.begin_again(client);
        Some(Lent { request: Some(request), of: self.clone(), repeats: repeats.clone() })
    }
}

/// A kept request that is being answered; it goes back to its place when dropped.
pub(crate) struct Lent {
    // Always there until the drop.
    request: Option<Box<Request>>,
    of: Rc<Repeat>,
    repeats: Rc<Repeats>,
}

impl Lent {
    /// The request.
    pub fn request(&mut self) -> &mut Request {
        match &mut self.request {
            Some(request) => request,
            None => unreachable!("it is given back only by the drop"),
        }
    }

    /// The request, to look at.
    pub fn request_ref(&self) -> &Request {
        match &self.request {
            Some(request) => request,
            None => unreachable!("it is given back only by the drop"),
        }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut request) = self.request.take() else { return };
        if std::thread::panicking() {
            // Half done: whoever has the same head makes another.
            return self.repeats.forget(&self.of);
        }
        request.forget_log();
        self.of.request.set(Some(request));
    }
}

/// The heads that a loop has answered.
pub(crate) struct Repeats {
    heads: RefCell<HashTable<Rc<Repeat>>>,
    hasher: DefaultHashBuilder,
    limit: usize,
    /// Hashes of heads that came once: only what comes again is worth keeping.
    once: Box<[Cell<u64>]>,
}

/// A head that is asked about, with its hash.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'b> {
    bytes: &'b [u8],
    hash: u64,
}

impl Repeats {
    /// None yet, and never more than `limit`.
    pub fn new(limit: usize) -> Repeats {
        Repeats {
            heads: RefCell::default(),
            hasher: DefaultHashBuilder::default(),
            limit,
            once: std::iter::repeat_with(|| Cell::new(0)).take(limit).collect(),
        }
    }

    /// Bytes that could be known: not too many, and no line end before the head, which is good or
    /// bad depending on what came before.
    pub fn ask<'b>(&self, bytes: &'b [u8]) -> Option<Asked<'b>> {
        let first = bytes.first()?;
        let may_be = bytes.len() <= HEAD_BYTES && first.is_ascii_alphanumeric();
        may_be.then(|| Asked { bytes, hash: self.hasher.hash_one(bytes) })
    }

    /// The head, if it was answered at this address before.
    pub fn find(&self, asked: Asked<'_>, local: SocketAddr) -> Option<Rc<Repeat>> {
        let is_it = |repeat: &Rc<Repeat>| repeat.local == local && *repeat.bytes == *asked.bytes;
        self.heads.borrow().find(asked.hash, is_it).cloned()
    }

    /// Whether the head came before, a short while ago. It has come now.
    pub fn is_again(&self, asked: Asked<'_>) -> bool {
        let index = usize::try_from(asked.hash).unwrap_or(0) % self.once.len().max(1);
        self.once.get(index).is_some_and(|once| once.replace(asked.hash) == asked.hash)
    }

    /// Keeps a head with the request that it made, which was answered by `resource`.
    pub fn keep(&self, bytes: &[u8], mut request: Box<Request>, resource: Rc<Resource>) {
        let Some(asked) = self.ask(bytes) else { return };
        request.forget_log();
        request.fit();
        let repeat = Rc::new(Repeat {
            local: request.client.local,
            bytes: bytes.into(),
            host: request.host.id,
            is_named: request.hostname.is_some(),
            resource,
            request: Cell::new(Some(request)),
        });
        let mut heads = self.heads.borrow_mut();
        // Several connections may have come with it at the same time.
        let is_it = |other: &Rc<Repeat>| other.local == repeat.local && other.bytes == repeat.bytes;
        if let Ok(mut known) = heads.find_entry(asked.hash, is_it) {
            *known.get_mut() = repeat;
            return;
        }
        if heads.len() >= self.limit {
            heads.clear();
        }
        heads.insert_unique(asked.hash, repeat, |other| self.hasher.hash_one(&*other.bytes));
    }

    /// Forgets a head whose answer has changed.
    pub fn forget(&self, repeat: &Rc<Repeat>) {
        let hash = self.hasher.hash_one(&*repeat.bytes);
        let mut heads = self.heads.borrow_mut();
        if let Ok(found) = heads.find_entry(hash, |other| Rc::ptr_eq(other, repeat)) {
            found.remove();
        }
    }

    /// Forgets the heads that were answered by something that has changed.
    pub fn forget_answer(&self, resource: &Rc<Resource>) {
        self.heads.borrow_mut().retain(|repeat| !Rc::ptr_eq(&repeat.resource, resource));
    }

    /// Forgets all heads.
    pub fn clear(&self) {
        self.heads.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_again_is_worth_keeping() {
        let repeats = Repeats::new(4);
        let asked = |bytes| repeats.ask(bytes).unwrap();
        assert!(!repeats.is_again(asked(b"GET / HTTP/1.1\r\n\r\n")));
        assert!(repeats.is_again(asked(b"GET / HTTP/1.1\r\n\r\n")));
        assert!(!repeats.is_again(asked(b"GET /a HTTP/1.1\r\n\r\n")));
    }

    #[test]
    fn line_ends_before_a_head_and_long_heads_are_not_asked_about() {
        let repeats = Repeats::new(4);
        assert!(repeats.ask(b"").is_none());
        assert!(repeats.ask(b"\nGET / HTTP/1.1\r\n\r\n").is_none());
        assert!(repeats.ask(&[b'G'; HEAD_BYTES + 1]).is_none());
        assert!(repeats.ask(&[b'G'; HEAD_BYTES]).is_some());
    }
}
