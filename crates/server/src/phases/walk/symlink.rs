//! Symbolic links according to `Options`.
//!
//! Source: `resolve_symlink` (server/request.c).

use crate::config::core::Links;
use crate::engine::Engine;
use crate::files::path::StatError;
use crate::request::FileInfo;

/// Stats `path`; follows a link there as far as `links` allows.
pub fn stat(engine: &Engine, path: &[u8], links: Links) -> Result<FileInfo, StatError> {
    if links == Links::Followed {
        return engine.stat(path);
    }
    let link = engine.lstat(path)?;
    if !link.is_symlink {
        return Ok(link.info);
    }
    if links == Links::Refused {
        return Err(StatError::SymlinkForbidden);
    }
    let target = engine.stat(path).map_err(|_| StatError::SymlinkForbidden)?;
    if target.uid == link.info.uid { Ok(target) } else { Err(StatError::SymlinkForbidden) }
}
