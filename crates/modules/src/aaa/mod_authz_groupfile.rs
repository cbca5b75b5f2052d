//! mod_authz_groupfile: groups of users in text files.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_groupfile.html>

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::Arg;
use messages::Message;
use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::groups::{self, KnowsGroups, Required, refused};
use super::line::{self, GROUP_LINE_LIMIT, TextLines, until, words};
use super::provider::{AUTHZ, Authz};

/// `mod_authz_groupfile.c`
pub struct AuthzGroupfile;

impl Module for AuthzGroupfile {
    const NAME: &'static str = "authz_groupfile_module";
    const FILE: &'static str = "mod_authz_groupfile.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthzGroupfile>] = &[Row::<AuthzGroupfile>::new(
        "AuthGroupFile",
        Takes::One(group_file),
        "file-path",
        "Sets the file of groups and their members.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)];

    fn hooks(hooks: &mut Hooks<'_, AuthzGroupfile>) {
        hooks.provider(AUTHZ, "group", groups::named::<AuthzGroupfile>());
        hooks.provider(AUTHZ, "file-group", groups::of_file::<AuthzGroupfile>());
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthGroupFile`, absolute.
        pub file: Setting<Arc<PathBuf>>,
    }
}

fn group_file(cx: &mut Cx<'_, '_, AuthzGroupfile>, arg: &Arg) -> Set {
    let path = cx.build().path(&arg.text);
    cx.dir().file.set(Arc::new(path));
    Ok(())
}

impl KnowsGroups for AuthzGroupfile {
    type Groups = Vec<Vec<u8>>;
    const EXPRESSION: (u32, &'static str) = (2592, "authz_groupfile authorize: require group");
    const NOT_AMONG: u32 = 1667;
    const NOT_OF_FILE: (u32, &'static str) =
        (1671, "user is not part of the 'require'ed file group.");
    const REFUSED: Level = Level::Debug;
    const LOGS_WITHOUT_GROUP: bool = false;
    const UNQUOTES: bool = true;

    async fn groups(request: &mut Request, what: Required) -> Result<Vec<Vec<u8>>, Authz> {
        match what {
            Required::Named => groups(request, [1664, 1665, 1666]).await,
            Required::OfFile => groups(request, [1668, 1669, 1670]).await,
        }
    }

    /// Compares names ignoring case, like keys of a table.
    fn is_among(name: &[u8], groups: &Vec<Vec<u8>>) -> bool {
        groups.iter().any(|group| group.eq_ignore_ascii_case(name))
    }
}

/// The user's groups. `numbers` are those of the log lines for: no file configured, file
/// unreadable, no group found.
async fn groups(request: &mut Request, numbers: [u32; 3]) -> Result<Vec<Vec<u8>>, Authz> {
    let Some(user) = request.user.clone() else { return Err(Authz::DeniedNoUser) };
    let file = request.dir_of::<AuthzGroupfile>().and_then(|dir| dir.file.get().cloned());
    let Some(file) = file else {
        let message = format_args!("No group file was specified in the configuration");
        request.log::<AuthzGroupfile>(Level::Error, numbers[0], message);
        return Err(Authz::Denied);
    };
    let path = file.clone();
    let shown = file.display();
    let read = match request.engine.content(file.as_os_str().as_bytes()) {
        Some((_, text)) => Ok(Ok(member_of(TextLines::new(&text, GROUP_LINE_LIMIT), &user))),
        None => {
            let pool = request.engine.handle.blocking().clone();
            pool.run(Work::Login, move || groups_of(&path, &user)).await
        }
    };
    match read {
        Ok(Ok(groups)) if groups.is_empty() => {
            let reason = format_args!("user doesn't appear in group file ({shown}).");
            refused::<AuthzGroupfile>(request, numbers[2], reason);
            Err(Authz::Denied)
        }
        Ok(Ok(groups)) => Ok(groups),
        Ok(Err(why)) => {
            let (number, what) = (numbers[1], "group file");
            line::log_unopened::<AuthzGroupfile>(request, number, what, &file, &why);
            Err(Authz::Denied)
        }
        Err(why) => {
            request.log::<AuthzGroupfile>(
                Level::Error,
                Message::PoolRefused.number(),
                format_args!("{why}"),
            );
            Err(Authz::GeneralError)
        }
    }
}

/// Source: `groups_for_user`.
fn groups_of(path: &Path, user: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    Ok(member_of(line::open(path, GROUP_LINE_LIMIT)?, user))
}

fn member_of<L: AsRef<[u8]>>(lines: impl Iterator<Item = L>, user: &[u8]) -> Vec<Vec<u8>> {
    let mut groups = Vec::new();
    for line in lines {
        let (name, members) = until(line.as_ref(), b':');
        if words(members).any(|member| member == user) {
            groups.push(name.trim_ascii_end().to_vec());
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::{AuthzGroupfile, KnowsGroups, member_of};
    use crate::aaa::line::Lines;

    #[test]
    fn groups_are_found_by_member() {
        let text = "# c\ncrew : alice bob\nofficers:carol\nempty:\nCrew: carol\nbroken line\n";
        let groups = |user: &str| member_of(Lines::new(text.as_bytes(), 99), user.as_bytes());
        assert_eq!(groups("alice"), [b"crew".to_vec()]);
        assert_eq!(groups("carol"), [b"officers".to_vec(), b"Crew".to_vec()]);
        assert!(groups("line").is_empty() && groups("dave").is_empty());
        assert!(AuthzGroupfile::is_among(b"CREW", &groups("alice")));
    }
}
