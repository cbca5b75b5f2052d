//! mod_authz_dbm: groups of users in DBM files.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_dbm.html>

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, State, Takes};
use server::hooks::Hooks;
use server::log::Level;
use server::merge::Setting;
use server::module::Module;
use server::request::Request;

use super::dbm::{self, Dbm, DbmConfig};
use super::groups::{self, KnowsGroups, Required, refused};
use super::line::until;
use super::mod_authn_core::realm;
use super::provider::{AUTHZ, Authz};

/// `mod_authz_dbm.c`
pub struct AuthzDbm;

impl Module for AuthzDbm {
    const NAME: &'static str = "authz_dbm_module";
    const FILE: &'static str = "mod_authz_dbm.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<AuthzDbm>] = &[
        Row::new(
            "AuthDBMGroupFile",
            Takes::One(file),
            "file-path",
            "Sets the file of users and their groups, without its extension `.pag`.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG),
        Row::new(
            "AuthzDBMType",
            Takes::One(kind),
            "default|SDBM|GDBM|NDBM|DB",
            "The type of AuthDBMGroupFile. `default` is SDBM, too.",
        )
        .standing(Places::PER_DIR, Override::AUTH_CONFIG)
        .default("default")
        .state(State::Partial("only SDBM files are supported")),
    ];

    fn hooks(hooks: &mut Hooks<'_, AuthzDbm>) {
        hooks.provider(AUTHZ, "dbm-group", groups::named::<AuthzDbm>());
        hooks.provider(AUTHZ, "dbm-file-group", groups::of_file::<AuthzDbm>());
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

fn file(cx: &mut Cx<'_, '_, AuthzDbm>, arg: &Arg) -> Set {
    let file = Dbm::of(cx.build(), "AuthDBMGroupFile", arg)?;
    dbm::change(&mut cx.dir().own, |own| own.file = Some(file));
    Ok(())
}

fn kind(cx: &mut Cx<'_, '_, AuthzDbm>, arg: &Arg) -> Set {
    dbm::check_type("AuthzDBMType", arg)?;
    dbm::change(&mut cx.dir().own, |own| own.kind = Some(arg.text.to_vec()));
    Ok(())
}

impl KnowsGroups for AuthzDbm {
    /// As the file has them.
    type Groups = Vec<u8>;
    const EXPRESSION: (u32, &'static str) = (2591, "authz_dbm authorize: require dbm-group");
    const NOT_AMONG: u32 = 1801;
    const NOT_OF_FILE: (u32, &'static str) =
        (1805, "user is not part of the 'require'ed group(s).");
    const REFUSED: Level = Level::Error;
    const LOGS_WITHOUT_GROUP: bool = true;
    const UNQUOTES: bool = false;

    /// Source: `dbmgroup_check_authorization`, `dbmfilegroup_check_authorization`.
    async fn groups(request: &mut Request, what: Required) -> Result<Vec<u8>, Authz> {
        match what {
            Required::Named => groups(request, [1798, 1799, 1800], Authz::GeneralError).await,
            Required::OfFile => groups(request, [1802, 1799, 1804], Authz::Denied).await,
        }
    }

    /// A comma at the beginning of a word is not skipped, and repeated ones count once.
    fn is_among(name: &[u8], groups: &Vec<u8>) -> bool {
        groups.split(|byte| *byte == b',').any(|group| group == name)
    }
}

/// The user's groups. `numbers` are those of the log lines for: no file configured, file
/// unreadable, no group found. Source: `get_dbm_grp`.
async fn groups(
    request: &mut Request,
    numbers: [u32; 3],
    unreadable: Authz,
) -> Result<Vec<u8>, Authz> {
    let Some(user) = request.user.clone() else { return Err(Authz::DeniedNoUser) };
    let own = request.dir_of::<AuthzDbm>().and_then(|dir| dir.own.get().cloned());
    let own = own.unwrap_or_default();
    let Some(file) = &own.file else {
        let message = format_args!("No group file was specified in the configuration");
        // Apache tells only `Require dbm-group` of it.
        let level = if numbers[0] == 1798 { Level::Error } else { Level::Debug };
        request.log::<AuthzDbm>(level, numbers[0], message);
        return Err(Authz::Denied);
    };
    let key = [&user, &b":"[..], &realm(request).unwrap_or_default()].concat();
    let found = match file.find(request, &key).await {
        Ok(None) => file.find(request, &user).await,
        found => found,
    };
    match found {
        Ok(Some(value)) => Ok(match until(&value, b':') {
            (all, _) if all.len() == value.len() => value,
            (_, rest) => until(rest, b':').0.to_vec(),
        }),
        Ok(None) => {
            let path = file.path();
            let reason = format_args!("user doesn't appear in DBM group file ({path}).");
            refused::<AuthzDbm>(request, numbers[2], reason);
            Err(Authz::Denied)
        }
        Err(why) => {
            let (kind, path) = (own.kind(), file.path());
            let message =
                format_args!("could not open dbm (type {kind}) group access file: {path}");
            request.log_error::<AuthzDbm>(Level::Error, numbers[1], why, message);
            Err(unreadable)
        }
    }
}
