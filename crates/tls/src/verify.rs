//! Client certificates: SSLVerifyClient, SSLVerifyDepth, the authorities, revocation, and the
//! result in the words of SSL_CLIENT_VERIFY.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslverifyclient>, `ssl_callback_SSLVerify`.

use std::cell::Cell;
use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};
use x509_parser::time::ASN1Time;

use crate::trust::{Locations, subjects};
use crate::{Finding, certs, revocation};

mod reason;

pub use reason::Reason;

/// The value of SSLVerifyClient. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// No certificate is asked for.
    #[default]
    None,
    /// A certificate may be given; one that is given must be good.
    Optional,
    /// A good certificate must be given.
    Require,
    /// A certificate may be given; its issuer need not be known.
    OptionalNoCa,
    /// The host asks for none, but sections of it do: one may be given, and is judged by them. No
    /// word of the directive.
    OfSections,
}

impl Mode {
    /// Reads the directive's argument.
    ///
    /// # Errors
    /// Another word, in Apache's words.
    pub fn parse(word: &str) -> Result<Self, Finding> {
        Ok(match word.to_ascii_lowercase().as_str() {
            "none" | "off" => Self::None,
            "optional" => Self::Optional,
            "require" | "on" => Self::Require,
            "optional_no_ca" => Self::OptionalNoCa,
            _ => {
                return Err(Finding::error(
                    "SSLVerifyClient",
                    format!("Invalid argument '{word}'"),
                ));
            }
        })
    }
}

/// All directives that concern the verification of clients. Depth is 1 by default.
#[derive(Clone, Debug)]
pub struct Settings {
    /// `servername:port`, as Apache's messages name a virtual host.
    pub host_id: String,
    /// SSLVerifyClient.
    pub mode: Mode,
    /// SSLVerifyDepth: so many certificates may stand above the client's own, the root included.
    pub depth: usize,
    /// SSLCACertificateFile and SSLCACertificatePath.
    pub authorities: Locations,
    /// SSLCADNRequestFile and SSLCADNRequestPath. Default: the names of the authorities.
    pub requested_names: Locations,
    /// SSLCARevocationFile and SSLCARevocationPath.
    pub revocation_lists: Locations,
    /// SSLCARevocationCheck.
    pub revocation_check: revocation::Check,
    /// `no_crl_for_cert_ok`: a certificate without a revocation list is well.
    pub missing_list_is_well: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            host_id: String::new(),
            mode: Mode::None,
            depth: 1,
            authorities: Locations::default(),
            requested_names: Locations::default(),
            revocation_lists: Locations::default(),
            revocation_check: revocation::Check::None,
            missing_list_is_well: false,
        }
    }
}

/// What came out of a client's certificates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// There is no certificate: `NONE`.
    Absent,
    /// Trusted: `SUCCESS`. The path, leaf first, root last.
    Trusted(Vec<CertificateDer<'static>>),
    /// Not trusted: `FAILED:reason`. Under `optional_no_ca` the client is let in all the same.
    Failed(Reason),
}

impl Verdict {
    /// The value of SSL_CLIENT_VERIFY.
    pub fn variable(&self) -> String {
        match self {
            Self::Absent => "NONE".into(),
            Self::Trusted(_) => "SUCCESS".into(),
            Self::Failed(reason) => format!("FAILED:{reason}"),
        }
    }
}

/// Verifies the clients of one host.
#[derive(Debug)]
pub struct ClientVerifier {
    mode: Mode,
    depth: usize,
    /// Self-issued authorities: a path ends there and nowhere else, as in OpenSSL.
    roots: Vec<CertificateDer<'static>>,
    anchors: Vec<TrustAnchor<'static>>,
    /// Authorities that others issued: they complete a path, but do not end it.
    between: Vec<CertificateDer<'static>>,
    names: Vec<DistinguishedName>,
    lists: Vec<Vec<u8>>,
    check: revocation::Check,
    missing_list_is_well: bool,
    algorithms: rustls::crypto::WebPkiSupportedAlgorithms,
}

