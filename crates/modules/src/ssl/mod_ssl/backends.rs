//! TLS to backends: the rustls configuration of each host and `<Proxy>` section with
//! `SSLProxyEngine on`. `ssl_init_proxy_ctx`.

use std::sync::{Arc, OnceLock};

use rt::Work;
use rustls::ClientConfig;
use server::host::{Host, Server};
use server::merge::Merge;
use server::module::Module;
use server::request::Request;
use tls::Finding;
use tls::client_config::{self, BackendTls};
use tls::machine_certificates::MachineCertificates;
use tls::server_verifier::{NameCheck, ServerVerifier, Settings};
use tls::trust::Locations;

use super::Ssl;
use super::config::Backends;

/// What connections to backends use, under some settings.
pub struct Backend {
    /// The settings.
    pub settings: Backends,
    /// For rustls.
    pub config: Arc<ClientConfig>,
    /// The same for health checks, which neither send a name nor compare one.
    pub nameless: Arc<ClientConfig>,
    /// Remarks for the error log.
    pub remarks: Vec<Finding>,
}

/// What the settings of a configuration mean, once a request has asked for it. Copies of the
/// configuration, which may be edited, ask again.
#[derive(Default)]
pub struct Found(OnceLock<Arc<ClientConfig>>);

impl Clone for Found {
    fn clone(&self) -> Found {
        Found::default()
    }
}

impl Merge for Found {
    fn merge(_: &Found, _: &Found) -> Found {
        Found::default()
    }
}

/// What a request's connection to a backend uses; `None` without `SSLProxyEngine on`.
///
/// # Errors
/// Files that cannot be read: the settings of sections that overlap are put together by the first
/// request.
pub async fn of_request(request: &Request) -> Result<Option<Arc<ClientConfig>>, String> {
    let Some(dir) = request.dir_of::<Ssl>() else { return Ok(None) };
    if !dir.backends.is_on() {
        return Ok(None);
    }
    if let Some(config) = dir.for_backends.0.get() {
        return Ok(Some(config.clone()));
    }
    let config = find_or_build(request, &dir.backends).await?;
    Ok(Some(dir.for_backends.0.get_or_init(|| config).clone()))
}

/// What the host has for these settings, or else what their files say.
async fn find_or_build(
    request: &Request,
    settings: &Backends,
) -> Result<Arc<ClientConfig>, String> {
    let made = request.server_of::<Ssl>().map(|own| own.backends.0.as_slice()).unwrap_or_default();
    if let Some(backend) = made.iter().find(|one| one.settings == *settings) {
        return Ok(backend.config.clone());
    }
    let settings = settings.clone();
    let pool = request.engine.handle.blocking();
    let built = pool.run(Work::File, move || build(settings)).await;
    let built = built.map_err(|error| error.to_string())?;
    let first = |findings: Vec<Finding>| findings.into_iter().next().map(|one| one.message);
    built.map(|backend| backend.config).map_err(|all| first(all).unwrap_or_default())
}

/// What health checks of a host use; `None` without `SSLProxyEngine on`. Sections do not count.
pub fn of_checks(server: &Server, host: &Host) -> Option<Arc<ClientConfig>> {
    let slot = server.registry.slot_of::<Ssl>()?;
    let settings = &host.dir.get::<<Ssl as Module>::Dir>(slot)?.backends;
    let made = &host.server.get::<<Ssl as Module>::Server>(slot)?.backends.0;
    let backend = made.iter().find(|one| settings.is_on() && one.settings == *settings);
    backend.map(|backend| backend.nameless.clone())
}

impl Backends {
    /// `SSLProxyEngine on`
    pub fn is_on(&self) -> bool {
        self.engine.or(false)
    }
}

/// Reads the files and builds the configuration.
///
/// # Errors
/// All findings there are, when one of them is an error.
pub fn build(settings: Backends) -> Result<Backend, Vec<Finding>> {
    let mut remarks = Vec::new();
    let verifier =
        ServerVerifier::load(&verification(&settings), &mut remarks).map_err(|one| vec![one])?;
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
        verifier: verifier.clone(),
        certificates: (!certificates.is_empty()).then(|| Arc::new(certificates)),
        alpn: Vec::new(),
    })?;
    // Unavailable ciphers were reported when the line was read.
    remarks.extend(findings.into_iter().filter(|one| one.directive != "SSLProxyCipherSuite"));
    let nameless = nameless(&config, &verifier);
    Ok(Backend { settings, config, nameless, remarks })
}

fn nameless(config: &ClientConfig, verifier: &ServerVerifier) -> Arc<ClientConfig> {
    let mut config = config.clone();
    config.enable_sni = false;
    config.dangerous().set_certificate_verifier(verifier.without_names());
    Arc::new(config)
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
