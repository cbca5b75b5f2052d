//! The certificate of the bundled configuration: `var/tls/localhost.crt` below the ServerRoot is
//! made when it is missing. No other file is ever made.

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

/// Whether a file may be missing, because it is made at start.
pub fn is_ours(build: &Build, path: &Path) -> bool {
    let folder = build.server_root.join(FOLDER);
    path == folder.join(CERTIFICATE) || path == folder.join(KEY)
}

/// Makes the pair if the host names it and it is not there.
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
        Finding::error("SSLCertificateFile", format!("cannot make '{path}': {error}"))
    })
}
