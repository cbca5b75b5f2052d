//! Builds rustls configurations from directives: every host's certificates, keys and rules, once
//! the whole configuration is read (`ssl_init_Module`).

use std::net::{IpAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};

use conf::Arg;
use conf::values::{VirtualHostAddress, VirtualHostName};
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ProducesTickets, StoresServerSessions};
use server::build::Build;
use server::canonical::Identity;
use server::host::HostDraft;
use tls::certs::Pair;
use tls::ocsp::check;
use tls::passphrase::{DialogSource, KeptKeys, Passphrases};
use tls::protocols::Protocols;
use tls::resolver::HostCertificates;
use tls::server_config::{BuiltHost, HostTls};
use tls::sessions::SharedSessions;
use tls::stapling::Stapling;
use tls::tickets::Ticketer;
use tls::verify::{self, ClientVerifier, Mode};
use tls::{Finding, Severity};

use super::config::{Engine, Server};
use super::policy::Rules;
use super::share::Late;
use super::{FOLLOWS, Ssl, alpn, local, make_backends};
use crate::mpm::{self, Listen};

/// Decrypted keys, kept across readings of the configuration: a restart does not ask for pass
/// phrases again. Only the supervisor reads configurations, in its single thread.
static KEPT: Mutex<Option<KeptKeys>> = Mutex::new(None);

/// The keys decrypted so far, for the successor in an upgrade.
pub fn kept_keys() -> Vec<u8> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.as_ref().map_or_else(Vec::new, KeptKeys::to_bytes)
}

/// Takes over the keys that the predecessor decrypted, so that their pass phrases are not asked
/// for.
pub fn adopt_keys(keys: &[u8]) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Some(KeptKeys::from_bytes(keys));
}

/// The result for a host with TLS.
pub struct Built {
    /// For rustls.
    config: Arc<ServerConfig>,
    /// That and the narrower ones with one protocol of ALPN each, in the host's order, if the
    /// client's order counts (`ProtocolsHonorOrder Off`).
    by_client: Vec<(Arc<ServerConfig>, alpn::ByProtocol)>,
    /// The same with other protocols, if the host has no SSLProtocol.
    narrower: Vec<(Protocols, Arc<ServerConfig>)>,
    /// The certificates with their staples.
    pub certificates: Arc<HostCertificates>,
    /// Verifies clients; `None` if no certificate is requested.
    pub verifier: Option<Arc<ClientVerifier>>,
    /// The settings of OCSP queries for clients.
    pub ocsp: Arc<check::Settings>,
    /// The responses to staple, by the certificate's index.
    pub staplings: Vec<(usize, Stapling)>,
    /// `SSLSessionCache`, once the shared memory exists.
    pub sessions: Option<Arc<Late<SharedSessions>>>,
    /// Tickets under the shared keys, once the shared memory exists.
    pub tickets: Option<Arc<Late<Ticketer>>>,
    /// The context that sessions are bound to.
    pub context: [u8; 32],
    /// Remarks for the error log.
    pub remarks: Vec<Finding>,
    /// `servername:port`
    pub id: String,
}

impl Built {
    /// The configuration at an address whose first host has these protocols: without SSLProtocol of
    /// its own, a host accepts them alone (`init_vhost`).
    pub fn config(&self, of_first: Option<Protocols>) -> &Arc<ServerConfig> {
        let narrower = self.narrower.iter().find(|(protocols, _)| Some(*protocols) == of_first);
        narrower.map_or(&self.config, |(_, config)| config)
    }

    /// The same configuration with the protocol that the client prefers, if that counts.
    pub fn preferred<'n>(
        &self,
        config: &Arc<ServerConfig>,
        offered: impl Iterator<Item = &'n [u8]>,
    ) -> Option<&Arc<ServerConfig>> {
        let of_config = self.by_client.iter().find(|(of, _)| Arc::ptr_eq(of, config));
        let (_, by_protocol) = of_config?;
        let mut offered = offered.filter_map(|name| {
            by_protocol.iter().find(|(own, _)| own == name).map(|(_, config)| config)
        });
        offered.next()
    }
}

/// Builds every host's [`Built`], and reports errors at their lines. If the configuration is only
/// being tested, nothing is created, and no pass phrase asked for.
pub fn post_config(build: &mut Build) {
    let Some(slot) = build.registry.slot_of::<Ssl>() else { return };
    settle_engines(build, slot);
    let count = build.hosts.len();
    for index in 0..=count {
        let rules = build.server_config::<Ssl>(&draft(build, index).server).map(Rules::of);
        if let Some(server) = edit(build, index, slot) {
            server.rules.0 = rules.map(Arc::new);
        }
    }
    if !build.for_real {
        return;
    }
    let main = build.server_config::<Ssl>(&build.main.server);
    let dialog = main.map(|main| main.dialog.0.clone()).unwrap_or_default();
    let mut source = DialogSource::new(dialog, FOLLOWS);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let mut passphrases = Passphrases::new(&mut source).with_kept(kept.take().unwrap_or_default());
    for index in 0..=count {
        let Some(server) = build.server_config::<Ssl>(&draft(build, index).server) else { return };
        if !server.is_on() {
            continue;
        }
        let server = server.clone();
        match host(build, index, &server, &mut passphrases) {
            Ok(built) => {
                if let Some(server) = edit(build, index, slot) {
                    server.built.0 = Some(Arc::new(built));
                }
            }
            Err(findings) => report(build, index, &server, &findings),
        }
    }
    make_backends::of_hosts(build, slot);
    *kept = Some(passphrases.into_kept());
}

