//! A section's typed settings for connections to backends turned into rustls's `ClientConfig`.

use std::sync::Arc;

use rustls::ClientConfig;

use crate::machine_certificates::MachineCertificates;
use crate::protocols::Protocols;
use crate::server_verifier::ServerVerifier;
use crate::{Finding, ciphers};

/// The settings of a section with `SSLProxyEngine on`.
#[derive(Debug)]
pub struct BackendTls {
    /// SSLProxyProtocol.
    pub protocols: Protocols,
    /// SSLProxyCipherSuite. Default: [`ciphers::DEFAULT`].
    pub cipher_suite: Option<String>,
    /// `SSLProxyCipherSuite TLSv1.3`. Default: OpenSSL's order.
    pub cipher_suite_tls13: Option<String>,
    /// SSLProxyVerify with all that belongs to it.
    pub verifier: Arc<ServerVerifier>,
    /// SSLProxyMachineCertificateFile with all that belongs to it. Default: none.
    pub certificates: Option<Arc<MachineCertificates>>,
    /// Protocols for ALPN, as `http/1.1`, preferred first.
    pub alpn: Vec<Vec<u8>>,
}

/// Checks everything and builds the configuration, with its warnings and remarks.
///
/// # Errors
/// All findings there are, when one of them is an error.
pub fn build(settings: &BackendTls) -> Result<(Arc<ClientConfig>, Vec<Finding>), Vec<Finding>> {
    let mut findings = Vec::new();
    let wanted = ciphers::Wanted {
        tls12: settings.protocols.tls12,
        suites: settings.cipher_suite.as_deref(),
        suites_tls13: settings.cipher_suite_tls13.as_deref(),
    };
    let provider = wanted.provider(&mut findings);
    for finding in &mut findings {
        finding.directive = "SSLProxyCipherSuite";
    }
    if findings.iter().any(Finding::is_error) {
        return Err(findings);
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&settings.protocols.versions());
    let builder = match builder {
        Ok(builder) => builder,
        Err(error) => {
            findings.push(Finding::error("SSLProxyProtocol", error.to_string()));
            return Err(findings);
        }
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(settings.verifier.clone());
    let mut config = match &settings.certificates {
        Some(certificates) => builder.with_client_cert_resolver(certificates.clone()),
        None => builder.with_no_client_auth(),
    };
    config.alpn_protocols.clone_from(&settings.alpn);
    Ok((Arc::new(config), findings))
}

#[cfg(test)]
mod tests;
