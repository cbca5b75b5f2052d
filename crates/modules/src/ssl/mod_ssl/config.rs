//! mod_ssl's configuration.

use std::sync::Arc;

use conf::Span;
use conf::expr::Expr;
use server::merge::{Append, Outermost, Overlay, Own, Setting, Supplant};
use tls::groups::Groups;
use tls::ocsp::Responder;
use tls::ocsp::check::Enable;
use tls::passphrase::Dialog;
use tls::protocols::Protocols;
use tls::revocation::Check;
use tls::sessions::SessionCache;
use tls::trust::Locations;
use tls::verify::Mode;

use super::backends::{Backend, Found};
use super::make::Built;
use super::options::Options;
use super::policy::{Rules, SniPolicy};

/// The value of SSLEngine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Engine {
    /// Plain HTTP.
    #[default]
    Off,
    /// TLS.
    On,
    /// Plain HTTP, with a notice: Apache 2.4.71 no longer supports upgrades to TLS (RFC 2817).
    Optional,
}

server::config! {
    /// Per-host configuration.
    pub struct Server {
        /// `SSLEngine`
        pub engine: Setting<Engine>,
        /// `SSLCertificateFile`, in order.
        pub certificates: Supplant<Vec<u8>>,
        /// `SSLCertificateKeyFile`, in order.
        pub keys: Supplant<Vec<u8>>,
        /// `SSLCertificateChainFile`
        pub chain_file: Setting<Vec<u8>>,
        /// `SSLProtocol`
        pub protocols: Setting<Protocols>,
        /// `SSLCipherSuite`
        pub cipher_suite: Setting<String>,
        /// `SSLCipherSuite TLSv1.3`
        pub cipher_suite_tls13: Setting<String>,
        /// `SSLOpenSSLConfCmd Groups`, or `Curves`
        pub groups: Setting<Groups>,
        /// `SSLOpenSSLConfCmd`, as written.
        pub openssl_commands: Append<(Vec<u8>, Vec<u8>)>,
        /// `SSLHonorCipherOrder`
        pub honor_cipher_order: Setting<bool>,
        /// `SSLCACertificateFile`
        pub authority_file: Setting<Vec<u8>>,
        /// `SSLCACertificatePath`
        pub authority_folder: Setting<Vec<u8>>,
        /// `SSLCADNRequestFile`
        pub requested_file: Setting<Vec<u8>>,
        /// `SSLCADNRequestPath`
        pub requested_folder: Setting<Vec<u8>>,
        /// `SSLCARevocationFile`
        pub revocation_file: Setting<Vec<u8>>,
        /// `SSLCARevocationPath`
        pub revocation_folder: Setting<Vec<u8>>,
        /// `SSLCARevocationCheck`
        pub revocation_check: Setting<(Check, bool)>,
        /// `SSLVerifyClient` outside of sections.
        pub verify: Setting<Mode>,
        /// `SSLVerifyDepth`
        pub verify_depth: Setting<usize>,
        /// `SSLVerifyClient` in sections.
        pub section_modes: Append<Mode>,
        /// `SSLVerifyDepth` in sections.
        pub section_depths: Append<usize>,
        /// `SSLStrictSNIVHostCheck`
        pub strict_sni: Setting<bool>,
        /// `SSLVHostSNIPolicy`
        pub sni_policy: Outermost<SniPolicy>,
        /// `SSLSessionCache`
        pub session_cache: Outermost<SessionCache>,
        /// `SSLSessionCacheTimeout`, seconds.
        pub session_timeout: Setting<u32>,
        /// `SSLSessionTickets`
        pub tickets: Setting<bool>,
        /// `SSLSessionTicketKeyFile`
        pub ticket_key_file: Setting<Vec<u8>>,
        /// `SSLPassPhraseDialog`
        pub dialog: Outermost<Dialog>,
        /// `SSLOCSP…`
        pub ocsp: Ocsp,
        /// `SSLStapling…`
        pub stapling: Stapling,
        /// The locations of the directives in force.
        pub places: Overlay<&'static str, Span>,
        /// The rules that must be equal for hosts to be compatible.
        pub rules: Own<Option<Arc<Rules>>>,
        /// The result, for hosts with TLS.
        pub built: Own<Option<Arc<Built>>>,
        /// What is used for backends, by the settings of the host and of its `<Proxy>` sections.
        pub backends: Own<Vec<Arc<Backend>>>,
    }
}

