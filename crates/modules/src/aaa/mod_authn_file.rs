//! mod_authn_file: users and passwords in text files of htpasswd and htdigest.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_file.html>

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use conf::Arg;
use messages::Message;
use rt::{PoolError, Work};
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::line::{self, PASSWORD_LINE_LIMIT, TextLines, until};
use super::mod_authn_socache;
use super::password::{self, verified};
use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending, RealmHash};

/// `mod_authn_file.c`
pub struct AuthnFile;

/// The name of the provider.
const PROVIDER: &str = "file";

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
        hooks.provider::<AuthnProvider>(AUTHN, PROVIDER, Arc::new(PasswordFile));
        hooks.every_second(|engine| verified::forget_old(engine.handle.clock().now_ms()));
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
        if mod_authn_socache::is_kept(request, PROVIDER) {
            return Pending::Wait(Box::pin(compare(request, login, file, AtOnce::Unread)));
        }
        match at_once(request, &file, login) {
            AtOnce::Decided(found) => Pending::Now(found),
            known => Pending::Wait(Box::pin(compare(request, login, file, known))),
        }
    }

    fn has_digests(&self) -> bool {
        true
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
        let is_kept = mod_authn_socache::is_kept(request, PROVIDER);
        if !is_kept && let Some((_, text)) = request.engine.content(file.as_os_str().as_bytes()) {
            let mut lines = TextLines::new(&text, PASSWORD_LINE_LIMIT);
            let found = lines.find_map(|line| digest_in(&line, user, realm).map(<[u8]>::to_vec));
            let found = found.map_or(RealmHash::UserNotFound, RealmHash::Found);
            return Some(Pending::Now(found));
        }
        let (sought, within) = (user.to_vec(), realm.to_vec());
        Some(Pending::Wait(Box::pin(async move {
            let path = file.clone();
            let pool = request.engine.handle.blocking().clone();
            match pool.run(Work::Login, move || find_in_realm(&path, &sought, &within)).await {
                Ok(Ok(Some(hash))) => {
                    mod_authn_socache::keep(request, PROVIDER, user, Some(realm), &hash).await;
                    RealmHash::Found(hash)
                }
                Ok(Ok(None)) => RealmHash::UserNotFound,
                Ok(Err(why)) => {
                    unreadable(request, 1621, &file, &why);
                    RealmHash::GeneralError
                }
                Err(why) => {
                    request.log::<AuthnFile>(
                        Level::Error,
                        Message::PoolRefused.number(),
                        format_args!("{why}"),
                    );
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

/// What is known of a login without waiting.
enum AtOnce {
    /// All of it.
    Decided(Authn),
    /// The user's hash, which the password has to be compared with.
    Hash(Vec<u8>),
    /// Nothing: the file has to be read.
    Unread,
}

/// Looks a login up in the mirror of the file, and its password among those verified before.
fn at_once(request: &Request, file: &Path, login: &Login) -> AtOnce {
    let Some((_, text)) = request.engine.content(file.as_os_str().as_bytes()) else {
        return AtOnce::Unread;
    };
    let found = TextLines::new(&text, PASSWORD_LINE_LIMIT)
        .find_map(|line| hash_in(&line, &login.user).map(|kept| judge(request, login, kept)));
    found.unwrap_or(AtOnce::Decided(Authn::UserNotFound))
}

fn judge(request: &Request, login: &Login, kept: &[u8]) -> AtOnce {
    let now_ms = request.engine.handle.clock().now_ms();
    if verified::is_known(&login.password, kept, now_ms) {
        return AtOnce::Decided(Authn::Granted);
    }
    AtOnce::Hash(kept.to_vec())
}

/// Reads the user's hash where that is to be done, and compares the password with it.
async fn compare(request: &mut Request, login: &Login, file: Arc<PathBuf>, known: AtOnce) -> Authn {
    let kept = match known {
        AtOnce::Decided(found) => return found,
        AtOnce::Hash(kept) => kept,
        AtOnce::Unread => {
            let pool = request.engine.handle.blocking().clone();
            let (path, user) = (file.clone(), login.user.clone());
            match pool.run(Work::Login, move || hash_of(&path, &user)).await {
                Ok(Ok(Some(kept))) => kept,
                Ok(Ok(None)) => return Authn::UserNotFound,
                Ok(Err(why)) => {
                    unreadable(request, 1620, &file, &why);
                    return Authn::GeneralError;
                }
                Err(why) => return no_thread(request, &why),
            }
        }
    };
    mod_authn_socache::keep(request, PROVIDER, &login.user, None, &kept).await;
    password::compare::<AuthnFile>(request, &login.password, kept).await
}

fn no_thread(request: &Request, why: &PoolError) -> Authn {
    request.log::<AuthnFile>(Level::Error, Message::PoolRefused.number(), format_args!("{why}"));
    Authn::GeneralError
}

/// The user's hash: the first line of the user's decides.
fn hash_of(path: &Path, user: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut lines = line::open(path, PASSWORD_LINE_LIMIT)?;
    Ok(lines.find_map(|line| hash_in(&line, user).map(<[u8]>::to_vec)))
}

/// The hash in a line, if that is the user's.
fn hash_in<'l>(line: &'l [u8], user: &[u8]) -> Option<&'l [u8]> {
    let (name, rest) = until(line, b':');
    (name == user).then(|| until(rest, b':').0)
}

/// The digest of `user:realm:…`.
fn find_in_realm(path: &Path, user: &[u8], realm: &[u8]) -> io::Result<Option<Vec<u8>>> {
    let mut lines = line::open(path, PASSWORD_LINE_LIMIT)?;
    Ok(lines.find_map(|line| digest_in(&line, user, realm).map(<[u8]>::to_vec)))
}

/// The digest in a line, if that is the user's in the realm.
fn digest_in<'l>(line: &'l [u8], user: &[u8], realm: &[u8]) -> Option<&'l [u8]> {
    let (name, rest) = until(line, b':');
    let (of, rest) = until(rest, b':');
    (name == user && of == realm).then(|| until(rest, b':').0)
}
