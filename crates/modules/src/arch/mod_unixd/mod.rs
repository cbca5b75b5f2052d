//! mod_unixd: user, group and root directory of the children, and the companion that starts
//! programs for them.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_unixd.html>

pub mod spawner;
pub(crate) mod suexec;

use std::path::PathBuf;

use conf::Arg;
use nix::unistd;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::merge::{Outermost, Setting};
use server::module::Module;

/// `mod_unixd.c`
pub struct Unixd;

/// `User`, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The user's id.
    pub id: u32,
    /// The user's name, for the supplementary groups; `None` for a number without a name.
    pub name: Option<String>,
}

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `User`
        pub user: Outermost<Setting<User>>,
        /// The id of `Group`.
        pub group: Outermost<Setting<u32>>,
        /// `ChrootDir`
        pub chroot: Outermost<Setting<PathBuf>>,
        /// `Suexec`
        pub(crate) suexec: Outermost<Setting<bool>>,
        /// What starts programs.
        pub(crate) spawner: Outermost<spawner::Handle>,
    }
}

impl Module for Unixd {
    const NAME: &'static str = "unixd_module";
    const FILE: &'static str = "mod_unixd.c";
    type Server = Settings;
    type Dir = ();
    const DIRECTIVES: &'static [Row<Unixd>] = &[
        row("User", Takes::One(user), "unix-userid", "#-1", "Sets the user that children run as."),
        row(
            "Group",
            Takes::One(group),
            "unix-group",
            "#-1",
            "Sets the group that children run as.",
        ),
        row(
            "ChrootDir",
            Takes::One(chroot_dir),
            "/path/to/directory",
            "none",
            "Sets the root directory of the children.",
        ),
        row(
            "Suexec",
            Takes::Flag(suexec),
            "On|Off",
            "On if the wrapper is there",
            "Allows programs to run as other users.",
        ),
    ];
}

const fn row(
    name: &'static str,
    takes: Takes<Unixd>,
    syntax: &'static str,
    default: &'static str,
    doc: &'static str,
) -> Row<Unixd> {
    Row::new(name, takes, syntax, doc).standing(Places::SERVER, Override::NONE).default(default)
}

type Here<'a, 't> = Cx<'a, 't, Unixd>;

fn user(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let user = user_of(arg)?;
    if user.id == 0 {
        let fault = "Apache has not been designed to serve pages while running as root";
        return Err(Fault::new(fault).at(arg));
    }
    cx.server().user.0.set(user);
    Ok(())
}

fn group(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let id = group_of(arg)?;
    cx.server().group.0.set(id);
    Ok(())
}

/// The user of a name or `#number`.
///
/// Source: `ap_uname2id`
pub(crate) fn user_of(arg: &Arg) -> Result<User, Fault> {
    let text = arg.text.to_string();
    if let Some(number) = text.strip_prefix('#') {
        let id = number.parse::<i64>().unwrap_or(0) as u32;
        let known = unistd::User::from_uid(id.into()).ok().flatten();
        return Ok(User { id, name: known.map(|found| found.name) });
    }
    match unistd::User::from_name(&text) {
        Ok(Some(found)) => Ok(User { id: found.uid.as_raw(), name: Some(found.name) }),
        _ => Err(Fault::new(format!("AH00543: bad user name {text}")).at(arg)),
    }
}

/// The id of a group's name or `#number`.
///
/// Source: `ap_gname2id`
pub(crate) fn group_of(arg: &Arg) -> Result<u32, Fault> {
    let text = arg.text.to_string();
    if let Some(number) = text.strip_prefix('#') {
        return Ok(number.parse::<i64>().unwrap_or(0) as u32);
    }
    match unistd::Group::from_name(&text) {
        Ok(Some(found)) => Ok(found.gid.as_raw()),
        _ => Err(Fault::new(format!("AH00544: bad group name {text}")).at(arg)),
    }
}

fn chroot_dir(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let path = server::path::as_path(&arg.text).to_owned();
    if !path.is_dir() {
        return Err(Fault::new("ChrootDir must be a valid directory").at(arg));
    }
    cx.server().chroot.0.set(path);
    Ok(())
}

/// Source: `unixd_set_suexec`
fn suexec(cx: &mut Here<'_, '_>, on: bool) -> Set {
    if on && let Err(why) = suexec::wrapper(cx.build()) {
        return Err(Fault::new(format!("suEXEC isn't supported: {why}")));
    }
    if !on {
        suexec::switch_off(cx.build());
    }
    cx.server().suexec.0.set(on);
    Ok(())
}
