//! suEXEC: the wrapper that runs programs as other users, and the user that a request's program
//! runs as.
//!
//! Source: `unixd_pre_config`, `ap_run_get_suexec_identity`, `ap_unix_create_privileged_process`

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rt::Work;
use server::build::Build;
use server::request::Request;

use super::Settings;
use crate::generators::mod_suexec::Suexec;
use crate::mappers::mod_userdir::UserdirUser;

/// Where distributions install the wrapper (`SUEXEC_BIN`): Debian, Fedora, and httpd itself. The
/// first that exists is used.
const WRAPPERS: [&str; 3] =
    ["/usr/lib/apache2/suexec", "/usr/sbin/suexec", "/usr/local/apache2/bin/suexec"];

/// The mode bit of a program that runs as its owner.
const SET_USER_ID: u32 = 0o4000;

/// The provider by which directives learn that `Suexec Off` came before them.
const GROUP: &str = "suexec";
const OFF: &str = "off";

/// `Suexec Off`
struct Off;

/// Whose rights a program gets (`ap_unix_identity_t`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The user's id.
    pub user: u32,
    /// The group's id.
    pub group: u32,
    /// Whether the program must be in the user's own web folder instead of in the wrapper's.
    pub is_userdir: bool,
}

impl Identity {
    /// The words that precede a program's arguments: the wrapper, user, group and the file's name.
    pub fn words(self, wrapper: &Path, file: &[u8]) -> [Vec<u8>; 4] {
        let name = file.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let mark = if self.is_userdir { "~" } else { "" };
        [
            wrapper.as_os_str().as_encoded_bytes().to_vec(),
            format!("{mark}{}", self.user).into_bytes(),
            self.group.to_string().into_bytes(),
            name.to_vec(),
        ]
    }
}

/// The wrapper, unless `Suexec Off` came before.
///
/// # Errors
/// Why programs can't run as other users (`suexec_disabled_reason`).
pub(crate) fn wrapper(build: &Build) -> Result<PathBuf, String> {
    if build.defined.find::<Off>(GROUP, OFF).is_some() {
        return Err("Suexec directive is Off".to_owned());
    }
    installed()
}

/// Makes [`wrapper`] fail for the directives that follow.
pub(super) fn switch_off(build: &mut Build) {
    build.defined.define(GROUP, OFF.to_owned(), Off);
}

/// The wrapper under the whole configuration; `None` if programs can't run as other users.
pub(crate) fn in_force(settings: &Settings) -> Option<PathBuf> {
    installed().ok().filter(|_| settings.suexec.0.or(true))
}

/// The wrapper that is installed.
fn installed() -> Result<PathBuf, String> {
    first_of(&WRAPPERS)
}

/// The first of these files that is there, if it is a wrapper.
fn first_of<const N: usize>(paths: &[&str; N]) -> Result<PathBuf, String> {
    let found = paths.iter().find_map(|path| Some((*path, std::fs::metadata(path).ok()?)));
    match found {
        None => Err(format!("Missing suexec binary {}", paths[0])),
        Some((path, file)) if file.mode() & SET_USER_ID == 0 || file.uid() != 0 => {
            Err(format!("Invalid owner or file mode for {path}"))
        }
        Some((path, _)) => Ok(PathBuf::from(path)),
    }
}

/// Whose rights the program of a request gets: those of the user whose folder it is in, or the
/// host's; `None` for those of the children.
pub(crate) async fn identity(request: &Request) -> Option<Identity> {
    let of_host = request.dir_of::<Suexec>().and_then(|dir| dir.identity.get()).copied();
    let Some(UserdirUser(user)) = request.kept() else { return of_host };
    let name = String::from_utf8(user.clone()).ok();
    let look_up = move || nix::unistd::User::from_name(&name?).ok()?;
    let pool = request.engine.handle.blocking().clone();
    let user = pool.run(Work::Name, look_up).await.ok().flatten();
    let of_user = user.map(|user| Identity {
        user: user.uid.as_raw(),
        group: user.gid.as_raw(),
        is_userdir: true,
    });
    of_user.or(of_host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrapper_that_is_missing_or_not_set_user_id_is_refused() {
        let why = first_of(&["/none/suexec", "/none/other"]).unwrap_err();
        assert_eq!(why, "Missing suexec binary /none/suexec");
        let plain = std::env::current_exe().unwrap();
        let plain = plain.to_str().unwrap();
        let why = first_of(&["/none/suexec", plain]).unwrap_err();
        assert_eq!(why, format!("Invalid owner or file mode for {plain}"));
    }

    #[test]
    fn the_wrapper_gets_ids_and_a_name_without_a_folder() {
        let words = |is_userdir, file: &str| {
            let identity = Identity { user: 1000, group: 7, is_userdir };
            identity
                .words(Path::new("/w"), file.as_bytes())
                .map(|word| String::from_utf8(word).unwrap())
        };
        assert_eq!(words(false, "/var/www/a b"), ["/w", "1000", "7", "a b"]);
        assert_eq!(words(true, "/home/u/public_html/x"), ["/w", "~1000", "7", "x"]);
    }
}
