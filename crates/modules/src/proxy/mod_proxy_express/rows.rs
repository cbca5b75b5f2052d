//! The directives of mod_proxy_express.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Row, Set, State, Takes};
use server::merge::Own;

use super::ProxyExpress;
use crate::mappers::mod_rewrite::map::{Kind, MapFile, not_sdbm};

type Here<'a, 't> = Cx<'a, 't, ProxyExpress>;

pub(super) const ROWS: &[Row<ProxyExpress>] = &[
    row(
        "ProxyExpressEnable",
        Takes::Flag(enable),
        "on|off",
        "Looks up the name of each request's host in ProxyExpressDBMFile, and forwards the request \
         to the URL found there. `off` in a virtual host does not undo `on` of the main server, as \
         in Apache.",
    )
    .default("off"),
    row(
        "ProxyExpressDBMFile",
        Takes::One(file),
        "pathname",
        "The file in which names are looked up, made by `httxt2dbm -f SDBM` from lines with a name \
         and a URL. It is read again when it changes.",
    ),
    row(
        "ProxyExpressDBMType",
        Takes::One(kind),
        "type",
        "The type of the file. `default` is SDBM, too, if there is a file with `.pag` behind its \
         name.",
    )
    .default("default")
    .state(State::Partial("only SDBM files are supported")),
];

const fn row(
    name: &'static str,
    takes: Takes<ProxyExpress>,
    syntax: &'static str,
    doc: &'static str,
) -> Row<ProxyExpress> {
    Row::new(name, takes, syntax, doc).standing(Places::ALL, Override::FILE_INFO)
}

/// Sets the server's value. In an `.htaccess` that would change the host for all later requests.
fn set(cx: &mut Here<'_, '_>, set: impl FnOnce(&mut super::Settings)) -> Set {
    if !cx.in_htaccess() {
        set(cx.server());
    }
    Ok(())
}

/// Source: `set_enabled`.
fn enable(cx: &mut Here<'_, '_>, on: bool) -> Set {
    set(cx, |settings| match on {
        true => settings.is_enabled.set(true),
        false => settings.is_enabled.unset(),
    })
}

/// Source: `set_dbmfile`.
fn file(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let path = cx.build().path(&arg.text);
    let map = MapFile::new(path.as_os_str().as_bytes(), Kind::Sdbm);
    // A file of another format has no second file.
    if path.is_file() && map.missing().is_some() {
        return Err(not_sdbm("ProxyExpressDBMFile").at(arg));
    }
    set(cx, |settings| settings.file.set(Arc::new(map)))
}

/// Source: `set_dbmtype`.
fn kind(cx: &mut Here<'_, '_>, arg: &Arg) -> Set {
    let unknown = match arg.text.to_ascii_lowercase().as_slice() {
        b"default" | b"sdbm" => None,
        b"gdbm" | b"ndbm" | b"db" => return Err(not_sdbm("ProxyExpressDBMType").at(arg)),
        _ => Some(arg.text.to_vec()),
    };
    set(cx, |settings| settings.unknown_type = Own(unknown))
}
