//! DBM files of users and groups, for mod_authn_dbm and mod_authz_dbm.

use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use conf::Arg;
use rustix::io::Errno;
use server::config::build::Build;
use server::directive::Fault;
use server::merge::Setting;
use server::request::Request;

use crate::mappers::mod_rewrite::map::{Kind, MapFile, not_sdbm};

/// The directives of a section.
#[derive(Clone, Default)]
pub struct DbmConfig {
    /// The file.
    pub(super) file: Option<Dbm>,
    /// The name of its type; `None` for `default`.
    pub(super) kind: Option<Vec<u8>>,
}

impl DbmConfig {
    /// The name of the type, as in Apache's messages.
    pub fn kind(&self) -> &bstr::BStr {
        bstr::BStr::new(self.kind.as_deref().unwrap_or(b"default"))
    }
}

/// Changes the directives of a section.
pub(super) fn change(own: &mut Setting<DbmConfig>, change: impl FnOnce(&mut DbmConfig)) {
    let mut config = own.get().cloned().unwrap_or_default();
    change(&mut config);
    own.set(config);
}

/// The file of a directive.
#[derive(Clone)]
pub struct Dbm {
    map: Arc<MapFile>,
    /// The name without an extension, as in Apache's messages.
    path: Arc<[u8]>,
}

impl Dbm {
    /// Returns the file that `directive` names.
    ///
    /// # Errors
    /// The file exists, and is none of SDBM's.
    pub fn of(build: &Build, directive: &str, arg: &Arg) -> Result<Dbm, Fault> {
        let path = build.path(&arg.text);
        let map = MapFile::new(path.as_os_str().as_bytes(), Kind::Sdbm);
        // A file of another format has no second file.
        if path.is_file() && map.missing().is_some() {
            return Err(not_sdbm(directive).at(arg));
        }
        Ok(Dbm { map: Arc::new(map), path: path.as_os_str().as_bytes().into() })
    }

    /// The value of a key, up to its first NUL.
    ///
    /// # Errors
    /// The system's, if the file can't be read.
    pub async fn find(&self, request: &mut Request, key: &[u8]) -> Result<Option<Vec<u8>>, Errno> {
        let found = self.map.find(request, key, false).await.map_err(|(error, ..)| error)?;
        Ok(found.value.map(|mut value| {
            let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
            value.truncate(end);
            value
        }))
    }

    /// The name without an extension.
    pub fn path(&self) -> &bstr::BStr {
        bstr::BStr::new(&self.path)
    }
}

/// Accepts the type of a file if it is SDBM.
///
/// # Errors
/// It is another one of APR's types, or none.
pub(super) fn check_type(directive: &str, arg: &Arg) -> Result<(), Fault> {
    match arg.text.to_ascii_lowercase().as_slice() {
        b"default" | b"sdbm" => Ok(()),
        b"gdbm" | b"ndbm" | b"db" => Err(not_sdbm(directive).at(arg)),
        _ => {
            let help = format!("usage: {directive} default|SDBM");
            Err(Fault::new(format!("{directive}: there is no such type")).at(arg).help(help))
        }
    }
}
