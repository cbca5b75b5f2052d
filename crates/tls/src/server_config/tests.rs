use super::*;
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, ServerConnection, SignatureScheme,
};
use rustls_pki_types::{ServerName, UnixTime};
use std::path::PathBuf;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> Vec<u8> {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A certificate and its key in one file.
fn combined(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn host(folder: &Folder) -> HostTls {
    let (rsa, rsa_key) = combined(&PKCS_RSA_SHA256);
    let (ec, ec_key) = combined(&PKCS_ECDSA_P256_SHA256);
    HostTls {
        id: "localhost:443".into(),
        server_name: "localhost".into(),
        certificates: vec![
            Pair {
                certificate: folder.write("rsa.pem", &rsa),
                key: Some(folder.write("rsa.key", &rsa_key)),
            },
            Pair { certificate: folder.write("ec.pem", &(ec + &ec_key)), key: None },
        ],
        alpn: vec![b"http/1.1".to_vec()],
        ..HostTls::default()
    }
}

#[derive(Debug)]
struct Trusting(WebPkiSupportedAlgorithms, Vec<SignatureScheme>);

impl ServerCertVerifier for Trusting {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, cert, dss, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.1.clone()
    }
}

fn client(schemes: &[SignatureScheme]) -> ClientConnection {
    let provider = crate::shared_provider();
    let verifier = Trusting(provider.signature_verification_algorithms, schemes.to_vec());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap()
}

fn shake(client: &mut ClientConnection, server: &mut ServerConnection) -> Result<(), Error> {
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
    Ok(())
}

#[test]
fn the_certificate_follows_the_clients_schemes() {
    let folder = Folder::new("schemes");
    let host = host(&folder);
    let built = build(&host, &mut Passphrases::none()).unwrap();
    for (scheme, index) in
        [(SignatureScheme::RSA_PSS_SHA256, 0), (SignatureScheme::ECDSA_NISTP256_SHA256, 1)]
    {
        let mut client = client(&[scheme]);
        let mut server = ServerConnection::new(built.config.clone()).unwrap();
        shake(&mut client, &mut server).unwrap();
        assert_eq!(client.alpn_protocol(), Some(&b"http/1.1"[..]));
        assert_eq!(client.peer_certificates().unwrap(), built.certificates.chain(index));
    }
}

#[test]
fn server_order_decides_when_it_is_honoured() {
    let folder = Folder::new("order");
    let mut host = host(&folder);
    host.protocols.tls13 = false;
    host.cipher_suite = Some("ECDHE-RSA-CHACHA20-POLY1305:HIGH".into());
    host.honor_cipher_order = true;
    let built = build(&host, &mut Passphrases::none()).unwrap();
    let mut client = client(&[SignatureScheme::RSA_PSS_SHA256]);
    let mut server = ServerConnection::new(built.config).unwrap();
    shake(&mut client, &mut server).unwrap();
    let suite = ciphers::suite_of(server.negotiated_cipher_suite().unwrap().suite()).unwrap();
    assert_eq!(suite.name, "ECDHE-RSA-CHACHA20-POLY1305");
}

#[test]
fn errors_name_their_directive() {
    let folder = Folder::new("errors");
    let mut host = host(&folder);
    host.certificates[0].key = Some(folder.write("other.key", &combined(&PKCS_RSA_SHA256).1));
    host.certificates[1].certificate = folder.write("empty.pem", "");
    host.cipher_suite = Some("kRSA".into());
    host.chain_file = Some(b"/nonexistent/chain.pem".to_vec());
    let findings = build(&host, &mut Passphrases::none()).unwrap_err();
    let found: Vec<_> = findings.iter().map(|f| (f.directive, f.number)).collect();
    assert_eq!(
        found,
        [
            ("SSLCipherSuite", Some(1898)),
            ("SSLCertificateChainFile", None),
            ("SSLCertificateKeyFile", Some(2565)),
            ("SSLCertificateFile", Some(2561)),
        ]
    );
}

#[test]
fn a_host_without_certificates_is_an_error() {
    let findings = build(&HostTls::default(), &mut Passphrases::none()).unwrap_err();
    assert_eq!(findings[0].number, Some(2572));
}