impl ClientVerifier {
    /// Reads the files; `None` where no certificate is asked for.
    ///
    /// # Errors
    /// Files that cannot be read, a revocation check without lists.
    pub fn load(
        settings: &Settings,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Arc<Self>>, Finding> {
        let authorities =
            settings.authorities.certificates("SSLCACertificateFile", "SSLCACertificatePath")?;
        let requested =
            settings.requested_names.certificates("SSLCADNRequestFile", "SSLCADNRequestPath")?;
        let lists = settings
            .revocation_lists
            .revocation_lists("SSLCARevocationFile", "SSLCARevocationPath")?;
        revocation_findings(settings, findings)?;
        if settings.mode == Mode::None {
            return Ok(None);
        }
        if authorities.is_empty() && settings.mode != Mode::OptionalNoCa {
            let message = "Init: Oops, you want to request client authentication, but no CAs are \
                known for verification!?  [Hint: SSLCACertificate*]";
            findings.push(Finding::warning("SSLVerifyClient", message).numbered(1897));
        }
        let named = if settings.requested_names.is_empty() { &authorities } else { &requested };
        let names = subjects(named);
        let (roots, between): (Vec<_>, Vec<_>) = authorities.into_iter().partition(is_self_issued);
        let anchor = |root| webpki::anchor_from_trusted_cert(root).ok().map(|root| root.to_owned());
        Ok(Some(Arc::new(Self {
            mode: settings.mode,
            depth: settings.depth,
            anchors: roots.iter().filter_map(anchor).collect(),
            roots,
            between,
            names,
            lists,
            check: settings.revocation_check,
            missing_list_is_well: settings.missing_list_is_well,
            algorithms: crate::provider().signature_verification_algorithms,
        })))
    }

    /// The mode that the verifier was made for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What binds a session to this verification, for [`crate::sessions::context`].
    pub fn fingerprint(&self) -> Vec<u8> {
        let settings = format!("{:?} {} {:?}", self.mode, self.depth, self.check);
        let mut parts = vec![settings.into_bytes()];
        parts.extend(self.roots.iter().chain(&self.between).map(|root| root.to_vec()));
        parts.extend(self.lists.iter().cloned());
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        crate::sessions::context(&parts).to_vec()
    }

    /// Judges what a client presented, leaf first. After a handshake this gives the verdict of the
    /// connection (also of a resumed one, at today's date) for SSL_CLIENT_VERIFY.
    pub fn judge(&self, presented: &[CertificateDer<'_>], now: UnixTime) -> Verdict {
        let Some((leaf, others)) = presented.split_first() else { return Verdict::Absent };
        match self.path(leaf, others, now) {
            Ok(path) => Verdict::Trusted(path),
            Err(reason) => Verdict::Failed(reason),
        }
    }

    /// Whether a client with this verdict may go on. A full handshake has refused the others; a
    /// resumed one may bring a certificate that has expired or been revoked since.
    pub fn admits(&self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Absent => self.mode != Mode::Require,
            Verdict::Trusted(_) => true,
            Verdict::Failed(reason) => match self.mode {
                Mode::OptionalNoCa => reason.is_about_issuer(),
                Mode::OfSections => true,
                _ => false,
            },
        }
    }

    fn path(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<CertificateDer<'static>>, Reason> {
        let time = i64::try_from(now.as_secs()).ok().and_then(|s| ASN1Time::from_timestamp(s).ok());
        let time = time.ok_or(Reason::Malformed)?;
        let parsed = certs::parse(leaf).map_err(|_| Reason::Malformed)?;
        if parsed.validity().not_after < time {
            return Err(Reason::Expired);
        }
        if parsed.validity().not_before > time {
            return Err(Reason::NotYetValid);
        }
        if self.roots.iter().any(|root| root == leaf) {
            return Ok(vec![leaf.clone().into_owned()]);
        }
        let path = self.build(leaf, others, now)?;
        revocation::check(&path, &self.lists, self.check, self.missing_list_is_well, time)?;
        Ok(path)
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
            KeyUsage::client_auth(),
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

fn is_self_issued(certificate: &CertificateDer<'_>) -> bool {
    certs::parse(certificate)
        .is_ok_and(|parsed| parsed.subject().as_raw() == parsed.issuer().as_raw())
}

fn revocation_findings(settings: &Settings, findings: &mut Vec<Finding>) -> Result<(), Finding> {
    const DIRECTIVE: &str = "SSLCARevocationCheck";
    let checked = settings.revocation_check != revocation::Check::None;
    if checked && settings.revocation_lists.is_empty() {
        let message = format!(
            "Host {}: CRL checking has been enabled, but neither SSLCARevocationFile nor \
             SSLCARevocationPath is configured",
            settings.host_id
        );
        return Err(Finding::error(DIRECTIVE, message).numbered(1899));
    }
    if !checked && !settings.revocation_lists.is_empty() {
        let message = format!(
            "Host {}: X.509 CRL storage locations configured, but CRL checking \
             (SSLCARevocationCheck) is not enabled",
            settings.host_id
        );
        findings.push(Finding::warning(DIRECTIVE, message).numbered(1902));
    }
    Ok(())
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        true
    }

    fn client_auth_mandatory(&self) -> bool {
        self.mode == Mode::Require
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.names
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let verdict = match self.path(end_entity, intermediates, now) {
            Ok(path) => Verdict::Trusted(path),
            Err(reason) => Verdict::Failed(reason),
        };
        match verdict {
            Verdict::Failed(reason) if !self.admits(&verdict) => {
                Err(CertificateError::from(reason).into())
            }
            _ => Ok(ClientCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
