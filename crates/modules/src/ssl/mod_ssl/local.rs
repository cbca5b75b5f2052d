//! The certificate of the bundled configuration: creates `var/tls/localhost.crt` below the
//! ServerRoot if it is missing. No other file is ever created.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use server::build::Build;
use tls::Finding;
use tls::local::LocalCertificate;

use super::config::Server;

const FOLDER: &str = "var/tls";
const CERTIFICATE: &str = "localhost.crt";
const KEY: &str = "localhost.key";

/// Whether a file may be missing, since it is created at startup.
pub fn is_ours(build: &Build, path: &Path) -> bool {
    let folder = build.server_root.join(FOLDER);
    path == folder.join(CERTIFICATE) || path == folder.join(KEY)
}

/// Creates the pair if the host names it and it does not exist.
pub fn ensure(build: &Build, server: &Server) -> Result<(), Finding> {
    let folder = build.server_root.join(FOLDER);
    let pair = LocalCertificate { certificate: folder.join(CERTIFICATE), key: folder.join(KEY) };
    let names = |list: &[Vec<u8>], path: &Path| {
        list.iter().any(|named| Path::new(OsStr::from_bytes(named)) == path)
    };
    if !names(&server.certificates, &pair.certificate) || !names(&server.keys, &pair.key) {
        return Ok(());
    }
    tls::local::ensure(&pair).map_err(|error| {
        let path = pair.certificate.display();
        Finding::error("SSLCertificateFile", format!("cannot create '{path}': {error}"))
    })
}
