//! TLS to PostgreSQL: `sslmode`, and the files of certificates.
//!
//! Specification: <https://www.postgresql.org/docs/current/libpq-ssl.html>.

use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::ClientConfig;
use tls::client_config::{self, BackendTls};
use tls::machine_certificates::MachineCertificates;
use tls::protocols::Protocols;
use tls::server_verifier::{NameCheck, ServerVerifier, Settings};
use tls::trust::Locations;
use tls::verify::Mode;
use tls::{Finding, revocation};

/// The longest chain of certificates, as in OpenSSL.
const DEPTH: usize = 100;
/// The most bytes of a file of certificates or keys.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// The folder of default files in the user's home.
const FOLDER: &str = ".postgresql";

/// `sslmode`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SslMode {
    /// Never.
    Disable,
    /// If the server refuses a connection without it.
    Allow,
    /// If the server has it.
    #[default]
    Prefer,
    /// Always.
    Require,
    /// Always, with a certificate by a known authority.
    VerifyCa,
    /// Always, with such a certificate for the host's name.
    VerifyFull,
}

impl SslMode {
    fn of_name(name: &str) -> Result<SslMode, String> {
        Ok(match name {
            "disable" => SslMode::Disable,
            "allow" => SslMode::Allow,
            "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return Err(format!("invalid sslmode value: \"{name}\"")),
        })
    }

    /// Whether each of the ways to try is by TLS.
    pub fn ways(self) -> &'static [bool] {
        match self {
            SslMode::Disable => &[false],
            SslMode::Allow => &[false, true],
            SslMode::Prefer => &[true, false],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[true],
        }
    }
}

/// What belongs to TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Security {
    /// `sslmode`
    pub mode: SslMode,
    /// `sslrootcert`; if there is none, `~/.postgresql/root.crt`.
    root: Option<PathBuf>,
    /// `sslcert`; if there is none, `~/.postgresql/postgresql.crt`.
    certificate: Option<PathBuf>,
    /// `sslkey`; if there is none, `~/.postgresql/postgresql.key`.
    key: Option<PathBuf>,
    /// `sslcrl` and `sslcrldir`; if there is none, `~/.postgresql/root.crl`.
    revocation_lists: Locations,
    /// Without TLS 1.2 or TLS 1.3: `ssl_min_protocol_version` and `ssl_max_protocol_version`.
    without: (bool, bool),
}

