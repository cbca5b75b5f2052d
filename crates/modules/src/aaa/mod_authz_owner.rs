//! mod_authz_owner: `Require file-owner`, and the group of a file for `Require file-group`.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_owner.html>

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use nix::unistd::{Gid, Group, Uid, User};
use rt::Work;
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::module::Module;
use server::request::{FileKind, Request};

use super::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

/// `mod_authz_owner.c`
pub struct AuthzOwner;

impl Module for AuthzOwner {
    const NAME: &'static str = "authz_owner_module";
    const FILE: &'static str = "mod_authz_owner.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, AuthzOwner>) {
        hooks.provider(AUTHZ, "file-owner", AuthzProvider::new(|_, _| Ok(Arc::new(FileOwner))));
    }
}

/// `Require file-owner`: the user's name must be that of the file's owner.
struct FileOwner;

impl Requirement for FileOwner {
    fn waits(&self) -> bool {
        true
    }

    /// Source: `fileowner_check_authorization`.
    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let Some(user) = request.user.clone() else { return Authz::DeniedNoUser };
            if request.resource.file.kind == FileKind::None {
                let file = request.resource.filename.clone();
                let file = Verbatim::new(&file);
                refused(request, 1634, format_args!("could not stat file {file}"));
                return Authz::Denied;
            }
            let uid = Uid::from_raw(request.resource.file.uid);
            let pool = request.engine.handle.blocking().clone();
            let owner = pool.run(Work::Login, move || User::from_uid(uid)).await;
            let Some(owner) = owner.ok().and_then(Result::ok).flatten() else {
                refused(request, 1636, format_args!("could not get name of file owner"));
                return Authz::Denied;
            };
            if owner.name.as_bytes() == user {
                return Authz::Granted;
            }
            let name = owner.name;
            refused(request, 1637, format_args!("file owner {name} does not match."));
            Authz::Denied
        })
    }
}

/// The name of the group of the request's file; what prevents it is logged. Source:
/// `authz_owner_get_file_group`.
pub(super) async fn file_group(request: &mut Request) -> Option<Vec<u8>> {
    if request.resource.file.kind == FileKind::None {
        let file = request.resource.filename.clone();
        let file = Verbatim::new(&file);
        refused(request, 1639, format_args!("could not stat file {file}"));
        return None;
    }
    let gid = Gid::from_raw(request.resource.file.gid);
    let pool = request.engine.handle.blocking().clone();
    let owner = pool.run(Work::Login, move || Group::from_gid(gid)).await;
    let name = owner.ok().and_then(Result::ok).flatten().map(|group| group.name.into_bytes());
    if name.is_none() {
        refused(request, 1641, format_args!("could not get name of file group"));
    }
    name
}

fn refused(request: &Request, number: u32, reason: std::fmt::Arguments<'_>) {
    let user = Verbatim::new(request.user.as_deref().unwrap_or_default());
    let uri = Verbatim::new(&request.resource.uri);
    let message =
        format_args!("Authorization of user {user} to access {uri} failed, reason: {reason}");
    request.log::<AuthzOwner>(Level::Error, number, message);
}
