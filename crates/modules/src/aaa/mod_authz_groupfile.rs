//! mod_authz_groupfile: groups of users in text files.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_groupfile.html>

use std::future::Future;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;

use conf::Arg;
use messages::Message;
use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes, Target};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::{FileKind, Request};

use super::expression::Expression;
use super::line::{self, GROUP_LINE_LIMIT, TextLines, until, words};
use super::mod_authz_user::required;
use super::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

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
        hooks.provider(AUTHZ, "group", AuthzProvider::new(group));
        hooks.provider(AUTHZ, "file-group", AuthzProvider::new(|_, _| Ok(Arc::new(FileGroup))));
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

/// `Require group NAME…`
struct Group(Expression);

fn group(target: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(Group(required(target, arguments)?)))
}

impl Requirement for Group {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let groups = match groups(request, [1664, 1665, 1666]).await {
                Ok(groups) => groups,
                Err(found) => return found,
            };
            let names = match self.0.value(request) {
                Ok(names) => names,
                Err(why) => {
                    let message = format_args!(
                        "authz_groupfile authorize: require group: Can't evaluate require \
                         expression: {why}"
                    );
                    request.log::<AuthzGroupfile>(Level::Error, 2592, message);
                    return Authz::Denied;
                }
            };
            if words(&names).any(|name| is_among(&name, &groups)) {
                return Authz::Granted;
            }
            let reason = "user is not part of the 'require'ed group(s).";
            refused(request, 1667, format_args!("{reason}"));
            Authz::Denied
        })
    }
}

/// `Require file-group`: the user must be in the group of the file.
struct FileGroup;

impl Requirement for FileGroup {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let groups = match groups(request, [1668, 1669, 1670]).await {
                Ok(groups) => groups,
                Err(found) => return found,
            };
            let gid = nix::unistd::Gid::from_raw(request.resource.file.gid);
            let exists = request.resource.file.kind != FileKind::None;
            let pool = request.engine.handle.blocking().clone();
            let owner = pool.run(Work::Login, move || nix::unistd::Group::from_gid(gid)).await;
            let Some(owner) = owner.ok().and_then(Result::ok).flatten().filter(|_| exists) else {
                return Authz::Denied;
            };
            if is_among(owner.name.as_bytes(), &groups) {
                return Authz::Granted;
            }
            let reason = "user is not part of the 'require'ed file group.";
            refused(request, 1671, format_args!("{reason}"));
            Authz::Denied
        })
    }
}

/// Compares names of groups ignoring case, like keys of a table.
fn is_among(name: &[u8], groups: &[Vec<u8>]) -> bool {
    groups.iter().any(|group| group.eq_ignore_ascii_case(name))
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
            refused(request, numbers[2], reason);
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

fn refused(request: &Request, number: u32, reason: std::fmt::Arguments<'_>) {
    let user = bstr::BStr::new(request.user.as_deref().unwrap_or_default());
    let uri = bstr::BStr::new(&request.resource.uri);
    let message =
        format_args!("Authorization of user {user} to access {uri} failed, reason: {reason}");
    request.log::<AuthzGroupfile>(Level::Error, number, message);
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
    use super::{is_among, member_of};
    use crate::aaa::line::Lines;

    #[test]
    fn groups_are_found_by_member() {
        let text = "# c\ncrew : alice bob\nofficers:carol\nempty:\nCrew: carol\nbroken line\n";
        let groups = |user: &str| member_of(Lines::new(text.as_bytes(), 99), user.as_bytes());
        assert_eq!(groups("alice"), [b"crew".to_vec()]);
        assert_eq!(groups("carol"), [b"officers".to_vec(), b"Crew".to_vec()]);
        assert!(groups("line").is_empty() && groups("dave").is_empty());
        assert!(is_among(b"CREW", &groups("alice")));
    }
}
