//! Symbolic links according to `Options`.
//!
//! Source: `resolve_symlink` (server/request.c).

use crate::config::core::Links;
use crate::engine::Engine;
use crate::files::mirror::Fact;
use crate::files::path::{self, StatError};
use crate::request::FileInfo;

/// Stats `path`; follows a link there as far as `links` allows.
pub fn stat(engine: &Engine, path: &[u8], links: Links) -> Result<FileInfo, StatError> {
    stat_by(engine.fact(path).as_deref(), path, links)
}

/// The same by the mirror's fact of the path, if it has one.
pub fn stat_by(fact: Option<&Fact>, path: &[u8], links: Links) -> Result<FileInfo, StatError> {
    let follow = || fact.map_or_else(|| path::stat(path), Fact::stat);
    if links == Links::Followed {
        return follow();
    }
    let link = fact.map_or_else(|| path::lstat(path), Fact::lstat)?;
    if !link.is_symlink {
        return Ok(link.info);
    }
    if links == Links::Refused {
        return Err(StatError::SymlinkForbidden);
    }
    let target = follow().map_err(|_| StatError::SymlinkForbidden)?;
    if target.uid == link.info.uid { Ok(target) } else { Err(StatError::SymlinkForbidden) }
}
