//! Client certificates: SSLVerifyClient, SSLVerifyDepth, the authorities, revocation, and the
//! result in the words of SSL_CLIENT_VERIFY.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslverifyclient>, `ssl_callback_SSLVerify`.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use webpki::KeyUsage;

use crate::trust::{Locations, subjects};
use crate::{Finding, revocation};

mod chain;
mod reason;

pub(crate) use chain::{Chain, within_validity};
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

/// The remark that certificates are asked for which none can pass.
pub(crate) fn no_authorities(directive: &'static str) -> Finding {
    let message = "Init: Oops, you want to request client authentication, but no CAs are known for \
        verification!?  [Hint: SSLCACertificate*]";
    Finding::warning(directive, message).numbered(1897)
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
    names: Vec<DistinguishedName>,
    chain: Chain,
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
            findings.push(no_authorities("SSLVerifyClient"));
        }
        let named = if settings.requested_names.is_empty() { &authorities } else { &requested };
        let names = subjects(named);
        let chain = Chain {
            lists,
            check: settings.revocation_check,
            missing_list_is_well: settings.missing_list_is_well,
            ..Chain::new(KeyUsage::client_auth(), settings.depth, authorities)
        };
        Ok(Some(Arc::new(Self { mode: settings.mode, names, chain })))
    }

    /// The mode that the verifier was made for.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What binds a session to this verification, for [`crate::sessions::context`].
    pub fn fingerprint(&self) -> Vec<u8> {
        let chain = &self.chain;
        let settings = format!("{:?} {} {:?}", self.mode, chain.depth, chain.check);
        let mut parts = vec![settings.into_bytes()];
        parts.extend(chain.roots.iter().chain(&chain.between).map(|root| root.to_vec()));
        parts.extend(chain.lists.iter().cloned());
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        crate::sessions::context(&parts).to_vec()
    }

    /// Judges what a client presented, leaf first. After a handshake this gives the verdict of the
    /// connection (also of a resumed one, at today's date) for SSL_CLIENT_VERIFY.
    pub fn judge(&self, presented: &[CertificateDer<'_>], now: UnixTime) -> Verdict {
        let Some((leaf, others)) = presented.split_first() else { return Verdict::Absent };
        match self.chain.path(leaf, others, now) {
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
                Mode::OptionalNoCa => self.chain.may_overlook(*reason),
                Mode::OfSections => true,
                _ => false,
            },
        }
    }
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
        let verdict = match self.chain.path(end_entity, intermediates, now) {
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
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.chain.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.chain.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
