//! The target of a request, and what it was translated to.

use std::borrow::Cow;

use super::{FileInfo, PathInfoUse, Request};

/// Whether another server responds (`proxyreq`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proxied {
    /// This server does.
    #[default]
    No,
    /// The one that the configuration maps the path to. The file name is `proxy:` and its URL.
    Reverse,
    /// The one that the client named in the target.
    Forward,
}

/// The target resource (RFC 9110 section 7.1).
#[derive(Default)]
pub struct Resource {
    /// The path, unescaped and normalised.
    pub uri: Vec<u8>,
    /// [`super::Request::query`]
    pub(crate) args: Option<Vec<u8>>,
    /// The file the path was translated to.
    pub filename: Vec<u8>,
    /// The same, canonical, for matching directory sections.
    pub canonical_filename: Vec<u8>,
    /// The rest of the URI after the file.
    pub path_info: Vec<u8>,
    /// Whether path_info was used or is forbidden (`AcceptPathInfo`, `used_path_info`).
    pub used_path_info: PathInfoUse,
    /// Whether another server responds.
    pub proxied: Proxied,
    /// The entry at `filename`.
    pub file: FileInfo,
}

impl Resource {
    /// Clears everything for the next request; texts keep their memory.
    pub(super) fn renew(&mut self) {
        #[rustfmt::skip]
        let Resource {
            uri, args, filename, canonical_filename, path_info, used_path_info, proxied, file,
        } = self;
        for text in [uri, filename, canonical_filename, path_info] {
            text.clear();
        }
        (*args, *used_path_info, *proxied) = (None, PathInfoUse::Default, Proxied::No);
        *file = FileInfo::default();
    }
}

impl Request {
    /// Makes the request one that another server responds to, at `url`. Its response is never
    /// reused.
    pub fn proxy(&mut self, proxied: Proxied, url: &[u8]) {
        self.resource.proxied = proxied;
        self.resource.filename = [b"proxy:", url].concat();
        self.handler = Some(Cow::Borrowed(b"proxy-server"));
        self.depends.pure = false;
    }
}