server::config! {
    /// `SSLOCSP…`
    pub struct Ocsp {
        /// `SSLOCSPEnable`
        pub enable: Setting<(Enable, bool)>,
        /// `SSLOCSPDefaultResponder`
        pub default_responder: Setting<Responder>,
        /// `SSLOCSPOverrideResponder`
        pub override_responder: Setting<bool>,
        /// `SSLOCSPUseRequestNonce`
        pub use_nonce: Setting<bool>,
        /// `SSLOCSPResponderTimeout`, seconds.
        pub timeout_seconds: Setting<u64>,
        /// `SSLOCSPResponseTimeSkew`, seconds.
        pub skew_seconds: Setting<i64>,
        /// `SSLOCSPResponseMaxAge`, seconds; negative for no limit.
        pub max_age_seconds: Setting<i64>,
        /// `SSLOCSPResponderCertificateFile`
        pub responder_file: Setting<Vec<u8>>,
        /// `SSLOCSPNoverify`
        pub no_verify: Setting<bool>,
        /// `SSLOCSPProxyURL`
        pub proxy: Setting<Responder>,
    }
}

server::config! {
    /// `SSLStapling…`
    pub struct Stapling {
        /// `SSLUseStapling`
        pub on: Setting<bool>,
        /// `SSLStaplingResponseTimeSkew`, seconds.
        pub skew_seconds: Setting<i64>,
        /// `SSLStaplingResponseMaxAge`, seconds; negative for no limit.
        pub max_age_seconds: Setting<i64>,
        /// `SSLStaplingStandardCacheTimeout`, seconds.
        pub cache_seconds: Setting<u64>,
        /// `SSLStaplingErrorCacheTimeout`, seconds.
        pub error_cache_seconds: Setting<u64>,
        /// `SSLStaplingReturnResponderErrors`
        pub return_errors: Setting<bool>,
        /// `SSLStaplingFakeTryLater`
        pub fake_try_later: Setting<bool>,
        /// `SSLStaplingForceURL`
        pub force_url: Setting<Responder>,
        /// `SSLStaplingResponderTimeout`, seconds.
        pub timeout_seconds: Setting<u64>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `SSLOptions`
        pub options: Options,
        /// `SSLRequireSSL`
        pub require_ssl: Setting<bool>,
        /// `SSLRequire`: all must hold.
        pub requirements: Append<Arc<Condition>>,
        /// `SSLUserName`
        pub user_name: Setting<String>,
        /// `SSLVerifyClient` in a section: the required certificate.
        pub verify: Setting<Mode>,
        /// `SSLVerifyDepth` in a section.
        pub verify_depth: Setting<usize>,
        /// `SSLCipherSuite` in a section: the numbers of the allowed suites of TLS 1.2.
        pub cipher_suites: Setting<Vec<u16>>,
        /// `SSLProxy…`
        pub backends: Backends,
        /// What these settings mean.
        pub for_backends: Found,
    }
}

server::config! {
    /// `SSLProxy…`
    #[derive(PartialEq)]
    pub struct Backends {
        /// `SSLProxyEngine`
        pub engine: Setting<bool>,
        /// `SSLProxyProtocol`
        pub protocols: Setting<Protocols>,
        /// `SSLProxyCipherSuite`
        pub cipher_suite: Setting<String>,
        /// `SSLProxyCipherSuite TLSv1.3`
        pub cipher_suite_tls13: Setting<String>,
        /// `SSLProxyVerify`
        pub verify: Setting<Mode>,
        /// `SSLProxyVerifyDepth`
        pub depth: Setting<usize>,
        /// `SSLProxyCACertificateFile`
        pub authority_file: Setting<Vec<u8>>,
        /// `SSLProxyCACertificatePath`
        pub authority_folder: Setting<Vec<u8>>,
        /// `SSLProxyCARevocationFile`
        pub revocation_file: Setting<Vec<u8>>,
        /// `SSLProxyCARevocationPath`
        pub revocation_folder: Setting<Vec<u8>>,
        /// `SSLProxyCARevocationCheck`
        pub revocation_check: Setting<(Check, bool)>,
        /// `SSLProxyCheckPeerCN`
        pub checks_common_name: Setting<bool>,
        /// `SSLProxyCheckPeerExpire`
        pub checks_time: Setting<bool>,
        /// `SSLProxyCheckPeerName`
        pub checks_name: Setting<bool>,
        /// `SSLProxyMachineCertificateFile`
        pub certificate_file: Setting<Vec<u8>>,
        /// `SSLProxyMachineCertificatePath`
        pub certificate_folder: Setting<Vec<u8>>,
        /// `SSLProxyMachineCertificateChainFile`
        pub chain_file: Setting<Vec<u8>>,
    }
}

