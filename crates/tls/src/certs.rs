//! Server certificates: the file with its chain, the matching key, and the checks at start.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslcertificatefile>,
//! `ssl_init_server_certs`.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use rustls::sign::{CertifiedKey, SigningKey};
use rustls_pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

use crate::passphrase::{Passphrases, Question};
use crate::{Finding, keys, pem};

/// Larger certificate and key files are refused.
pub const MAX_FILE_BYTES: u64 = 16 * 1024 * 1024;

/// A chain that is completed has at most this many certificates.
const MAX_CHAIN: usize = 10;

const CERTIFICATE: &str = "SSLCertificateFile";
const KEY: &str = "SSLCertificateKeyFile";

/// One SSLCertificateFile and its SSLCertificateKeyFile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// PEM (or DER): the certificate, then its chain, perhaps the key.
    pub certificate: Vec<u8>,
    /// `None`: the key is in the certificate's file.
    pub key: Option<Vec<u8>>,
}

/// The host whose certificates are loaded.
#[derive(Clone, Copy, Debug)]
pub struct Host<'a> {
    /// `servername:port`, as Apache's messages name a virtual host.
    pub id: &'a str,
    /// ServerName without the port.
    pub name: &'a str,
    /// The certificates of SSLCACertificateFile and similar directives, used to complete a chain.
    pub authorities: &'a [CertificateDer<'static>],
}

/// Loads one pair. `chain` is the content of SSLCertificateChainFile, used for a certificate
/// without a chain of its own. Findings are appended to `findings`.
///
/// # Errors
/// A file that can't be read or used, a key that stays locked or does not match the certificate.
pub fn load(
    pair: &Pair,
    index: usize,
    host: Host<'_>,
    chain: &[CertificateDer<'static>],
    passphrases: &mut Passphrases<'_>,
    findings: &mut Vec<Finding>,
) -> Result<Arc<CertifiedKey>, Finding> {
    let id = format!("{}:{index}", host.id);
    let text = read(CERTIFICATE, &pair.certificate)?;
    let mut certificates = pem::certificates(&text);
    let shown = String::from_utf8_lossy(&pair.certificate).into_owned();
    let Some(leaf) = certificates.first().cloned() else {
        let message = format!("Failed to configure certificate {id}, check {shown}");
        return Err(Finding::error(CERTIFICATE, message).numbered(2561));
    };
    let parsed = parse(&leaf).map_err(|reason| {
        let message = format!("Failed to configure certificate {id}, check {shown}: {reason}");
        Finding::error(CERTIFICATE, message).numbered(2561)
    })?;
    if certificates.len() == 1 {
        let own = |certificate: &&CertificateDer<'static>| **certificate != leaf;
        certificates.extend(chain.iter().filter(own).cloned());
    }
    if certificates.len() == 1 {
        complete(&mut certificates, host.authorities);
    }
    let signing_key = signing_key(pair, &text, index, host, passphrases)?;
    if !belongs(&*signing_key, &parsed) {
        return Err(mismatch(pair, &id, &shown));
    }
    findings.extend(remarks(&parsed, &id, host.name));
    Ok(Arc::new(CertifiedKey::new(certificates, signing_key)))
}

/// A file's content.
///
/// # Errors
/// It cannot be read or is larger than [`MAX_FILE_BYTES`].
pub fn read(directive: &'static str, path: &[u8]) -> Result<Vec<u8>, Finding> {
    regular::read(OsStr::from_bytes(path), MAX_FILE_BYTES).map_err(|error| {
        let path = String::from_utf8_lossy(path);
        Finding::error(directive, format!("cannot read '{path}': {error}"))
    })
}

/// A certificate's fields.
///
/// # Errors
/// The input is no certificate; the error is a short text.
pub fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    match X509Certificate::from_der(der) {
        Ok((_, certificate)) => Ok(certificate),
        Err(error) => Err(format!("it is not an X.509 certificate ({error})")),
    }
}

/// Whether a certificate is valid for the name: one of its DNS names or common names equals it or
/// is a wildcard for it (`modssl_X509_match_name`).
pub fn matches_name(certificate: &X509Certificate<'_>, name: &str) -> bool {
    dns_names(certificate).into_iter().any(|pattern| matches_pattern(pattern, name))
}

/// Whether a name equals `pattern`, or `pattern` is a wildcard for it.
pub(crate) fn matches_pattern(pattern: &str, name: &str) -> bool {
    if pattern.eq_ignore_ascii_case(name) {
        return true;
    }
    match (pattern.strip_prefix('*'), name.find('.').and_then(|dot| name.get(dot..))) {
        (Some(suffix), Some(domain)) if suffix.starts_with('.') => {
            suffix.eq_ignore_ascii_case(domain)
        }
        _ => false,
    }
}

