//! The document root of a request.

use crate::request::Request;

/// The note with a request's own `DocumentRoot`.
const DOCUMENT_ROOT: &[u8] = b"DOCUMENT_ROOT";

impl Request {
    /// `DocumentRoot`, or what mod_vhost_alias made of the host's name (`ap_document_root`).
    pub fn document_root(&self) -> Option<&[u8]> {
        let own = self.notes.get(DOCUMENT_ROOT);
        own.or_else(|| self.host.core.document_root.get().map(Vec::as_slice))
    }

    /// Sets the request's own document root (`ap_set_document_root`).
    pub fn set_document_root(&mut self, root: &[u8]) {
        self.notes.set(DOCUMENT_ROOT, root);
    }
}
