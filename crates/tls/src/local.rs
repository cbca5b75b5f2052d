//! The certificate of the bundled configuration: generated for localhost at the first start, kept
//! in the state folder, and renewed before it expires.

use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, SanType,
};

use crate::certs::MAX_FILE_BYTES;
use crate::{certs, pem};

/// Browsers reject certificates with a longer life.
const LIFE: Duration = Duration::from_secs(397 * 24 * 60 * 60);
/// A certificate with less remaining life is renewed.
const REMAINDER_SECONDS: i64 = 30 * 24 * 60 * 60;

/// The paths of the certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalCertificate {
    /// PEM, readable by all.
    pub certificate: PathBuf,
    /// PEM, readable by its owner only.
    pub key: PathBuf,
}

/// Generates the pair unless it exists: ECDSA P-256, self-signed, for localhost and the loopback
/// addresses.
///
/// # Errors
/// The folders or files can't be written.
pub fn ensure(local: &LocalCertificate) -> io::Result<()> {
    if is_usable(local) || is_of_others(local) {
        return Ok(());
    }
    for folder in [&local.certificate, &local.key].into_iter().filter_map(|path| path.parent()) {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(folder)?;
    }
    let (certificate, key) = make().map_err(io::Error::other)?;
    // The key comes first: a certificate without its key would be unusable, and generated again.
    replace(&local.key, key.as_bytes(), 0o600)?;
    replace(&local.certificate, certificate.as_bytes(), 0o644)
}

fn make() -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    params.subject_alt_names.push(SanType::IpAddress(IpAddr::V6(Ipv6Addr::LOCALHOST)));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now();
    params.not_before = (now - Duration::from_secs(3600)).into();
    params.not_after = (now + LIFE).into();
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// Whether the certificate was not generated here: then it is kept, whatever it is.
fn is_of_others(local: &LocalCertificate) -> bool {
    if !local.certificate.exists() || !local.key.exists() {
        return false;
    }
    let text = regular::read(&local.certificate, MAX_FILE_BYTES).unwrap_or_default();
    let certificates = pem::certificates(&text);
    let Some(parsed) = certificates.first().and_then(|der| certs::parse(der).ok()) else {
        return true;
    };
    let (subject, issuer) = (parsed.subject(), parsed.issuer());
    let mut names = subject.iter_common_name().filter_map(|name| name.as_str().ok());
    subject.as_raw() != issuer.as_raw() || names.next() != Some("localhost")
}

fn is_usable(local: &LocalCertificate) -> bool {
    let (Ok(text), true) = (regular::read(&local.certificate, MAX_FILE_BYTES), local.key.is_file())
    else {
        return false;
    };
    let certificates = pem::certificates(&text);
    let Some(parsed) = certificates.first().and_then(|der| certs::parse(der).ok()) else {
        return false;
    };
    let left = parsed.validity().not_after.timestamp() - crate::tickets::unix_seconds() as i64;
    left > REMAINDER_SECONDS && key_belongs(local, &parsed)
}

fn key_belongs(
    local: &LocalCertificate,
    certificate: &x509_parser::certificate::X509Certificate<'_>,
) -> bool {
    let text = regular::read(&local.key, MAX_FILE_BYTES).ok();
    let text = text.and_then(|text| String::from_utf8(text).ok());
    let key = text.and_then(|text| KeyPair::from_pem(&text).ok());
    key.is_some_and(|key| {
        use rcgen::PublicKeyData;
        key.der_bytes() == &*certificate.public_key().subject_public_key.data
    })
}

/// Writes a temporary file and renames it, so that a reader sees either the old file or the new
/// one; the permissions precede the content.
fn replace(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let _ = fs::remove_file(&beside);
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn made_once_and_for_the_owner_alone() {
        let folder = std::env::temp_dir().join(format!("tls-local-{}", std::process::id()));
        let (certificate, key) = (folder.join("localhost.crt"), folder.join("localhost.key"));
        let local = LocalCertificate { certificate, key };
        ensure(&local).unwrap();
        let mode = fs::metadata(&local.key).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = fs::read(&local.certificate).unwrap();
        ensure(&local).unwrap();
        assert_eq!(fs::read(&local.certificate).unwrap(), first, "kept");
        fs::write(&local.key, KeyPair::generate().unwrap().serialize_pem()).unwrap();
        ensure(&local).unwrap();
        assert_ne!(fs::read(&local.certificate).unwrap(), first, "a new key was generated");
        fs::write(&local.certificate, "mine").unwrap();
        ensure(&local).unwrap();
        assert_eq!(fs::read(&local.certificate).unwrap(), b"mine", "another's certificate is kept");
        fs::remove_file(&local.certificate).unwrap();
        ensure(&local).unwrap();
        let certificates = pem::certificates(&fs::read(&local.certificate).unwrap());
        assert!(certs::matches_name(&certs::parse(&certificates[0]).unwrap(), "localhost"));
        fs::remove_dir_all(folder).unwrap();
    }
}