/// An `SSLRequire` condition.
pub struct Condition {
    /// The text as written, for the log.
    pub text: String,
    /// The compiled expression.
    pub expr: Expr,
}

impl Server {
    /// Whether connections to the host speak TLS.
    pub fn is_on(&self) -> bool {
        self.engine.or(Engine::Off) == Engine::On
    }

    /// Whether handshakes request a certificate. A connection can't request one later, so they do
    /// if a section of the host requires it.
    pub fn handshake_mode(&self) -> Mode {
        let of_host = self.verify.get().copied().unwrap_or_default();
        let in_sections = self.section_modes.iter().any(|mode| *mode != Mode::None);
        if of_host == Mode::None && in_sections { Mode::OfSections } else { of_host }
    }

    /// Whether each client of the host is asked for a certificate, not only in some sections.
    pub fn verifies_clients(&self) -> bool {
        self.verify.get().is_some_and(|mode| *mode != Mode::None)
    }

    /// The most issuers above a certificate in a handshake: if sections check it, the largest
    /// number that any of them allows.
    pub fn handshake_depth(&self) -> usize {
        let of_host = self.verify_depth.or(1);
        match self.handshake_mode() {
            Mode::OfSections => self.section_depths.iter().copied().fold(of_host, usize::max),
            _ => of_host,
        }
    }

    /// The locations of the CA certificates for clients.
    pub fn authorities(&self) -> Locations {
        locations(&self.authority_file, &self.authority_folder)
    }

    /// The locations of the CA names sent to clients.
    pub fn requested(&self) -> Locations {
        locations(&self.requested_file, &self.requested_folder)
    }

    /// The locations of revocation lists.
    pub fn revocation_lists(&self) -> Locations {
        locations(&self.revocation_file, &self.revocation_folder)
    }

    /// `SSLSessionCacheTimeout`, seconds.
    pub fn session_seconds(&self) -> u32 {
        self.session_timeout.or(300)
    }
}

fn locations(file: &Setting<Vec<u8>>, folder: &Setting<Vec<u8>>) -> Locations {
    Locations { file: file.get().cloned(), folder: folder.get().cloned() }
}

impl Ocsp {
    /// The settings for checks; reads the responders' certificates from their file.
    pub fn settings(&self) -> Result<tls::ocsp::check::Settings, tls::Finding> {
        const FILE: &str = "SSLOCSPResponderCertificateFile";
        let (enable, missing_responder_is_well) = self.enable.or((Enable::Off, false));
        let of_responders = match self.responder_file.get() {
            Some(file) if enable != Enable::Off => {
                Locations { file: Some(file.clone()), folder: None }.certificates(FILE, FILE)?
            }
            _ => Vec::new(),
        };
        Ok(tls::ocsp::check::Settings {
            enable,
            missing_responder_is_well,
            default_responder: self.default_responder.get().cloned(),
            override_responder: self.override_responder.or(false),
            use_nonce: self.use_nonce.or(true),
            timeout_seconds: self.timeout_seconds.or(10),
            skew_seconds: self.skew_seconds.or(300),
            max_age_seconds: self.max_age_seconds.get().copied().filter(|age| *age >= 0),
            responder_certificates: of_responders,
            no_verify: self.no_verify.or(false),
            proxy: self.proxy.get().cloned(),
        })
    }
}

impl Stapling {
    /// The settings for stapling.
    pub fn settings(&self, proxy: Option<&Responder>) -> tls::stapling::Settings {
        tls::stapling::Settings {
            skew_seconds: self.skew_seconds.or(300),
            max_age_seconds: self.max_age_seconds.get().copied().filter(|age| *age >= 0),
            cache_seconds: self.cache_seconds.or(3600),
            error_cache_seconds: self.error_cache_seconds.or(600),
            return_errors: self.return_errors.or(true),
            fake_try_later: self.fake_try_later.or(true),
            force_url: self.force_url.get().cloned(),
            timeout_seconds: self.timeout_seconds.or(10),
            proxy: proxy.cloned(),
        }
    }
}
