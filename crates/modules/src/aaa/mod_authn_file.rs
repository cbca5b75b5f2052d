//! mod_authn_file: users and passwords in text files of htpasswd and htdigest.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_file.html>

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::Arg;
use rt::Work;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::line::{self, PASSWORD_LINE_LIMIT, until};
use super::password;
use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending, RealmHash};

/// `mod_authn_file.c`
pub struct AuthnFile;

impl Module for AuthnFile {
    const NAME: &'static str = "authn_file_module";
    const FILE: &'static str = "mod_authn_file.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnFile>] = &[Row::<AuthnFile>::new(
        "AuthUserFile",
        Takes::One(user_file),
        "file-path",
        "Sets the file of users and passwords.",
    )
    .standing(Places::PER_DIR, Override::AUTH_CONFIG)];

    fn hooks(hooks: &mut Hooks<'_, AuthnFile>) {
        hooks.provider::<AuthnProvider>(AUTHN, "file", Arc::new(PasswordFile));
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `AuthUserFile`, absolute.
        pub file: Setting<Arc<PathBuf>>,
    }
}

fn user_file(cx: &mut Cx<'_, '_, AuthnFile>, arg: &Arg) -> Set {
    let path = cx.build().path(&arg.text);
    cx.dir().file.set(Arc::new(path));
    Ok(())
}

struct PasswordFile;

impl Authenticate for PasswordFile {
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        let Some(file) = configured(request) else { return Pending::Now(Authn::GeneralError) };
        let (user, password) = (login.user.clone(), login.password.clone());
        Pending::Wait(Box::pin(async move {
            let path = file.clone();
            let pool = request.engine.handle.blocking().clone();
            let found = pool.run(Work::Login, move || compare(&path, &user, &password)).await;
            match found {
                Ok(Ok(found)) => found,
                Ok(Err(why)) => {
                    unreadable(request, 1620, &file, &why);
                    Authn::GeneralError
                }
                Err(why) => {
                    request.log::<AuthnFile>(Level::Error, 20100, format_args!("{why}"));
                    Authn::GeneralError
                }
            }
        }))
    }

    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        let Some(file) = configured(request) else {
            return Some(Pending::Now(RealmHash::GeneralError));
        };
        let (user, realm) = (user.to_vec(), realm.to_vec());
        Some(Pending::Wait(Box::pin(async move {
            let path = file.clone();
            let pool = request.engine.handle.blocking().clone();
            match pool.run(Work::Login, move || find_in_realm(&path, &user, &realm)).await {
                Ok(Ok(Some(hash))) => RealmHash::Found(hash),
                Ok(Ok(None)) => RealmHash::UserNotFound,
                Ok(Err(why)) => {
                    unreadable(request, 1621, &file, &why);
                    RealmHash::GeneralError
                }
                Err(why) => {
                    request.log::<AuthnFile>(Level::Error, 20100, format_args!("{why}"));
                    RealmHash::GeneralError
                }
            }
        })))
    }
}

fn configured(request: &Request) -> Option<Arc<PathBuf>> {
    let file = request.dir_of::<AuthnFile>().and_then(|dir| dir.file.get().cloned());
    if file.is_none() {
        let message = format_args!("AuthUserFile not specified in the configuration");
        request.log::<AuthnFile>(Level::Error, 1619, message);
    }
    file
}

fn unreadable(request: &Request, number: u32, file: &Path, why: &io::Error) {
    line::log_unopened::<AuthnFile>(request, number, "password file", file, why);
}

/// Compares with the user's first line.
fn compare(path: &Path, user: &[u8], given: &[u8]) -> io::Result<Authn> {
    for line in line::open(path, PASSWORD_LINE_LIMIT)? {
        let (name, rest) = until(&line, b':');
        if name == user {
            let (kept, _) = until(rest, b':');
            let right = password::is_right(given, kept);
            return Ok(if right { Authn::Granted } else { Authn::Denied });
        }
    }
    Ok(Authn::UserNotFound)
}

/// The digest of `user:realm:…`.
fn find_in_realm(path: &Path, user: &[u8], realm: &[u8]) -> io::Result<Option<Vec<u8>>> {
    for line in line::open(path, PASSWORD_LINE_LIMIT)? {
        let (name, rest) = until(&line, b':');
        let (of, rest) = until(rest, b':');
        if name == user && of == realm {
            return Ok(Some(until(rest, b':').0.to_vec()));
        }
    }
    Ok(None)
}
