//! `.htaccess` files: found, read and parsed outside of the loop, and cached while they do not
//! change.
//!
//! Source: `ap_parse_htaccess` (server/config.c).

mod kept;
mod reading;

pub use kept::{HtaccessCache, KEPT_BYTES_LIMIT, KEPT_BYTES_LIMIT_OF_THREAD};
use reading::Reading;
pub use reading::{hand_down, leave_wanted, read_wanted, wants_to_read};

use std::sync::Arc;

use crate::config::core::AllowOverride;
use crate::config::section::Section;
use crate::files::path::{self, StatError};
use crate::phases::matching::Stop;
use crate::phases::walk::entered::Way;
use crate::request::{FileKind, Request};

/// An `.htaccess` file with the rules of a host: other rules need a separate parse.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    host: u32,
    file: Vec<u8>,
    allow: AllowOverride,
    list: Option<Arc<Vec<String>>>,
}

/// The section of a directory's `.htaccess`; `None` if there is none.
///
/// # Errors
/// A status, with its lines in the error log, or [`Stop::Later`] if the file has to be read first.
pub(super) fn of_directory(
    request: &mut Request,
    way: &mut Way,
    directory: &[u8],
    allow: AllowOverride,
    list: Option<Arc<Vec<String>>>,
) -> Result<Option<Arc<Section>>, Stop> {
    let host = request.host.clone();
    for name in host.core.access_file_names() {
        let file = [directory, name].concat();
        let fact = request.engine.fact(&file);
        way.examine(request, &file, fact.as_ref());
        let info = match fact.as_ref().map_or_else(|| path::stat(&file), |fact| fact.stat()) {
            Ok(info) if info.kind == FileKind::Regular => info,
            Err(StatError::Missing | StatError::SymlinkForbidden) => continue,
            Ok(_) | Err(_) => return Err(Stop::Status(reading::unreadable(request, &file))),
        };
        if let Some(read) = reading::read_by(request, &file) {
            way.make_own();
            return Ok(Some(read?));
        }
        let key = Key { host: host.id, file, allow, list };
        if let Some(section) = request.engine.htaccess.known(&key, &info) {
            return Ok(Some(section));
        }
        Reading::new(request, key, info, directory).want(request);
        return Err(Stop::Later);
    }
    Ok(None)
}
