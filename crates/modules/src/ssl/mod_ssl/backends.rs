//! TLS to backends: the rustls configuration of each host and `<Proxy>` section with
//! `SSLProxyEngine on`. `ssl_init_proxy_ctx`.

use std::sync::Arc;

use rustls::ClientConfig;
use server::host::{Host, Server};
use tls::Finding;
use tls::client_config::{self, BackendTls};
use tls::machine_certificates::MachineCertificates;
use tls::server_verifier::{NameCheck, ServerVerifier, Settings};
use tls::trust::Locations;

use super::config::{self, Backends};

/// What connections to backends use.
pub struct Backend {
    /// For rustls.
    pub config: Arc<ClientConfig>,
    /// Remarks for the error log.
    pub remarks: Vec<Finding>,
}

/// The configuration of a host for backends; `None` without `SSLProxyEngine on`.
pub fn of_host<'h>(server: &Server, host: &'h Host) -> Option<&'h Arc<ClientConfig>> {
    let own: &config::Server = super::of_host(server, host)?;
    Some(&own.backend.0.as_ref()?.config)
}

/// Reads the files and builds the configuration; `None` without `SSLProxyEngine on`.
///
/// # Errors
/// All findings there are, when one of them is an error.
pub fn build(settings: &Backends) -> Result<Option<Backend>, Vec<Finding>> {
    if !settings.engine.or(false) {
        return Ok(None);
    }
    let verifier = ServerVerifier::load(&verification(settings)).map_err(|one| vec![one])?;
    let certificates = Locations {
        file: settings.certificate_file.get().cloned(),
        folder: settings.certificate_folder.get().cloned(),
    };
    let chain_file = settings.chain_file.get().map(Vec::as_slice);
    let certificates =
        MachineCertificates::load(&certificates, chain_file).map_err(|one| vec![one])?;
    let (config, findings) = client_config::build(&BackendTls {
        protocols: settings.protocols.get().copied().unwrap_or_default(),
        cipher_suite: settings.cipher_suite.get().cloned(),
        cipher_suite_tls13: settings.cipher_suite_tls13.get().cloned(),
        verifier,
        certificates: (!certificates.is_empty()).then(|| Arc::new(certificates)),
        alpn: Vec::new(),
    })?;
    // Unavailable ciphers were reported when the line was read.
    let remarks = findings.into_iter().filter(|one| one.directive != "SSLProxyCipherSuite");
    Ok(Some(Backend { config, remarks: remarks.collect() }))
}

fn verification(settings: &Backends) -> Settings {
    let (check, missing_list_is_well) =
        settings.revocation_check.get().copied().unwrap_or_default();
    Settings {
        mode: settings.verify.get().copied().unwrap_or_default(),
        depth: settings.depth.or(1),
        authorities: Locations {
            file: settings.authority_file.get().cloned(),
            folder: settings.authority_folder.get().cloned(),
        },
        revocation_lists: Locations {
            file: settings.revocation_file.get().cloned(),
            folder: settings.revocation_folder.get().cloned(),
        },
        revocation_check: check,
        missing_list_is_well,
        name_check: NameCheck::of(
            settings.checks_name.get().copied(),
            settings.checks_common_name.get().copied(),
        ),
        checks_time: settings.checks_time.or(true),
    }
}
