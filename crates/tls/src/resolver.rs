//! Chooses among a host's certificates (RSA and ECDSA side by side) by what the client can verify;
//! each has the OCSP response that is currently stapled to it.

use std::sync::{Arc, PoisonError, RwLock};

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureAlgorithm, SignatureScheme};
use rustls_pki_types::CertificateDer;

/// A host's certificates, in the order of their directives.
#[derive(Debug)]
pub struct HostCertificates {
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    /// As loaded, without a staple.
    plain: Arc<CertifiedKey>,
    /// Replaced as a whole when the staple changes; read once per handshake.
    current: RwLock<Arc<CertifiedKey>>,
}

impl HostCertificates {
    /// The certificates of one host.
    pub fn new(keys: Vec<Arc<CertifiedKey>>) -> Self {
        let entry =
            |key: Arc<CertifiedKey>| Entry { plain: key.clone(), current: RwLock::new(key) };
        let entries = keys.into_iter().map(entry);
        Self { entries: entries.collect() }
    }

    /// The number of certificates.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The chain of the certificate at `index`, leaf first.
    pub fn chain(&self, index: usize) -> &[CertificateDer<'static>] {
        self.entries.get(index).map(|entry| entry.plain.cert.as_slice()).unwrap_or_default()
    }

    /// The first certificate with a key of this kind.
    pub fn of_kind(&self, kind: SignatureAlgorithm) -> Option<usize> {
        self.entries.iter().position(|entry| entry.plain.key.algorithm() == kind)
    }

    /// Staples `response` to the certificate at `index`, or removes its staple.
    pub fn staple(&self, index: usize, response: Option<Vec<u8>>) {
        let Some(entry) = self.entries.get(index) else { return };
        let mut key = CertifiedKey::clone(&entry.current());
        key.ocsp = response;
        *entry.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(key);
    }

    /// The index of the certificate for this client: the first in the order of the client's
    /// signature schemes, as in OpenSSL.
    pub fn choose(&self, hello: &ClientHello<'_>) -> Option<usize> {
        self.choose_by(hello.signature_schemes().iter().copied())
    }

    /// As [`choose`](Self::choose), given the signature schemes.
    pub fn choose_by(&self, mut schemes: impl Iterator<Item = SignatureScheme>) -> Option<usize> {
        // With a single certificate, rustls checks whether it is suitable.
        if self.entries.len() == 1 {
            return Some(0);
        }
        schemes.find_map(|scheme| {
            let can_sign = |entry: &Entry| entry.plain.key.choose_scheme(&[scheme]).is_some();
            self.entries.iter().position(can_sign)
        })
    }
}

impl ResolvesServerCert for HostCertificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // With nothing in common, rustls ends the handshake itself, with the appropriate alert.
        Some(self.entries.get(self.choose(&hello).unwrap_or(0))?.current())
    }
}

impl Entry {
    fn current(&self) -> Arc<CertifiedKey> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
