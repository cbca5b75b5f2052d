//! The TLS building blocks behind mod_ssl's directives: cipher strings, protocols, certificates,
//! keys, client verification, OCSP, session tickets and caches, and the `SSL_*` variables. This
//! crate knows rustls and X.509, but neither the server nor its configuration language: a request
//! that can't be honoured is returned as a [`Finding`] that names its directive, and the module
//! adds file and line.

pub mod certs;
pub mod ciphers;
pub mod client_config;
pub mod finding;
pub mod groups;
pub mod keys;
pub mod local;
pub mod machine_certificates;
pub mod ocsp;
pub mod passphrase;
pub mod pem;
pub mod protocols;
pub mod resolver;
pub mod revocation;
pub mod server_config;
pub mod server_verifier;
pub mod sessions;
pub mod stapling;
pub mod tickets;
pub mod trust;
pub mod vars;
pub mod verify;

mod der;
mod legacy_key;
mod signature;

pub use finding::{Finding, Severity};

use std::sync::Arc;

use rustls::crypto::CryptoProvider;

/// The house's crypto provider: aws-lc-rs, with all of its suites and groups.
pub fn provider() -> CryptoProvider {
    rustls::crypto::aws_lc_rs::default_provider()
}

/// [`provider`], shared.
pub fn shared_provider() -> Arc<CryptoProvider> {
    Arc::new(provider())
}