impl Security {
    /// Takes its parameters from those that are given.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn take(take: &mut impl FnMut(&str) -> Option<String>) -> Result<Security, String> {
        let mode =
            take("sslmode").map_or(Ok(SslMode::default()), |name| SslMode::of_name(&name))?;
        let path = |value: Option<String>| value.map(PathBuf::from);
        let least = version("ssl_min_protocol_version", take("ssl_min_protocol_version"), 0)?;
        let most = version("ssl_max_protocol_version", take("ssl_max_protocol_version"), 3)?;
        if least > most || most < 2 {
            return Err("no version of TLS remains: 1.2 and 1.3 are supported".to_owned());
        }
        Ok(Security {
            mode,
            root: path(take("sslrootcert")),
            certificate: path(take("sslcert")),
            key: path(take("sslkey")),
            revocation_lists: Locations {
                file: take("sslcrl").map(String::into_bytes),
                folder: take("sslcrldir").map(String::into_bytes),
            },
            without: (least > 2, most < 3),
        })
    }

    /// What a connection is made with. Source: `initialize_SSL`.
    ///
    /// # Errors
    /// Files that are missing, wrong, or not for their owner alone.
    pub fn config(&self, home: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
        let default = |name: &str| home.map(|home| home.join(FOLDER).join(name));
        let or_default = |given: &Option<PathBuf>, name| given.clone().or_else(|| default(name));
        let settings = BackendTls {
            protocols: Protocols {
                tls12: !self.without.0,
                tls13: !self.without.1,
                ..Protocols::default()
            },
            cipher_suite: None,
            cipher_suite_tls13: None,
            verifier: self.verifier(or_default(&self.root, "root.crt"), default("root.crl"))?,
            certificates: self.certificates(
                or_default(&self.certificate, "postgresql.crt"),
                or_default(&self.key, "postgresql.key"),
            )?,
            alpn: Vec::new(),
        };
        let first = |findings: Vec<Finding>| findings.into_iter().find(Finding::is_error);
        let built = client_config::build(&settings).map(|(config, _)| config);
        built.map_err(|findings| first(findings).map_or_else(String::new, |found| found.message))
    }

    /// The server's certificate is verified where there is a file of authorities, in every mode.
    fn verifier(
        &self,
        root: Option<PathBuf>,
        lists: Option<PathBuf>,
    ) -> Result<Arc<ServerVerifier>, String> {
        let root = root.filter(|root| root.exists());
        let must_verify = matches!(self.mode, SslMode::VerifyCa | SslMode::VerifyFull);
        if must_verify && root.is_none() {
            let given = self.root.as_deref().map(|root| format!(" \"{}\"", root.display()));
            return Err(format!(
                "root certificate file{} does not exist: either provide the file or change \
                 sslmode to disable server certificate verification",
                given.unwrap_or_default()
            ));
        }
        let verifies = root.is_some();
        let mut revocation_lists = self.revocation_lists.clone();
        if revocation_lists.is_empty() {
            revocation_lists.file = lists.filter(|lists| lists.exists()).map(bytes);
        }
        let has_lists = verifies && !revocation_lists.is_empty();
        let settings = Settings {
            mode: if verifies { Mode::Require } else { Mode::None },
            depth: DEPTH,
            authorities: Locations { file: root.map(bytes), folder: None },
            revocation_lists: if has_lists { revocation_lists } else { Locations::default() },
            revocation_check: match has_lists {
                true => revocation::Check::Chain,
                false => revocation::Check::None,
            },
            missing_list_is_well: false,
            name_check: match self.mode {
                SslMode::VerifyFull => NameCheck::Names,
                _ => NameCheck::None,
            },
            checks_time: verifies,
        };
        ServerVerifier::load(&settings, &mut Vec::new()).map_err(|found| found.message)
    }

    fn certificates(
        &self,
        certificate: Option<PathBuf>,
        key: Option<PathBuf>,
    ) -> Result<Option<Arc<MachineCertificates>>, String> {
        let Some(certificate) = certificate.filter(|path| path.exists()) else {
            return match &self.certificate {
                Some(path) => Err(unread("certificate", path, &io::ErrorKind::NotFound.into())),
                None => Ok(None),
            };
        };
        let missing = "certificate present, but not private key file";
        let key = key.filter(|path| path.exists()).ok_or(missing)?;
        let key = private_key(&key)?;
        let text = regular::read(&certificate, PEM_BYTES_MAX);
        let certificate = text.map_err(|why| unread("certificate", &certificate, &why))?;
        let loaded = MachineCertificates::of_texts(&certificate, &key);
        loaded.map(|loaded| Some(Arc::new(loaded))).map_err(|found| found.message)
    }
}

/// A minor version of TLS 1.
fn version(parameter: &str, value: Option<String>, default: u8) -> Result<u8, String> {
    match value.as_deref() {
        None => Ok(default),
        Some("TLSv1") => Ok(0),
        Some("TLSv1.1") => Ok(1),
        Some("TLSv1.2") => Ok(2),
        Some("TLSv1.3") => Ok(3),
        Some(other) => Err(format!("invalid {parameter} value: \"{other}\"")),
    }
}

/// A key that is for its owner alone; root's may be readable by a group.
fn private_key(path: &Path) -> Result<Vec<u8>, String> {
    let unread = |why: io::Error| unread("private key", path, &why);
    let (file, found) = regular::open_with_stat(path).map_err(unread)?;
    let others = if found.st_uid == 0 { 0o037 } else { 0o077 };
    if found.st_mode & others != 0 {
        let shown = path.display();
        return Err(format!(
            "private key file \"{shown}\" has group or world access; file must have permissions \
             u=rw (0600) or less if owned by the current user, or permissions u=rw,g=r (0640) or \
             less if owned by root"
        ));
    }
    let mut text = Vec::new();
    file.take(PEM_BYTES_MAX).read_to_end(&mut text).map_err(unread)?;
    Ok(text)
}

fn unread(kind: &str, path: &Path, why: &io::Error) -> String {
    format!("could not read {kind} file \"{}\": {why}", path.display())
}

fn bytes(path: PathBuf) -> Vec<u8> {
    path.as_os_str().as_bytes().to_vec()
}
