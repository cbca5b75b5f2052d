//! Which sections Apache merges again although they are those of the request before.
//!
//! A hook that is registered with `AP_AUTH_INTERNAL_PER_URI` makes each walk of a subrequest or
//! internal redirect merge again if it walks another name and sections match: authorisation, which
//! is skipped under the same merged configuration, is repeated.
//!
//! Source: `auth_internal_per_conf` (server/request.c).

use crate::config::section::fresh_id;
use crate::phases::subrequest::parent;
use crate::request::{FileKind, Request};

/// The names of the request whose walks Apache compares with those of another.
pub(super) struct Before<'r> {
    copy: u64,
    uri: &'r [u8],
    filename: &'r [u8],
    kind: FileKind,
}

impl<'r> Before<'r> {
    /// The previous or main request of `request`, if names matter.
    fn of(request: &'r Request) -> Option<Before<'r>> {
        if request.prev.is_none() && request.main.is_none()
            || !request.engine.server.registry.hooks.merges_by_uri
        {
            return None;
        }
        let of_prev = request.prev.as_deref().map(|prev| Before {
            copy: prev.copy,
            uri: &prev.resource.uri,
            filename: &prev.resource.canonical_filename,
            kind: prev.resource.file.kind,
        });
        of_prev.or_else(|| {
            request.main.as_deref().map(|main| Before {
                copy: main.copy,
                uri: &main.uri,
                filename: &main.walked,
                kind: main.kind,
            })
        })
    }

    /// Whether `folder`, with a trailing slash, is that of its file.
    pub fn is_in(&self, folder: &[u8]) -> bool {
        // A folder that was named without a slash is another (`ap_make_dirstr_parent`).
        let is_folder = self.kind == FileKind::Directory;
        let own = if is_folder { self.filename } else { parent(self.filename) };
        own == folder
    }

    /// Whether its path is `uri`.
    pub fn is_at(&self, uri: &[u8]) -> bool {
        self.uri == uri
    }

    /// Whether its file's name is `name`.
    pub fn is_named(&self, name: &[u8]) -> bool {
        self.filename.get(parent(self.filename).len()..) == Some(name)
    }
}

/// The copy number of a request's configuration before any walk.
pub(super) fn first_copy(request: &Request) -> u64 {
    Before::of(request).map_or(0, |before| before.copy)
}

/// Notes that sections have been merged, in a walk of the same name as the one before or another.
pub(super) fn merged(request: &mut Request, is_same: impl FnOnce(&Request, &Before<'_>) -> bool) {
    let is_copy = Before::of(request).is_some_and(|before| !is_same(request, &before));
    if is_copy {
        request.copy = fresh_id();
    }
}
