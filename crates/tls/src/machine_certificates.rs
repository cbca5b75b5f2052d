//! The certificates that the server presents to backends.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#sslproxymachinecertificatefile>,
//! `ssl_init_proxy_certs`, `ssl_callback_proxy_cert`.

use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::trust::Locations;
use crate::{Finding, certs, keys, pem};

const FILE: &str = "SSLProxyMachineCertificateFile";
const FOLDER: &str = "SSLProxyMachineCertificatePath";
const CHAIN: &str = "SSLProxyMachineCertificateChainFile";

/// Certificates with their keys, of which each backend gets the first that it accepts.
#[derive(Debug)]
pub struct MachineCertificates {
    identities: Vec<Identity>,
}

#[derive(Debug)]
struct Identity {
    key: Arc<CertifiedKey>,
    /// The names of all who issued a certificate of the chain, in DER.
    issuers: Vec<Vec<u8>>,
}

impl MachineCertificates {
    /// Reads the files: each has certificates and unencrypted keys; a chain is completed by the
    /// certificates in `chain_file`.
    ///
    /// # Errors
    /// Files that cannot be read, and a certificate without its key.
    pub fn load(locations: &Locations, chain_file: Option<&[u8]>) -> Result<Self, Finding> {
        let others = match chain_file {
            Some(path) => pem::certificates(&certs::read(CHAIN, path)?),
            None => Vec::new(),
        };
        let mut identities = Vec::new();
        for text in locations.texts(FILE, FOLDER, |kind| kind != Some('r'))? {
            let keys = keys::all_plain(&text);
            for certificate in pem::certificates(&text) {
                identities.push(identity(certificate, &keys, &others)?);
            }
        }
        Ok(Self { identities })
    }

    /// One certificate, which is the first of its text, with its chain and its unencrypted key.
    ///
    /// # Errors
    /// A text without certificate, or without its key.
    pub fn of_texts(certificates: &[u8], key: &[u8]) -> Result<Self, Finding> {
        let all = pem::certificates(certificates);
        let Some(own) = all.first().cloned() else {
            return Err(Finding::error(FILE, "there is no certificate in the file"));
        };
        let identities = vec![identity(own, &keys::all_plain(key), &all)?];
        Ok(Self { identities })
    }

    /// The number of certificates.
    pub fn len(&self) -> usize {
        self.identities.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.identities.is_empty()
    }
}

fn identity(
    certificate: CertificateDer<'static>,
    keys: &[PrivateKeyDer<'static>],
    others: &[CertificateDer<'static>],
) -> Result<Identity, Finding> {
    let parsed = certs::parse(&certificate).map_err(|reason| Finding::error(FILE, reason))?;
    let provider = crate::provider().key_provider;
    let signing = keys.iter().filter_map(|key| provider.load_private_key(key.clone_key()).ok());
    let Some(signing) = signing.into_iter().find(|key| certs::belongs(&**key, &parsed)) else {
        let message =
            "incomplete client cert configured for SSL proxy (missing or encrypted private key?)";
        return Err(Finding::error(FILE, message).numbered(2252));
    };
    let mut chain = vec![certificate.clone()];
    certs::complete(&mut chain, others);
    let issuer =
        |one: &CertificateDer<'_>| Some(certs::parse(one).ok()?.issuer().as_raw().to_vec());
    let issuers = chain.iter().filter_map(issuer).collect();
    Ok(Identity { key: Arc::new(CertifiedKey::new(chain, signing)), issuers })
}

impl ResolvesClientCert for MachineCertificates {
    /// The first certificate by an authority that the backend names, in the backend's order; the
    /// first of all if it names none.
    fn resolve(
        &self,
        root_hint_subjects: &[&[u8]],
        _sigschemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        if root_hint_subjects.is_empty() {
            return self.identities.first().map(|identity| identity.key.clone());
        }
        root_hint_subjects.iter().find_map(|name| {
            let is_by = |identity: &&Identity| identity.issuers.iter().any(|one| one == name);
            self.identities.iter().find(is_by).map(|identity| identity.key.clone())
        })
    }

    fn has_certs(&self) -> bool {
        !self.identities.is_empty()
    }
}
