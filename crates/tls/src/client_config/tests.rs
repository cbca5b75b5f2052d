use super::*;
use crate::server_verifier::{NameCheck, Settings};
use crate::trust::Locations;
use crate::verify::Mode;
use rcgen::{CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    CipherSuite, ClientConnection, ProtocolVersion, RootCertStore, ServerConfig, ServerConnection,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tls-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> Locations {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        Locations { file: Some(path.to_str().unwrap().into()), folder: None }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Authority {
    certificate: rcgen::Certificate,
    issuer: Issuer<'static, KeyPair>,
}

fn authority(name: &str) -> Authority {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    Authority { certificate: params.self_signed(&key).unwrap(), issuer: Issuer::new(params, key) }
}

/// A certificate and its key.
fn issue(by: &Authority, name: &str) -> (rcgen::Certificate, KeyPair) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    (params.signed_by(&key, &by.issuer).unwrap(), key)
}

fn backend_tls(settings: &Settings) -> BackendTls {
    BackendTls {
        protocols: Protocols::default(),
        cipher_suite: None,
        cipher_suite_tls13: None,
        verifier: ServerVerifier::load(settings, &mut Vec::new()).unwrap(),
        certificates: None,
        alpn: vec![b"http/1.1".to_vec()],
    }
}

fn server(own: &(rcgen::Certificate, KeyPair), clients: Option<&Authority>) -> ServerConnection {
    let builder = ServerConfig::builder_with_provider(crate::shared_provider())
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(by) => {
            let mut roots = RootCertStore::empty();
            roots.add(by.certificate.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                crate::shared_provider(),
            );
            let verifier = verifier.allow_unauthenticated().build().unwrap();
            builder.with_client_cert_verifier(verifier)
        }
    };
    let key = PrivateKeyDer::try_from(own.1.serialize_der()).unwrap();
    let mut config = builder.with_single_cert(vec![own.0.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    ServerConnection::new(Arc::new(config)).unwrap()
}

/// Shakes hands; the server's end afterwards.
fn shake(
    settings: &BackendTls,
    name: &'static str,
    mut server: ServerConnection,
) -> Result<ServerConnection, rustls::Error> {
    let (config, _) = build(settings).unwrap();
    let mut client = ClientConnection::new(config, name.try_into().unwrap()).unwrap();
    for _ in 0..6 {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        server.read_tls(&mut bytes.as_slice()).unwrap();
        server.process_new_packets()?;
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        client.read_tls(&mut bytes.as_slice()).unwrap();
        client.process_new_packets()?;
    }
    assert!(!client.is_handshaking());
    Ok(server)
}

fn require(authorities: Locations) -> Settings {
    Settings { mode: Mode::Require, authorities, ..Settings::default() }
}

#[test]
fn a_backend_is_verified_as_configured_and_told_its_name() {
    let folder = Folder::new("verified");
    let root = authority("root");
    let own = issue(&root, "backend.example");
    let trusting = require(folder.write("root.pem", &root.certificate.pem()));
    let shaken = shake(&backend_tls(&trusting), "backend.example", server(&own, None)).unwrap();
    assert_eq!(shaken.server_name(), Some("backend.example"));
    assert_eq!(shaken.alpn_protocol(), Some(&b"http/1.1"[..]));
    assert_eq!(shaken.protocol_version(), Some(ProtocolVersion::TLSv1_3));
    assert!(shake(&backend_tls(&trusting), "other.example", server(&own, None)).is_err());
    let stranger = require(folder.write("stranger.pem", &authority("s").certificate.pem()));
    assert!(shake(&backend_tls(&stranger), "backend.example", server(&own, None)).is_err());
    let anything = Settings { name_check: NameCheck::None, ..Settings::default() };
    shake(&backend_tls(&anything), "other.example", server(&own, None)).unwrap();
    let shaken = shake(&backend_tls(&anything), "127.0.0.1", server(&own, None)).unwrap();
    assert_eq!(shaken.server_name(), None);
}

#[test]
fn protocols_and_suites_are_those_configured() {
    let own = issue(&authority("root"), "backend.example");
    let mut settings = backend_tls(&Settings::default());
    settings.protocols = Protocols { tls13: false, ..Protocols::default() };
    settings.cipher_suite = Some("ECDHE-ECDSA-AES256-GCM-SHA384".into());
    let shaken = shake(&settings, "backend.example", server(&own, None)).unwrap();
    assert_eq!(shaken.protocol_version(), Some(ProtocolVersion::TLSv1_2));
    let suite = shaken.negotiated_cipher_suite().unwrap().suite();
    assert_eq!(suite, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384);
    settings.cipher_suite = Some("kRSA".into());
    let findings = build(&settings).unwrap_err();
    assert_eq!(findings[0].directive, "SSLProxyCipherSuite");
    assert_eq!(findings[0].number, Some(1898));
}

#[test]
fn a_backend_gets_the_certificate_that_it_asks_for() {
    let folder = Folder::new("machine");
    let (first, second, third) = (authority("first"), authority("second"), authority("third"));
    let (one, two) = (issue(&first, "one"), issue(&second, "two"));
    let pem = one.0.pem() + &two.1.serialize_pem() + &two.0.pem() + &one.1.serialize_pem();
    let file = folder.write("machine.pem", &pem);
    let certificates = MachineCertificates::load(&file, None).unwrap();
    assert_eq!((certificates.len(), certificates.is_empty()), (2, false));
    let mut settings = backend_tls(&Settings::default());
    settings.certificates = Some(Arc::new(certificates));
    let own = issue(&first, "backend.example");
    for (asks, given) in [(&first, Some(&one)), (&second, Some(&two)), (&third, None)] {
        let shaken = shake(&settings, "backend.example", server(&own, Some(asks))).unwrap();
        let presented = shaken.peer_certificates().and_then(<[_]>::first);
        let given: Option<&CertificateDer<'_>> = given.map(|given| given.0.der());
        assert_eq!(presented, given);
    }
    let keyless = folder.write("keyless.pem", &(one.0.pem() + &two.1.serialize_pem()));
    let finding = MachineCertificates::load(&keyless, None).unwrap_err();
    assert_eq!(finding.number, Some(2252));
}

#[test]
fn a_chain_completes_the_certificate() {
    let folder = Folder::new("chain");
    let root = authority("root");
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "middle");
    params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.signed_by(&key, &root.issuer).unwrap();
    let middle = Authority { certificate, issuer: Issuer::new(params, key) };
    let one = issue(&middle, "one");
    let file = folder.write("machine.pem", &(one.0.pem() + &one.1.serialize_pem()));
    let chain = folder.write("chain.pem", &middle.certificate.pem()).file.unwrap();
    let mut settings = backend_tls(&Settings::default());
    let certificates = MachineCertificates::load(&file, Some(&chain)).unwrap();
    settings.certificates = Some(Arc::new(certificates));
    let own = issue(&root, "backend.example");
    let shaken = shake(&settings, "backend.example", server(&own, Some(&root))).unwrap();
    let expected = [one.0.der().clone(), middle.certificate.der().clone()];
    assert_eq!(shaken.peer_certificates().unwrap(), expected);
}
