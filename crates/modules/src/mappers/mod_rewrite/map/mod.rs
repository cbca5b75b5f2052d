//! `RewriteMap`: maps from keys to values.
//!
//! Source: `cmd_rewritemap`, `lookup_map`.

mod database;
mod file;
mod index;
mod internal;
mod program;

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use bstr::ByteSlice;
use conf::Arg;
use server::build::Build;
use server::directive::{Fault, Target};

use crate::database::mod_dbd;

pub(super) use database::{DatabaseMap, Found};
pub(super) use file::Asked;
pub(crate) use file::{Kind, MapFile};
pub(super) use internal::Internal;
pub(super) use program::MapProgram;
pub use program::companions;

/// A map.
#[derive(Debug)]
pub(super) enum Map {
    /// `txt:`, `rnd:`, `dbm:`
    File(Arc<MapFile>),
    /// `int:`
    Internal(Internal),
    /// `prg:`
    Program(Arc<MapProgram>),
    /// `dbd:`, `fastdbd:`
    Database(DatabaseMap),
}

/// Parses the source of the map `name`.
///
/// # Errors
/// Apache's messages; unsupported sources are refused with a reason.
pub(super) fn parse(
    target: &mut Target<'_>,
    name: &[u8],
    source: &Arg,
    identity: Option<&[u8]>,
) -> Result<Map, Fault> {
    let (whole, source) = (source, source.text.as_slice());
    let after = |kind: &str| {
        let (start, rest) = source.split_at_checked(kind.len())?;
        start.eq_ignore_ascii_case(kind.as_bytes()).then_some(rest)
    };
    if let Some(function) = after("int:") {
        return Internal::of_name(function).map(Map::Internal).ok_or_else(|| {
            format!("RewriteMap: internal map not found:{}", function.as_bstr()).into()
        });
    }
    let fast = after("fastdbd:");
    if let Some(query) = after("dbd:").or(fast) {
        let query = Arg { text: query.into(), ..whole.clone() };
        let needs = "RewriteMap types dbd and fastdbd require mod_dbd!";
        let label = mod_dbd::prepare(target, "rewritemap", &query, needs)?;
        return Ok(Map::Database(DatabaseMap::new(label, fast.is_some())));
    }
    let build = &*target.build;
    if let Some(command) = after("prg:") {
        let program = MapProgram::parse(build, command, identity)?;
        if !program.path().exists() {
            return Err(not_found(name, program.path().as_os_str().as_bytes()));
        }
        return Ok(Map::Program(Arc::new(program)));
    }
    if let Some(rest) = after("dbm") {
        return dbm(build, name, source, rest);
    }
    let (kind, path) = match (after("txt:"), after("rnd:")) {
        (Some(path), _) => (Kind::Text, path),
        (_, Some(path)) => (Kind::Random, path),
        _ => (Kind::Text, source),
    };
    open(build, name, path, kind)
}

fn dbm(build: &Build, name: &[u8], source: &[u8], rest: &[u8]) -> Result<Map, Fault> {
    let (kind, path) = match rest {
        [b':', path @ ..] => (&b"default"[..], path),
        [b'=', rest @ ..] => rest.split_once_str(":").unwrap_or((b"", b"")),
        _ => (&b""[..], &b""[..]),
    };
    let kind = match kind.to_ascii_lowercase().as_slice() {
        b"" => return Err(format!("RewriteMap: bad map:{}", source.as_bstr()).into()),
        b"sdbm" => Kind::Sdbm,
        // APR's default depends on its build; an SDBM file is recognised by its name.
        b"default" if exists(build, &[path, b".pag"].concat()) => Kind::Sdbm,
        b"default" | b"gdbm" | b"db" => {
            return Err(not_sdbm("RewriteMap"));
        }
        other => {
            return Err(format!("RewriteMap: dbm type {} is invalid", other.as_bstr()).into());
        }
    };
    open(build, name, path, kind)
}

/// A directive names a DBM file of another format.
pub(crate) fn not_sdbm(directive: &str) -> Fault {
    let help = "create it with: httxt2dbm -f SDBM -i TEXT -o FILE, and name its type: sdbm";
    Fault::new(format!("{directive}: only SDBM files are supported")).help(help)
}

fn exists(build: &Build, path: &[u8]) -> bool {
    build.path(path).exists()
}

fn open(build: &Build, name: &[u8], path: &[u8], kind: Kind) -> Result<Map, Fault> {
    let map = MapFile::new(build.path(path).as_os_str().as_bytes(), kind);
    match map.missing() {
        Some(missing) => Err(not_found(name, missing)),
        None => Ok(Map::File(Arc::new(map))),
    }
}

fn not_found(name: &[u8], path: &[u8]) -> Fault {
    let (name, path) = (name.as_bstr(), path.as_bstr());
    format!("RewriteMap: file for map {name} not found:{path}").into()
}
