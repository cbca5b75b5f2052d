//! TLS of the client: the names, versions and certificates that a test offers, and the outcome.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientSessionMemoryCache, Resumption};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

const SESSIONS: usize = 32;

/// The certificates of tests/tls, and the sessions of a test file.
pub struct Tls {
    /// DER → file name without `.pem`.
    names: BTreeMap<Vec<u8>, String>,
    folder: std::path::PathBuf,
    /// A configuration for each set of options: rustls resumes only within one.
    configs: Mutex<BTreeMap<String, Arc<ClientConfig>>>,
}

impl Tls {
    /// Reads the certificates' names from a folder of PEM files.
    pub fn new(folder: &Path) -> Tls {
        let mut names = BTreeMap::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if let Ok(certificate) = CertificateDer::from_pem_file(&path) {
                let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                names.insert(certificate.to_vec(), name);
            }
        }
        Tls { names, folder: folder.to_owned(), configs: Mutex::default() }
    }

    /// `sni=NAME` (none: no SNI), `alpn=A,B`, `cert=NAME`, `only=1.2|1.3`, `suite=NAME`, `resume`.
    pub fn client(&self, options: &[String]) -> Result<ClientConnection, String> {
        let sni = value(options, "sni").unwrap_or("localhost");
        let name = if sni == "none" { "localhost" } else { sni };
        let name = ServerName::try_from(name.to_owned()).map_err(|e| e.to_string())?;
        let mut configs = self.configs.lock().map_err(|e| e.to_string())?;
        let config = match configs.get(&options.join(" ")) {
            Some(config) => config.clone(),
            None => {
                let config = Arc::new(self.config(options)?);
                configs.insert(options.join(" "), config.clone());
                config
            }
        };
        ClientConnection::new(config, name).map_err(|e| e.to_string())
    }

    fn config(&self, options: &[String]) -> Result<ClientConfig, String> {
        let value = |key| value(options, key);
        let mut provider = aws_lc_rs::default_provider();
        if let Some(suite) = value("suite") {
            provider.cipher_suites.retain(|known| format!("{:?}", known.suite()) == suite);
        }
        let versions: &[_] = match value("only") {
            Some("1.2") => &[&rustls::version::TLS12],
            Some("1.3") => &[&rustls::version::TLS13],
            _ => rustls::ALL_VERSIONS,
        };
        let provider = Arc::new(provider);
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(versions)
            .map_err(|e| e.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
        let mut config = match value("cert") {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let path = |kind: &str| self.folder.join(format!("{name}.{kind}"));
                let chain = CertificateDer::pem_file_iter(path("pem"))
                    .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
                    .map_err(|e| format!("{}: {e:?}", path("pem").display()))?;
                let key = PrivateKeyDer::from_pem_file(path("key"))
                    .map_err(|e| format!("{}: {e:?}", path("key").display()))?;
                builder.with_client_auth_cert(chain, key).map_err(|e| e.to_string())?
            }
        };
        config.resumption = if options.iter().any(|word| word == "resume") {
            Resumption::store(Arc::new(ClientSessionMemoryCache::new(SESSIONS)))
        } else {
            Resumption::disabled()
        };
        if let Some(protocols) = value("alpn") {
            config.alpn_protocols =
                protocols.split(',').map(|name| name.as_bytes().to_vec()).collect();
        }
        config.enable_sni = value("sni") != Some("none");
        Ok(config)
    }
}

fn value<'a>(options: &'a [String], key: &str) -> Option<&'a str> {
    options.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// Version, suite, ALPN, certificate, and whether the session was resumed, in one line.
pub fn describe(connection: &ClientConnection, tls: &Tls) -> String {
    let version = connection.protocol_version().map_or("none".into(), |v| format!("{v:?}"));
    let suite = connection.negotiated_cipher_suite();
    let suite = suite.map_or("none".into(), |suite| format!("{:?}", suite.suite()));
    let alpn = String::from_utf8_lossy(connection.alpn_protocol().unwrap_or(b"none")).into_owned();
    let certificate = connection.peer_certificates().and_then(|chain| chain.first());
    let certificate = certificate.and_then(|der| tls.names.get(der.as_ref()));
    let certificate = certificate.map_or("unknown", String::as_str);
    let chain = connection.peer_certificates().map_or(0, <[_]>::len);
    let kind = connection.handshake_kind().map_or("none".into(), |kind| format!("{kind:?}"));
    format!("{version} {suite} alpn={alpn} certificate={certificate} chain={chain} {kind}")
}

/// Accepts any certificate, but verifies that the server holds its key.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
