//! One host's typed settings turned into rustls's `ServerConfig`.

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, ProducesTickets, StoresServerSessions};
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;

use crate::certs::{self, Host, Pair};
use crate::groups::Groups;
use crate::passphrase::Passphrases;
use crate::protocols::Protocols;
use crate::resolver::HostCertificates;
use crate::{Finding, ciphers, pem};

/// As OpenSSL: so many tickets after a TLS 1.3 handshake.
const TLS13_TICKETS: usize = 2;

/// The settings of one virtual host with `SSLEngine on`.
#[derive(Debug, Default)]
pub struct HostTls {
    /// `servername:port`, as Apache's messages name a virtual host.
    pub id: String,
    /// ServerName without the port, which the certificate should be for.
    pub server_name: String,
    /// SSLCertificateFile with SSLCertificateKeyFile, in order.
    pub certificates: Vec<Pair>,
    /// SSLCertificateChainFile.
    pub chain_file: Option<Vec<u8>>,
    /// The certificates of SSLCACertificateFile and its like: they complete the chain of a
    /// certificate that brings none.
    pub authorities: Vec<CertificateDer<'static>>,
    /// SSLProtocol.
    pub protocols: Protocols,
    /// SSLProtocol of other hosts that may stand first at the address of one without.
    pub narrower: Vec<Protocols>,
    /// SSLCipherSuite. Default: [`ciphers::DEFAULT`].
    pub cipher_suite: Option<String>,
    /// `SSLCipherSuite TLSv1.3`. Default: OpenSSL's order.
    pub cipher_suite_tls13: Option<String>,
    /// `SSLOpenSSLConfCmd Groups`. Default: rustls's.
    pub groups: Option<Groups>,
    /// SSLHonorCipherOrder. Default: off.
    pub honor_cipher_order: bool,
    /// SSLVerifyClient with all that belongs to it. Default: no certificate is asked for.
    pub verifier: Option<Arc<dyn ClientCertVerifier>>,
    /// Protocols for ALPN, as `http/1.1`, preferred first.
    pub alpn: Vec<Vec<u8>>,
    /// SSLSessionCache. Default: none.
    pub sessions: Option<Arc<dyn StoresServerSessions>>,
    /// SSLSessionTickets. Default: none are given.
    pub ticketer: Option<Arc<dyn ProducesTickets>>,
}

/// What a host's settings became.
#[derive(Debug)]
pub struct BuiltHost {
    /// For rustls.
    pub config: Arc<ServerConfig>,
    /// The same with other protocols.
    pub narrower: Vec<(Protocols, Arc<ServerConfig>)>,
    /// The certificates, for stapling and the SSL_SERVER_* variables.
    pub certificates: Arc<HostCertificates>,
    /// Warnings and remarks; no errors.
    pub findings: Vec<Finding>,
}

/// Reads the files, checks everything, and builds the configuration.
///
/// # Errors
/// All findings there are, when one of them is an error.
pub fn build(host: &HostTls, passphrases: &mut Passphrases<'_>) -> Result<BuiltHost, Vec<Finding>> {
    let mut findings = Vec::new();
    let provided = provider(host, host.protocols, &mut findings);
    let certificates = Arc::new(certificates(host, passphrases, &mut findings));
    if findings.iter().any(Finding::is_error) {
        return Err(findings);
    }
    let mut configured = |protocols: Protocols, provider: CryptoProvider| {
        configured(host, protocols, provider, &certificates).map_err(|finding| {
            findings.push(finding);
            std::mem::take(&mut findings)
        })
    };
    let config = configured(host.protocols, provided)?;
    let mut narrower = Vec::new();
    for &protocols in &host.narrower {
        // The host's own protocols have shown what there is to report.
        let provided = provider(host, protocols, &mut Vec::new());
        narrower.push((protocols, configured(protocols, provided)?));
    }
    Ok(BuiltHost { config, narrower, certificates, findings })
}

fn configured(
    host: &HostTls,
    protocols: Protocols,
    provider: CryptoProvider,
    certificates: &Arc<HostCertificates>,
) -> Result<Arc<ServerConfig>, Finding> {
    let builder = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&protocols.versions())
        .map_err(|error| Finding::error("SSLProtocol", error.to_string()))?;
    let builder = match &host.verifier {
        Some(verifier) => builder.with_client_cert_verifier(verifier.clone()),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(certificates.clone());
    settle(host, &mut config);
    Ok(Arc::new(config))
}

fn settle(host: &HostTls, config: &mut ServerConfig) {
    config.ignore_client_order = host.honor_cipher_order;
    config.alpn_protocols = host.alpn.clone();
    config.session_storage = match &host.sessions {
        Some(sessions) => sessions.clone(),
        None => Arc::new(NoServerSessionStorage {}),
    };
    if let Some(ticketer) = &host.ticketer {
        config.ticketer = ticketer.clone();
    }
    let resumable = host.sessions.is_some() || host.ticketer.is_some();
    config.send_tls13_tickets = if resumable { TLS13_TICKETS } else { 0 };
}

fn provider(host: &HostTls, protocols: Protocols, findings: &mut Vec<Finding>) -> CryptoProvider {
    let wanted = ciphers::Wanted {
        tls12: protocols.tls12,
        suites: host.cipher_suite.as_deref(),
        suites_tls13: host.cipher_suite_tls13.as_deref(),
    };
    let mut provider = wanted.provider(findings);
    if let Some(Groups(groups)) = &host.groups {
        provider.kx_groups.clone_from(groups);
    }
    provider
}

fn certificates(
    host: &HostTls,
    passphrases: &mut Passphrases<'_>,
    findings: &mut Vec<Finding>,
) -> HostCertificates {
    let chain = chain(host, findings);
    let id = Host { id: &host.id, name: &host.server_name, authorities: &host.authorities };
    let mut keys: Vec<Arc<CertifiedKey>> = Vec::new();
    for (index, pair) in host.certificates.iter().enumerate() {
        match certs::load(pair, index, id, &chain, passphrases, findings) {
            // One certificate of each kind of key, the last: as in OpenSSL's context.
            Ok(key) => match keys.iter_mut().find(|known| same_kind(known, &key)) {
                Some(known) => *known = key,
                None => keys.push(key),
            },
            Err(finding) => findings.push(finding),
        }
    }
    if host.certificates.is_empty() {
        let message =
            format!("Failed to configure at least one certificate and key for {}", host.id);
        findings.push(Finding::error("SSLCertificateFile", message).numbered(2572));
    }
    HostCertificates::new(keys)
}

fn same_kind(one: &CertifiedKey, other: &CertifiedKey) -> bool {
    one.key.algorithm() == other.key.algorithm()
}

fn chain(host: &HostTls, findings: &mut Vec<Finding>) -> Vec<CertificateDer<'static>> {
    const DIRECTIVE: &str = "SSLCertificateChainFile";
    let Some(path) = &host.chain_file else { return Vec::new() };
    match certs::read(DIRECTIVE, path) {
        Ok(text) => {
            let chain = pem::certificates(&text);
            if chain.is_empty() {
                let message = "Failed to configure CA certificate chain!";
                findings.push(Finding::error(DIRECTIVE, message).numbered(1903));
            }
            chain
        }
        Err(finding) => {
            findings.push(finding);
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests;
