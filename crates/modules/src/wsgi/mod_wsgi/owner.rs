//! `script-user` and `script-group`: who must own a script and its folder.
//!
//! Source: `wsgi_hook_handler`

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

use super::daemon::ScriptOwner;

/// Checks a script and its folder: who owns them, and that no other may write to them.
///
/// # Errors
/// mod_wsgi's message.
pub(super) fn check(script: &[u8], wanted: ScriptOwner) -> Result<(), &'static str> {
    let script = server::path::as_path(script);
    let file = script.metadata().map_err(|_| "Unable to stat WSGI script")?;
    let folder = script.parent().and_then(|folder| folder.metadata().ok());
    let folder = folder.ok_or("Unable to stat parent directory of WSGI script")?;
    check_one(
        &file,
        wanted,
        [
            "Owner of WSGI script file does not match required user for daemon process",
            "Group of WSGI script file does not match required group for daemon process",
            "WSGI script file is writable to group",
            "WSGI script file is writable to world",
        ],
    )?;
    check_one(
        &folder,
        wanted,
        [
            "Owner of parent directory of WSGI script file does not match required user for \
             daemon process",
            "Group of parent directory of WSGI script file does not match required group for \
             daemon process",
            "Parent directory of WSGI script file is writable to group",
            "Parent directory of WSGI script file is writable to world",
        ],
    )
}

fn check_one(
    found: &Metadata,
    wanted: ScriptOwner,
    [user, group, by_group, by_world]: [&'static str; 4],
) -> Result<(), &'static str> {
    match wanted {
        ScriptOwner::User(id) if found.uid() != id => return Err(user),
        ScriptOwner::User(_) if found.mode() & 0o020 != 0 => return Err(by_group),
        ScriptOwner::Group(id) if found.gid() != id => return Err(group),
        _ => {}
    }
    if found.mode() & 0o002 != 0 { Err(by_world) } else { Ok(()) }
}