pub(super) fn draft(build: &Build, index: usize) -> &HostDraft {
    index.checked_sub(1).and_then(|index| build.hosts.get(index)).unwrap_or(&build.main)
}

pub(super) fn edit(build: &mut Build, index: usize, slot: usize) -> Option<&mut Server> {
    let draft = match index.checked_sub(1) {
        Some(index) => build.hosts.get_mut(index)?,
        None => &mut build.main,
    };
    draft.server.edit::<Server>(slot)
}

/// Turns the engine on for hosts with a certificate but without SSLEngine, if their protocol is
/// https.
fn settle_engines(build: &mut Build, slot: usize) {
    let Some((_, settings)) = mpm::active(&build.registry, &build.main.server) else { return };
    let listeners = settings.listen.0.clone();
    for index in 0..=build.hosts.len() {
        let host = draft(build, index);
        let core = build.core_config(&host.server);
        let is_https = match core.and_then(|core| core.protocol.get()) {
            Some(named) => named == b"https",
            None => protocol(&host.addresses, &listeners) == Some("https"),
        };
        if is_https
            && let Some(server) = edit(build, index, slot)
            && !server.engine.is_set()
            && !server.certificates.0.is_empty()
        {
            server.engine.set(Engine::On);
        }
    }
}

/// The protocol of the listener at the first of a host's addresses that has one
/// (`ap_setup_listeners`, server/listen.c).
fn protocol<'l>(addresses: &[Arg], listeners: &'l [Listen]) -> Option<&'l str> {
    let mut addresses =
        addresses.iter().filter_map(|arg| VirtualHostAddress::parse(&arg.text).ok());
    let listener = addresses.find_map(|address| {
        listeners.iter().find(|listen| Some(listen.port) == address.port && is_at(listen, &address))
    });
    listener.map(|listen| listen.protocol.as_str())
}

/// Whether a listener has a host's address. A listener on all addresses does not match a specific
/// one.
fn is_at(listen: &Listen, host: &VirtualHostAddress) -> bool {
    let is_any = |address: &IpAddr| address.is_unspecified();
    match &host.host {
        VirtualHostName::Any => listen.address.as_ref().is_none_or(is_any),
        VirtualHostName::Ip(wanted) => match listen.address {
            Some(address) => address.to_canonical() == wanted.to_canonical(),
            None => is_any(wanted),
        },
        VirtualHostName::Name(name) => {
            let found = (name.as_str(), listen.port).to_socket_addrs();
            found.is_ok_and(|mut all| all.any(|found| Some(found.ip()) == listen.address))
        }
    }
}

/// Adds findings to the diagnostics, at the directives' locations.
pub(super) fn report(build: &mut Build, index: usize, server: &Server, findings: &[Finding]) {
    let fallback = draft(build, index).span;
    for finding in findings.iter().filter(|finding| finding.severity == Severity::Error) {
        let place = server.places.get(finding.directive).copied().unwrap_or(fallback);
        let text = match finding.number {
            Some(number) => format!("AH{number:05}: {}", finding.message),
            None => finding.message.clone(),
        };
        if place.line == 0 {
            build.error_without_place(text);
        } else {
            build.error(place, text);
        }
    }
}

