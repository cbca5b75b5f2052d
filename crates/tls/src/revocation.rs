//! SSLCARevocationCheck: checks a verified path against revocation lists (RFC 5280 section 5).
//! Lists of version 1, which `openssl ca` writes by default, are treated like those of version 2.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslcarevocationcheck>

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;
use x509_parser::time::ASN1Time;

use crate::signature::Signed;
use crate::verify::Reason;
use crate::{Finding, certs};

/// Which certificates of a path are checked. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// No revocation list is used.
    #[default]
    None,
    /// Only the client's certificate.
    Leaf,
    /// All except the root.
    Chain,
}

impl Check {
    /// Parses `chain|leaf|none [no_crl_for_cert_ok]`: the check, and whether a certificate without
    /// a list is accepted.
    ///
    /// # Errors
    /// Any other word.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<(Self, bool), Finding> {
        let mut words = words.into_iter();
        let invalid = |word: &str| {
            Finding::error("SSLCARevocationCheck", format!("Invalid argument '{word}'"))
        };
        let check = match words.next().unwrap_or_default() {
            word if word.eq_ignore_ascii_case("none") => Self::None,
            word if word.eq_ignore_ascii_case("leaf") => Self::Leaf,
            word if word.eq_ignore_ascii_case("chain") => Self::Chain,
            word => return Err(invalid(word)),
        };
        let mut missing_is_well = false;
        for word in words {
            if !word.eq_ignore_ascii_case("no_crl_for_cert_ok") {
                return Err(invalid(word));
            }
            missing_is_well = true;
        }
        Ok((check, missing_is_well))
    }
}

/// Checks a path, leaf first, root last, against the lists.
///
/// # Errors
/// The first reason to distrust it.
pub(crate) fn check(
    path: &[CertificateDer<'_>],
    lists: &[Vec<u8>],
    check: Check,
    missing_is_well: bool,
    now: ASN1Time,
) -> Result<(), Reason> {
    let checked = match check {
        Check::None => 0,
        Check::Leaf => 1,
        Check::Chain => path.len(),
    };
    for pair in path.windows(2).take(checked) {
        let [certificate, issuer] = pair else { break };
        one(certificate, issuer, lists, missing_is_well, now)?;
    }
    Ok(())
}

fn one(
    certificate: &CertificateDer<'_>,
    issuer: &CertificateDer<'_>,
    lists: &[Vec<u8>],
    missing_is_well: bool,
    now: ASN1Time,
) -> Result<(), Reason> {
    let certificate = certs::parse(certificate).map_err(|_| Reason::Malformed)?;
    let issuer = certs::parse(issuer).map_err(|_| Reason::Malformed)?;
    let mut worst = (!missing_is_well).then_some(Reason::NoRevocationList);
    for der in lists {
        let Ok((_, list)) = CertificateRevocationList::from_der(der) else { continue };
        if list.issuer().as_raw() != certificate.issuer().as_raw() {
            continue;
        }
        let serial = certificate.raw_serial();
        match judge(&list, der, issuer.public_key().raw, serial, now) {
            Err(Reason::Revoked) => return Err(Reason::Revoked),
            Err(reason) => worst = Some(reason),
            Ok(()) => return Ok(()),
        }
    }
    worst.map_or(Ok(()), Err)
}

fn judge(
    list: &CertificateRevocationList<'_>,
    der: &[u8],
    issuer_key: &[u8],
    serial: &[u8],
    now: ASN1Time,
) -> Result<(), Reason> {
    if !Signed::of_element(der).is_some_and(|signed| signed.is_by(issuer_key)) {
        return Err(Reason::RevocationListSignature);
    }
    if list.last_update() > now {
        return Err(Reason::RevocationListNotYetValid);
    }
    if list.next_update().is_some_and(|next| next < now) {
        return Err(Reason::RevocationListExpired);
    }
    // A list for some of the certificates, or a delta, implies nothing about the others.
    if list.extensions().iter().any(|extension| extension.critical) {
        return Err(Reason::RevocationListExtension);
    }
    let listed = list.iter_revoked_certificates().any(|entry| entry.raw_serial() == serial);
    if listed { Err(Reason::Revoked) } else { Ok(()) }
}
