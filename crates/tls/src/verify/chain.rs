//! The path from a certificate to a root that is trusted here, as OpenSSL builds and judges it.

use std::cell::Cell;

use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_parser::certificate::X509Certificate;
use x509_parser::time::ASN1Time;

use super::Reason;
use crate::{certs, revocation};

/// Builds paths for the certificates of peers.
#[derive(Debug)]
pub(crate) struct Chain {
    /// What the peer's certificate is for.
    pub usage: KeyUsage,
    /// So many certificates may stand above the peer's own, the root included.
    pub depth: usize,
    /// Self-issued authorities: a path ends there and nowhere else, as in OpenSSL.
    pub roots: Vec<CertificateDer<'static>>,
    pub anchors: Vec<TrustAnchor<'static>>,
    /// Authorities that others issued: they complete a path, but do not end it.
    pub between: Vec<CertificateDer<'static>>,
    /// Revocation lists in DER.
    pub lists: Vec<Vec<u8>>,
    pub check: revocation::Check,
    /// A certificate without a revocation list is well.
    pub missing_list_is_well: bool,
    pub algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl Chain {
    /// Paths to `authorities`, without a check of revocation.
    pub(crate) fn new(
        usage: KeyUsage,
        depth: usize,
        authorities: Vec<CertificateDer<'static>>,
    ) -> Self {
        let (roots, between): (Vec<_>, Vec<_>) = authorities.into_iter().partition(is_self_issued);
        let anchor = |root| webpki::anchor_from_trusted_cert(root).ok().map(|root| root.to_owned());
        Self {
            usage,
            depth,
            anchors: roots.iter().filter_map(anchor).collect(),
            roots,
            between,
            lists: Vec::new(),
            check: revocation::Check::None,
            missing_list_is_well: false,
            algorithms: crate::provider().signature_verification_algorithms,
        }
    }

    /// The path from a certificate to a root, both included.
    ///
    /// # Errors
    /// Why there is none that is trusted.
    pub(crate) fn path(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<CertificateDer<'static>>, Reason> {
        let time = within_validity(&certs::parse(leaf).map_err(|_| Reason::Malformed)?, now)?;
        if self.roots.iter().any(|root| root == leaf) {
            return Ok(vec![leaf.clone().into_owned()]);
        }
        let path = self.build(leaf, others, now)?;
        revocation::check(&path, &self.lists, self.check, self.missing_list_is_well, time)?;
        Ok(path)
    }

    /// Whether `optional_no_ca` overlooks why there is no path. Where revocation is checked, it
    /// does not: there is no list of an issuer that is not known, which is not overlooked.
    pub(crate) fn may_overlook(&self, reason: Reason) -> bool {
        reason.is_about_issuer()
            && (self.check == revocation::Check::None || self.missing_list_is_well)
    }

    fn build(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<CertificateDer<'static>>, Reason> {
        let entity = EndEntityCert::try_from(leaf).map_err(|error| Reason::of_webpki(&error))?;
        let between: Vec<CertificateDer<'_>> =
            others.iter().chain(&self.between).cloned().collect();
        let too_long = Cell::new(false);
        let within_depth = |path: &VerifiedPath<'_>| {
            if path.intermediate_certificates().count() + 1 > self.depth {
                too_long.set(true);
                return Err(webpki::Error::MaximumPathDepthExceeded);
            }
            Ok(())
        };
        let verified = entity.verify_for_usage(
            self.algorithms.all,
            &self.anchors,
            &between,
            now,
            self.usage,
            None,
            Some(&within_depth),
        );
        let path = match verified {
            Ok(path) => path,
            Err(_) if too_long.get() => return Err(Reason::ChainTooLong),
            Err(webpki::Error::UnknownIssuer) => return Err(self.unknown(leaf, others)),
            // webpki looks at this first; OpenSSL first looks for the issuer.
            Err(webpki::Error::CaUsedAsEndEntity) if !self.knows_issuer(leaf, others) => {
                return Err(self.unknown(leaf, others));
            }
            Err(error) => return Err(Reason::of_webpki(&error)),
        };
        let mut chain = vec![leaf.clone().into_owned()];
        chain.extend(path.intermediate_certificates().map(|cert| cert.der().into_owned()));
        let anchor = path.anchor();
        let root = self.anchors.iter().zip(self.roots_of_anchors()).find(|(one, _)| *one == anchor);
        chain.extend(root.map(|(_, root)| root.clone()));
        Ok(chain)
    }

    /// The roots that became anchors, in the same order.
    fn roots_of_anchors(&self) -> impl Iterator<Item = &CertificateDer<'static>> {
        self.roots.iter().filter(|root| webpki::anchor_from_trusted_cert(root).is_ok())
    }

    /// What OpenSSL says of a path that ends nowhere.
    fn unknown(&self, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Reason {
        if is_self_issued(leaf) {
            return Reason::SelfSigned;
        }
        if others.iter().any(is_self_issued) {
            return Reason::SelfSignedInChain;
        }
        match self.knows_issuer(leaf, others) {
            true => Reason::UnknownIssuer,
            false => Reason::UnverifiableLeaf,
        }
    }

    /// Whether a certificate with the name of the leaf's issuer is at hand, other than the leaf.
    fn knows_issuer(&self, leaf: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> bool {
        let Ok(parsed) = certs::parse(leaf) else { return false };
        others.iter().chain(&self.between).chain(&self.roots).filter(|one| *one != leaf).any(
            |one| {
                certs::parse(one)
                    .is_ok_and(|one| one.subject().as_raw() == parsed.issuer().as_raw())
            },
        )
    }
}

/// The time `now`, if the certificate is valid then.
pub(crate) fn within_validity(
    certificate: &X509Certificate<'_>,
    now: UnixTime,
) -> Result<ASN1Time, Reason> {
    let time = i64::try_from(now.as_secs()).ok().and_then(|s| ASN1Time::from_timestamp(s).ok());
    let time = time.ok_or(Reason::Malformed)?;
    if certificate.validity().not_after < time {
        return Err(Reason::Expired);
    }
    if certificate.validity().not_before > time {
        return Err(Reason::NotYetValid);
    }
    Ok(time)
}

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    certs::parse(certificate)
        .is_ok_and(|parsed| parsed.subject().as_raw() == parsed.issuer().as_raw())
}
