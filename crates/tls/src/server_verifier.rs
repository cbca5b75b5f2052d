//! Certificates of backends: SSLProxyVerify, SSLProxyVerifyDepth, the authorities, revocation, and
//! the checks of time and name, which Apache makes even if nothing is verified.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslproxyverify>, `ssl_callback_SSLVerify`,
//! `ssl_io_filter_handshake`.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use webpki::KeyUsage;
use x509_parser::certificate::X509Certificate;

use crate::trust::Locations;
use crate::verify::{Chain, Mode, no_authorities, within_validity};
use crate::{Finding, certs, revocation};

/// What a backend's certificate has to name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameCheck {
    /// Nothing.
    None,
    /// The backend, as one of its DNS names or common names, or by a wildcard.
    #[default]
    Names,
    /// The backend, as its common name, or by a wildcard.
    CommonName,
}

impl NameCheck {
    /// The check that SSLProxyCheckPeerName and SSLProxyCheckPeerCN ask for; `None` where a
    /// directive is not given.
    pub fn of(peer_name: Option<bool>, peer_cn: Option<bool>) -> Self {
        match (peer_name, peer_cn) {
            (Some(true), _) | (None, None | Some(true)) => Self::Names,
            (Some(false), Some(true)) => Self::CommonName,
            _ => Self::None,
        }
    }
}

/// All directives that concern the verification of backends.
#[derive(Clone, Debug)]
pub struct Settings {
    /// SSLProxyVerify. `optional` is as strict as `require`: every server has a certificate.
    pub mode: Mode,
    /// SSLProxyVerifyDepth. Default: 1.
    pub depth: usize,
    /// SSLProxyCACertificateFile and SSLProxyCACertificatePath.
    pub authorities: Locations,
    /// SSLProxyCARevocationFile and SSLProxyCARevocationPath.
    pub revocation_lists: Locations,
    /// SSLProxyCARevocationCheck.
    pub revocation_check: revocation::Check,
    /// `no_crl_for_cert_ok`: a certificate without a revocation list is well.
    pub missing_list_is_well: bool,
    /// SSLProxyCheckPeerName and SSLProxyCheckPeerCN.
    pub name_check: NameCheck,
    /// SSLProxyCheckPeerExpire. Default: on.
    pub checks_time: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mode: Mode::None,
            depth: 1,
            authorities: Locations::default(),
            revocation_lists: Locations::default(),
            revocation_check: revocation::Check::None,
            missing_list_is_well: false,
            name_check: NameCheck::default(),
            checks_time: true,
        }
    }
}

/// Verifies the backends of one section.
#[derive(Debug)]
pub struct ServerVerifier {
    mode: Mode,
    chain: Arc<Chain>,
    name_check: NameCheck,
    checks_time: bool,
}

impl ServerVerifier {
    /// Reads the files.
    ///
    /// # Errors
    /// Files that cannot be read.
    pub fn load(settings: &Settings, findings: &mut Vec<Finding>) -> Result<Arc<Self>, Finding> {
        let authorities = settings
            .authorities
            .certificates("SSLProxyCACertificateFile", "SSLProxyCACertificatePath")?;
        let lists = settings
            .revocation_lists
            .revocation_lists("SSLProxyCARevocationFile", "SSLProxyCARevocationPath")?;
        let needs_authorities = matches!(settings.mode, Mode::Optional | Mode::Require);
        if needs_authorities && authorities.is_empty() {
            findings.push(no_authorities("SSLProxyVerify"));
        }
        let chain = Chain {
            lists,
            check: settings.revocation_check,
            missing_list_is_well: settings.missing_list_is_well,
            ..Chain::new(KeyUsage::server_auth(), settings.depth, authorities)
        };
        Ok(Arc::new(Self {
            mode: settings.mode,
            chain: Arc::new(chain),
            name_check: settings.name_check,
            checks_time: settings.checks_time,
        }))
    }

    /// The same, which accepts every name.
    pub fn without_names(&self) -> Arc<Self> {
        Arc::new(Self {
            mode: self.mode,
            chain: self.chain.clone(),
            name_check: NameCheck::None,
            checks_time: self.checks_time,
        })
    }

    fn verify_chain(
        &self,
        leaf: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), CertificateError> {
        if self.mode == Mode::None {
            return Ok(());
        }
        match self.chain.path(leaf, others, now) {
            Err(reason) if self.mode != Mode::OptionalNoCa || !self.chain.may_overlook(reason) => {
                Err(reason.into())
            }
            _ => Ok(()),
        }
    }

    fn verify_name(
        &self,
        certificate: &X509Certificate<'_>,
        name: &ServerName<'_>,
    ) -> Result<(), CertificateError> {
        let name = text_of(name);
        let is_named = match self.name_check {
            NameCheck::None => true,
            NameCheck::Names => certs::matches_name(certificate, &name),
            NameCheck::CommonName => {
                let common = certificate.subject().iter_common_name().next();
                let common = common.and_then(|common| common.as_str().ok());
                common.is_some_and(|common| certs::matches_pattern(common, &name))
            }
        };
        if is_named { Ok(()) } else { Err(CertificateError::NotValidForName) }
    }
}

fn text_of(name: &ServerName<'_>) -> String {
    match name {
        ServerName::DnsName(name) => name.as_ref().to_owned(),
        ServerName::IpAddress(address) => IpAddr::from(*address).to_string(),
        // Unreachable: rustls has no other kind of name.
        _ => String::new(),
    }
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify_chain(end_entity, intermediates, now)?;
        let certificate = certs::parse(end_entity).map_err(|_| CertificateError::BadEncoding)?;
        if self.checks_time {
            within_validity(&certificate, now).map_err(CertificateError::from)?;
        }
        self.verify_name(&certificate, server_name)?;
        Ok(ServerCertVerified::assertion())
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