fn host(
    build: &Build,
    index: usize,
    server: &Server,
    passphrases: &mut Passphrases<'_>,
) -> Result<Built, Vec<Finding>> {
    let mut remarks = Vec::new();
    let draft = draft(build, index);
    let identity = identity(build, draft, index);
    let name = String::from_utf8_lossy(&identity.name).into_owned();
    let port = if identity.port == 0 { 443 } else { identity.port };
    let id = format!("{name}:{port}");
    local::ensure(build, server).map_err(|finding| vec![finding])?;
    if server.section_modes.contains(&Mode::OptionalNoCa)
        && server.verify.get() != Some(&Mode::OptionalNoCa)
    {
        return Err(vec![Finding::error(SECTION_NO_CA, NO_CA_MESSAGE)]);
    }
    let verifier = ClientVerifier::load(&verification(server, &id), &mut remarks)
        .map_err(|finding| vec![finding])?;
    let ocsp = server.ocsp.settings().map_err(|finding| vec![finding])?;
    let trust = verifier.as_ref().map(|verifier| verifier.fingerprint()).unwrap_or_default();
    let context = tls::sessions::context(&[id.as_bytes(), &trust]);
    let has_cache = server.session_cache.0.words() > 0;
    let sessions = has_cache.then(|| Arc::new(Late::default()));
    let (tickets, ticketer) = ticketer(server, context).map_err(|finding| vec![finding])?;
    let authorities = server
        .authorities()
        .certificates("SSLCACertificateFile", "SSLCACertificatePath")
        .map_err(|finding| vec![finding])?;
    let settings = HostTls {
        id: id.clone(),
        server_name: name,
        certificates: pairs(server),
        chain_file: server.chain_file.get().cloned(),
        authorities: authorities.clone(),
        protocols: server.protocols.get().copied().unwrap_or_default(),
        narrower: if server.protocols.is_set() { Vec::new() } else { narrower(build) },
        cipher_suite: server.cipher_suite.get().cloned(),
        cipher_suite_tls13: server.cipher_suite_tls13.get().cloned(),
        groups: server.groups.get().cloned(),
        honor_cipher_order: server.honor_cipher_order.or(false),
        verifier: verifier.clone().map(|verifier| verifier as Arc<dyn ClientCertVerifier>),
        alpn: alpn::offered(build, draft),
        sessions: sessions.clone().map(|sessions| sessions as Arc<dyn StoresServerSessions>),
        ticketer,
    };
    let BuiltHost { config, narrower, certificates, findings } =
        tls::server_config::build(&settings, passphrases)?;
    // Unavailable ciphers were reported when the line was read.
    remarks.extend(findings.into_iter().filter(|one| one.directive != "SSLCipherSuite"));
    let staplings = staplings(server, &certificates, &authorities, &id, &mut remarks);
    let ocsp = Arc::new(ocsp);
    let all = narrower.iter().map(|(_, config)| config).chain([&config]);
    let by_client = alpn::by_client(build, draft, all);
    Ok(Built {
        by_client,
        config,
        narrower,
        certificates,
        verifier,
        ocsp,
        staplings,
        sessions,
        tickets,
        context,
        remarks,
        id,
    })
}

/// The protocols of hosts that do not accept all.
fn narrower(build: &Build) -> Vec<Protocols> {
    let mut found = Vec::new();
    for index in 0..=build.hosts.len() {
        let server = build.server_config::<Ssl>(&draft(build, index).server);
        let protocols = server.and_then(|server| server.protocols.get().copied());
        let is_new = |one: &Protocols| !one.speaks_as(Protocols::default()) && !found.contains(one);
        found.extend(protocols.filter(is_new));
    }
    found
}

fn identity(build: &Build, draft: &HostDraft, index: usize) -> Identity {
    let main = Identity::of(&build.main, None, build);
    if index == 0 { main } else { Identity::of(draft, Some(&main), build) }
}

/// The certificates with their keys, by position in the two lists. A certificate without a key line
/// has its key in its own file.
fn pairs(server: &Server) -> Vec<Pair> {
    let keys = server.keys.iter().cloned().map(Some).chain(std::iter::repeat(None));
    let pair = |(certificate, key): (&Vec<u8>, _)| Pair { certificate: certificate.clone(), key };
    server.certificates.iter().zip(keys).map(pair).collect()
}

/// The location of `SSLVerifyClient optional_no_ca` in a section, in the map of a host's
/// directives.
pub const SECTION_NO_CA: &str = "SSLVerifyClient optional_no_ca in a section";

const NO_CA_MESSAGE: &str = "SSLVerifyClient optional_no_ca is not supported here: other sections \
    of the host would trust the claims of an untrusted certificate. Set it in the virtual host";

fn verification(server: &Server, id: &str) -> verify::Settings {
    let (check, missing_list_is_well) = server.revocation_check.get().copied().unwrap_or_default();
    verify::Settings {
        host_id: id.to_owned(),
        mode: server.handshake_mode(),
        depth: server.handshake_depth(),
        authorities: server.authorities(),
        requested_names: server.requested(),
        revocation_lists: server.revocation_lists(),
        revocation_check: check,
        missing_list_is_well,
    }
}

type Tickets = (Option<Arc<Late<Ticketer>>>, Option<Arc<dyn ProducesTickets>>);

/// The tickets of a host: under the key from its own file, under the shared keys, or none.
fn ticketer(server: &Server, context: [u8; 32]) -> Result<Tickets, Finding> {
    if !server.tickets.or(true) {
        return Ok((None, None));
    }
    if let Some(file) = server.ticket_key_file.get() {
        let own = Ticketer::of_file(file, context, server.session_seconds())?;
        return Ok((None, Some(Arc::new(own))));
    }
    let late = Arc::new(Late::default());
    Ok((Some(late.clone()), Some(late)))
}

fn staplings(
    server: &Server,
    certificates: &HostCertificates,
    authorities: &[rustls_pki_types::CertificateDer<'static>],
    id: &str,
    remarks: &mut Vec<Finding>,
) -> Vec<(usize, Stapling)> {
    if !server.stapling.on.or(false) {
        return Vec::new();
    }
    let settings = server.stapling.settings(server.ocsp.proxy.get());
    let mut found = Vec::new();
    for place in 0..certificates.len() {
        match Stapling::new(certificates.chain(place), authorities, settings.clone(), id) {
            Ok(stapling) => found.push((place, stapling)),
            Err(finding) => remarks.push(finding),
        }
    }
    found
}
