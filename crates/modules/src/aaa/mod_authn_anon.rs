//! mod_authn_anon: logins with an agreed name and an address as the password, as in anonymous FTP.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authn_anon.html>

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

use super::provider::{AUTHN, Authenticate, Authn, AuthnProvider, Login, Pending};

/// `mod_authn_anon.c`
pub struct AuthnAnon;

impl Module for AuthnAnon {
    const NAME: &'static str = "authn_anon_module";
    const FILE: &'static str = "mod_authn_anon.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthnAnon>] = &[
        Row::new(
            "Anonymous",
            Takes::Each(name),
            "user [user] ...",
            "Adds names that may log in without a password of theirs; `*` stands for all names.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG),
        flag(
            "Anonymous_LogEmail",
            Takes::Flag(|cx, on| set(cx, |own| own.logs = on)),
            "Writes the password to the error log, at the level `info`.",
            "On",
        ),
        flag(
            "Anonymous_MustGiveEmail",
            Takes::Flag(|cx, on| set(cx, |own| own.must_give = on)),
            "Refuses an empty password.",
            "On",
        ),
        flag(
            "Anonymous_NoUserId",
            Takes::Flag(|cx, on| set(cx, |own| own.no_name = on)),
            "Allows an empty user name.",
            "Off",
        ),
        flag(
            "Anonymous_VerifyEmail",
            Takes::Flag(|cx, on| set(cx, |own| own.verifies = on)),
            "Refuses a password without an `@` and a dot.",
            "Off",
        ),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthnAnon>) {
        hooks.provider::<AuthnProvider>(AUTHN, "anon", Arc::new(Anonymous));
    }
}

server::config! {
    /// Per-directory configuration. As in Apache nothing is merged: one directive in a section,
    /// and nothing is inherited.
    pub struct Dir {
        /// All directives.
        pub own: Setting<Own>,
    }
}

/// The directives of a section.
#[derive(Clone, Debug)]
pub struct Own {
    /// `Anonymous`: the names.
    names: Vec<Vec<u8>>,
    /// `Anonymous *`
    any_name: bool,
    /// `Anonymous_LogEmail`
    logs: bool,
    /// `Anonymous_MustGiveEmail`
    must_give: bool,
    /// `Anonymous_NoUserId`
    no_name: bool,
    /// `Anonymous_VerifyEmail`
    verifies: bool,
}

impl Default for Own {
    fn default() -> Own {
        let (names, any_name) = (Vec::new(), false);
        Own { names, any_name, logs: true, must_give: true, no_name: false, verifies: false }
    }
}

const fn flag(
    name: &'static str,
    takes: Takes<AuthnAnon>,
    doc: &'static str,
    default: &'static str,
) -> Row<AuthnAnon> {
    Row::new(name, takes, "On|Off", doc)
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default(default)
}

fn set(cx: &mut Cx<'_, '_, AuthnAnon>, change: impl FnOnce(&mut Own)) -> Set {
    let own = &mut cx.dir().own;
    let mut changed = own.get().cloned().unwrap_or_default();
    change(&mut changed);
    own.set(changed);
    Ok(())
}

/// Names after `*` count for nothing (`anon_set_string_slots`).
fn name(cx: &mut Cx<'_, '_, AuthnAnon>, arg: &Arg) -> Set {
    set(cx, |own| match own.any_name {
        true => {}
        false if arg.is("*") => own.any_name = true,
        false => own.names.push(arg.text.to_vec()),
    })
}

struct Anonymous;

impl Authenticate for Anonymous {
    fn check_password<'r>(
        &'r self,
        request: &'r mut Request,
        login: &'r Login,
    ) -> Pending<'r, Authn> {
        let own = request.dir_of::<AuthnAnon>().and_then(|dir| dir.own.get());
        let Some(own) = own else { return Pending::Now(Authn::UserNotFound) };
        let found = own.judge(login);
        if found == Authn::Granted && own.logs && request.is_initial() {
            let password = Verbatim::new(&login.password);
            let message = format_args!("Anonymous: Passwd <{password}> Accepted");
            request.log::<AuthnAnon>(Level::Info, 1672, message);
        }
        Pending::Now(found)
    }
}

impl Own {
    /// Source: `check_anonymous`.
    fn judge(&self, login: &Login) -> Authn {
        if self.names.is_empty() && !self.any_name {
            return Authn::UserNotFound;
        }
        let is_known = match login.user.is_empty() {
            true => self.no_name,
            false => {
                self.any_name
                    || self.names.iter().any(|name| name.eq_ignore_ascii_case(&login.user))
            }
        };
        let password = &login.password;
        let is_given = !self.must_give || !password.is_empty();
        let is_address = || password.contains(&b'@') && password.contains(&b'.');
        match is_known {
            false => Authn::UserNotFound,
            true if is_given && (!self.verifies || is_address()) => Authn::Granted,
            true => Authn::Denied,
        }
    }
}
