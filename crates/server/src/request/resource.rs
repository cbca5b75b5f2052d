//! The target of a request, and what it was translated to.

use super::{FileInfo, PathInfoUse};

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
    /// The entry at `filename`.
    pub file: FileInfo,
}

impl Resource {
    /// Clears everything for the next request; texts keep their memory.
    pub(super) fn renew(&mut self) {
        let Resource { uri, args, filename, canonical_filename, path_info, used_path_info, file } =
            self;
        for text in [uri, filename, canonical_filename, path_info] {
            text.clear();
        }
        (*args, *used_path_info) = (None, PathInfoUse::Default);
        *file = FileInfo::default();
    }
}
