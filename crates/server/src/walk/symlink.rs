//! Symbolic links under `Options SymLinksIfOwnerMatch`, or under no option at all.
//!
//! Source: `resolve_symlink` (server/request.c).

use crate::core::OptionFlags;
use crate::path::{self, StatError};
use crate::request::FileInfo;

/// What stands at `path`, where `FollowSymLinks` is not set: a link is followed only if its target
/// has the same owner and the options say so.
pub fn stat(path: &[u8], options: OptionFlags) -> Result<FileInfo, StatError> {
    let link = path::lstat(path)?;
    if !link.is_symlink {
        return Ok(link.info);
    }
    if !options.has(OptionFlags::SYMLINKS_IF_OWNER_MATCH) {
        return Err(StatError::SymlinkForbidden);
    }
    let target = path::stat(path).map_err(|_| StatError::SymlinkForbidden)?;
    if target.uid == link.info.uid { Ok(target) } else { Err(StatError::SymlinkForbidden) }
}