/// Adds the authorities between a certificate and its root, without the root, as OpenSSL does for a
/// certificate without a chain.
pub(crate) fn complete(
    chain: &mut Vec<CertificateDer<'static>>,
    authorities: &[CertificateDer<'static>],
) {
    for _ in 0..MAX_CHAIN {
        let next = chain.last().and_then(|last| {
            let last = parse(last).ok()?;
            authorities.iter().find(|one| {
                parse(one).is_ok_and(|one| {
                    one.subject().as_raw() == last.issuer().as_raw()
                        && one.subject().as_raw() != one.issuer().as_raw()
                })
            })
        });
        match next {
            Some(next) if !chain.contains(next) => chain.push(next.clone()),
            _ => break,
        }
    }
}

fn dns_names<'a>(certificate: &'a X509Certificate<'_>) -> Vec<&'a str> {
    let alternative = certificate.subject_alternative_name().ok().flatten();
    let mut names: Vec<&str> = alternative
        .iter()
        .flat_map(|extension| &extension.value.general_names)
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(*name),
            _ => None,
        })
        .collect();
    names.extend(certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()));
    names
}

fn signing_key(
    pair: &Pair,
    certificate_text: &[u8],
    index: usize,
    host: Host<'_>,
    passphrases: &mut Passphrases<'_>,
) -> Result<Arc<dyn SigningKey>, Finding> {
    let path = pair.key.as_ref().unwrap_or(&pair.certificate);
    let failed = |reason: &dyn std::fmt::Display| {
        let path = String::from_utf8_lossy(path);
        let message =
            format!("Failed to configure private key {}:{index}, check {path}: {reason}", host.id);
        Finding::error(KEY, message).numbered(2564)
    };
    let own_text;
    let text = match &pair.key {
        Some(path) => {
            own_text = read(KEY, path)?;
            &own_text
        }
        None => certificate_text,
    };
    let question = Question { host_id: host.id, index, path };
    let der = keys::load(text, &question, passphrases).map_err(|error| failed(&error))?;
    crate::provider().key_provider.load_private_key(der).map_err(|error| failed(&error))
}

fn mismatch(pair: &Pair, id: &str, shown: &str) -> Finding {
    let key = pair.key.as_ref().map_or(shown.into(), |path| String::from_utf8_lossy(path));
    let message = format!("Certificate and private key {id} from {shown} and {key} do not match");
    Finding::error(KEY, message).numbered(2565)
}

/// Whether a key is that of a certificate.
pub(crate) fn belongs(key: &dyn SigningKey, certificate: &X509Certificate<'_>) -> bool {
    let Some(public) = key.public_key() else { return true };
    let of_certificate = &certificate.public_key().subject_public_key.data;
    match SubjectPublicKeyInfo::from_der(&public) {
        Ok((_, public)) => public.subject_public_key.data == *of_certificate,
        Err(_) => false,
    }
}

fn remarks(certificate: &X509Certificate<'_>, id: &str, name: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut warn = |number: Option<u16>, message: String| {
        findings.push(Finding { number, ..Finding::warning(CERTIFICATE, message) });
    };
    if let Ok(Some(constraints)) = certificate.basic_constraints() {
        if constraints.value.ca {
            warn(
                Some(1906),
                format!(
                    "{id} server certificate is a CA certificate (BasicConstraints: CA == TRUE !?)"
                ),
            );
        }
        if let Some(length) = constraints.value.path_len_constraint.filter(|length| *length > 0) {
            warn(
                Some(1907),
                format!(
                    "{id} server certificate is not a leaf certificate \
                     (BasicConstraints: pathlen == {length} > 0 !?)"
                ),
            );
        }
    }
    if !matches_name(certificate, name) {
        warn(
            Some(1909),
            format!("{id} server certificate does NOT include an ID which matches the server name"),
        );
    }
    let validity = certificate.validity();
    let now = x509_parser::time::ASN1Time::now();
    if validity.not_after < now {
        warn(None, format!("{id} server certificate has expired on {}", validity.not_after));
    } else if validity.not_before > now {
        warn(None, format!("{id} server certificate is not valid before {}", validity.not_before));
    }
    if certificate.subject().as_raw() == certificate.issuer().as_raw() {
        findings
            .push(Finding::info(CERTIFICATE, format!("{id} server certificate is self-signed")));
    }
    findings
}

#[cfg(test)]
mod tests;
