//! mod_authn_dbd: users and passwords in SQL databases.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_dbd.html>

use std::fmt;
use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, Takes};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::found::{self, Found, Unread};
use super::password::verified;
use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending, RealmHash};
use crate::database::mod_dbd::{self, Argument, Failure, Outcome};

/// `mod_authn_dbd.c`
pub struct AuthnDbd;

/// The name of the provider.
const PROVIDER: &str = "dbd";
/// The error without mod_dbd.
const NEEDS_DBD: &str = "You must load mod_dbd to enable AuthDBD functions";
/// What the names of variables begin with (`AUTHN_PREFIX`).
const PREFIX: &[u8] = b"AUTHENTICATE_";

impl Module for AuthnDbd {
    const NAME: &'static str = "authn_dbd_module";
    const FILE: &'static str = "mod_authn_dbd.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnDbd>] = &[
        Row::<AuthnDbd>::new(
            "AuthDBDUserPWQuery",
            Takes::One(password_query),
            "query",
            "Sets the statement that finds the hash of a user's password.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
        Row::<AuthnDbd>::new(
            "AuthDBDUserRealmQuery",
            Takes::One(realm_query),
            "query",
            "Sets the statement that finds the digest of a user in a realm.",
        )
        .standing(Places::DIRECTORY, Override::NONE),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthnDbd>) {
        hooks.provider::<AuthnProvider>(AUTHN, PROVIDER, Arc::new(Users));
        hooks.every_second(|engine| verified::forget_old(engine.handle.clock().now_ms()));
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// The label of `AuthDBDUserPWQuery`.
        user: Setting<Arc<str>>,
        /// The label of `AuthDBDUserRealmQuery`.
        realm: Setting<Arc<str>>,
    }
}

fn password_query(cx: &mut Cx<'_, '_, AuthnDbd>, arg: &Arg) -> Set {
    let label = mod_dbd::prepare(cx.target, "authn_dbd", arg, NEEDS_DBD)?;
    cx.dir().user.set(label.into());
    Ok(())
}

fn realm_query(cx: &mut Cx<'_, '_, AuthnDbd>, arg: &Arg) -> Set {
    let label = mod_dbd::prepare(cx.target, "authn_dbd", arg, NEEDS_DBD)?;
    cx.dir().realm.set(label.into());
    Ok(())
}

/// One of the two queries: its name, and the first of its messages, which follow one another.
#[derive(Clone, Copy)]
struct Kind {
    directive: &'static str,
    number: u32,
}

const BY_USER: Kind = Kind { directive: "AuthDBDUserPWQuery", number: 1653 };
const BY_REALM: Kind = Kind { directive: "AuthDBDUserRealmQuery", number: 1658 };

struct Users;

impl Authenticate for Users {
    /// Source: `authn_dbd_password`.
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        let label = request.dir_of::<AuthnDbd>().and_then(|dir| dir.user.get().cloned());
        Pending::Wait(Box::pin(async move {
            let arguments = vec![Argument::Text(login.user.clone())];
            let who = Verbatim::new(&login.user);
            let found = look_up(request, BY_USER, label, arguments, &who).await;
            found::compare::<AuthnDbd>(request, PROVIDER, login, found).await
        }))
    }

    fn has_digests(&self) -> bool {
        true
    }

    /// Source: `authn_dbd_realm`.
    fn realm_hash<'r>(
        &'r self,
        request: &'r mut Request,
        user: &'r [u8],
        realm: &'r [u8],
    ) -> Option<Pending<'r, RealmHash>> {
        let label = request.dir_of::<AuthnDbd>().and_then(|dir| dir.realm.get().cloned());
        Some(Pending::Wait(Box::pin(async move {
            let arguments = vec![Argument::Text(user.to_vec()), Argument::Text(realm.to_vec())];
            let who = format!("{}:{}", Verbatim::new(user), Verbatim::new(realm));
            let found = look_up(request, BY_REALM, label, arguments, &who).await;
            found::digest(request, PROVIDER, (user, realm), found).await
        })))
    }
}

/// The first column of the first row that has one. Further columns of that row are variables.
async fn look_up(
    request: &mut Request,
    kind: Kind,
    label: Option<Arc<str>>,
    arguments: Vec<Argument>,
    who: &(dyn fmt::Display + Sync),
) -> Found {
    let Kind { directive, number } = kind;
    let label = label.as_deref();
    // Without a label none is found: Apache asks for a connection first.
    let why = match mod_dbd::query(request, label.unwrap_or_default(), arguments).await {
        Ok(outcome) => return Ok(take(request, outcome)),
        Err(why) => why,
    };
    let log = |number, text: fmt::Arguments<'_>| {
        request.log::<AuthnDbd>(Level::Error, number, text);
    };
    match (why, label) {
        (Failure::NoConnection, _) => {
            let text =
                format_args!("Failed to acquire database connection to look up user '{who}'");
            log(number, text);
        }
        (_, None) => log(number + 1, format_args!("No {directive} has been specified")),
        (Failure::NoStatement, Some(label)) => {
            let text = format_args!(
                "A prepared statement could not be found for {directive} with the key '{label}'"
            );
            log(number + 2, text);
        }
        (Failure::Query(why), _) => {
            let text = format_args!("Query execution error looking up '{who}' in database [{why}]");
            log(number + 3, text);
        }
    }
    Err(Unread)
}

fn take(request: &mut Request, outcome: Outcome) -> Option<Vec<u8>> {
    let names: Vec<Vec<u8>> = outcome.names.iter().skip(1).map(|name| variable(name)).collect();
    for mut row in outcome.rows {
        for (name, value) in names.iter().zip(row.iter().skip(1)) {
            match value {
                Some(value) => request.env.set(name, value),
                None => {
                    request.env.unset(name);
                }
            }
        }
        if let Some(hash) = row.first_mut().and_then(Option::take) {
            return Some(hash);
        }
    }
    None
}

/// The name of the variable of a column.
fn variable(column: &str) -> Vec<u8> {
    let letter = |byte: u8| if byte.is_ascii_alphanumeric() { byte } else { b'_' };
    let letters = column.bytes().map(|byte| letter(byte).to_ascii_uppercase());
    PREFIX.iter().copied().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_are_named_as_variables() {
        assert_eq!(super::variable("full name-1"), b"AUTHENTICATE_FULL_NAME_1");
    }
}
