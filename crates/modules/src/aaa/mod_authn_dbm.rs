//! mod_authn_dbm: users and passwords in DBM files.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_dbm.html>

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, State, Takes};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::dbm::{self, Dbm, DbmConfig};
use super::found::{self, Found, Unread};
use super::line::until;
use super::password::verified;
use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending, RealmHash};

/// `mod_authn_dbm.c`
pub struct AuthnDbm;

/// The name of the provider.
const PROVIDER: &str = "dbm";

impl Module for AuthnDbm {
    const NAME: &'static str = "authn_dbm_module";
    const FILE: &'static str = "mod_authn_dbm.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnDbm>] = &[
        Row::new(
            "AuthDBMUserFile",
            Takes::One(file),
            "file-path",
            "Sets the file of users and passwords, without its extension `.pag`.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG),
        Row::new(
            "AuthDBMType",
            Takes::One(kind),
            "default|SDBM|GDBM|NDBM|DB",
            "The type of AuthDBMUserFile. `default` is SDBM, too.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("default")
        .state(State::Partial("only SDBM files are supported")),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthnDbm>) {
        hooks.provider::<AuthnProvider>(AUTHN, PROVIDER, Arc::new(Users));
        hooks.every_second(|engine| verified::forget_old(engine.handle.clock().now_ms()));
    }
}

server::config! {
    /// Per-directory configuration. As in Apache nothing is merged: one directive in a section,
    /// and nothing is inherited.
    pub struct Dir {
        /// Both directives.
        pub own: Setting<DbmConfig>,
    }
}

fn file(cx: &mut Cx<'_, '_, AuthnDbm>, arg: &Arg) -> Set {
    let file = Dbm::of(cx.build(), "AuthDBMUserFile", arg)?;
    dbm::change(&mut cx.dir().own, |own| own.file = Some(file));
    Ok(())
}

fn kind(cx: &mut Cx<'_, '_, AuthnDbm>, arg: &Arg) -> Set {
    dbm::check_type("AuthDBMType", arg)?;
    dbm::change(&mut cx.dir().own, |own| own.kind = Some(arg.text.to_vec()));
    Ok(())
}

struct Users;

impl Authenticate for Users {
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        Pending::Wait(Box::pin(async move {
            let found = value(request, &login.user).await;
            found::compare::<AuthnDbm>(request, PROVIDER, login, found).await
        }))
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
        Some(Pending::Wait(Box::pin(async move {
            let key = [user, b":", realm].concat();
            let found = value(request, &key).await;
            found::digest(request, PROVIDER, (user, realm), found).await
        })))
    }
}

/// The value of a key up to a colon: mod_authz_dbm's groups can follow. Source: `fetch_dbm_value`.
async fn value(request: &mut Request, key: &[u8]) -> Found {
    let own = request.dir_of::<AuthnDbm>().and_then(|dir| dir.own.get().cloned());
    let own = own.unwrap_or_default();
    let kind = own.kind();
    let Some(file) = &own.file else {
        let message = format_args!("could not open dbm (type {kind}) file: (null)");
        request.log::<AuthnDbm>(Level::Error, 10285, message);
        return Err(Unread);
    };
    match file.find(request, key).await {
        Ok(value) => Ok(value.map(|value| until(&value, b':').0.to_vec())),
        Err(why) => {
            let path = file.path();
            let message = format_args!("could not open dbm (type {kind}) file: {path}");
            request.log_error::<AuthnDbm>(Level::Error, 10285, why, message);
            Err(Unread)
        }
    }
}
