//! What a child gives up before it serves: its user, its root directory and the right to more.

use std::io;
use std::path::Path;

use nix::sys::prctl;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::unistd::{Gid, Uid, chdir, chroot, setgid, setgroups, setuid};

use crate::settings::{Identity, Settings};

/// A failed step: Apache's message number and text.
#[derive(Debug, thiserror::Error)]
#[error("{text}: {source}")]
pub struct PrivilegeFailure {
    /// Apache's message number.
    pub number: u32,
    /// What failed.
    pub text: String,
    /// Why.
    pub source: io::Error,
}

/// Whether this process is root.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Changes the root directory and the user of the whole process, as the settings say. A process
/// that isn't root keeps its user, as in Apache. Must be called while the process has one thread.
pub fn drop_privileges(settings: &Settings) -> Result<(), PrivilegeFailure> {
    give_up_root(settings.chroot.as_deref(), settings.identity.as_ref())?;
    if let Some(directory) = &settings.core_dump_directory {
        // Changing the user cleared the flag, without which the kernel writes no core.
        let failure = |errno| PrivilegeFailure {
            number: 2162,
            text: "prctl(PR_SET_DUMPABLE) failed: this child will not core dump".to_owned(),
            source: io::Error::from(errno),
        };
        prctl::set_dumpable(true).map_err(failure)?;
        let _ = chdir(directory);
    }
    Ok(())
}

/// Changes the root directory and the user, unless the process isn't root.
pub(crate) fn give_up_root(
    root: Option<&Path>,
    identity: Option<&Identity>,
) -> Result<(), PrivilegeFailure> {
    if !is_root() {
        return Ok(());
    }
    if let Some(root) = root {
        let failure = |number, what: &str| {
            let text = format!("{what} {}", root.display());
            move |errno| PrivilegeFailure { number, text, source: io::Error::from(errno) }
        };
        chdir(root).map_err(failure(2158, "can't chdir to"))?;
        chroot(root).map_err(failure(2159, "can't chroot to"))?;
        chdir("/").map_err(failure(2159, "can't chdir to / of"))?;
    }
    identity.map_or(Ok(()), become_user)
}

fn become_user(identity: &Identity) -> Result<(), PrivilegeFailure> {
    let (user, group) = (Uid::from_raw(identity.user), Gid::from_raw(identity.group));
    let failure = |number, text: String| {
        move |errno| PrivilegeFailure { number, text, source: io::Error::from(errno) }
    };
    setgid(group).map_err(failure(2156, format!("setgid: unable to set group id to {group}")))?;
    let groups: Vec<Gid> = identity.groups.iter().copied().map(Gid::from_raw).collect();
    setgroups(&groups)
        .map_err(failure(2157, format!("setgroups: unable to set the groups of user {user}")))?;
    setuid(user).map_err(failure(2162, format!("setuid: unable to change to uid: {user}")))?;
    if !user.is_root() && setuid(Uid::from_raw(0)).is_ok() {
        return Err(PrivilegeFailure {
            number: 2162,
            text: "setuid: root could be taken back".to_owned(),
            source: io::ErrorKind::PermissionDenied.into(),
        });
    }
    Ok(())
}

/// Raises the soft limit on descriptors to the hard limit; children inherit it. Returns the limit.
pub fn raise_descriptor_limit() -> io::Result<u64> {
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE)?;
    if soft < hard {
        setrlimit(Resource::RLIMIT_NOFILE, hard, hard)?;
    }
    Ok(hard)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_becomes_the_hard_one() {
        let hard = raise_descriptor_limit().unwrap();
        assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    }
}
