//! The suites of rustls under OpenSSL's names, in OpenSSL's own order of preference.

use rustls::crypto::aws_lc_rs::cipher_suite as of_rustls;
use rustls::{CipherSuite, SupportedCipherSuite};

/// A cipher suite, with the properties that OpenSSL's classes select by.
#[derive(Debug)]
pub struct Suite {
    /// OpenSSL's name, as in SSL_CIPHER: `ECDHE-RSA-AES128-GCM-SHA256`.
    pub name: &'static str,
    /// The name in the IANA registry.
    pub iana: &'static str,
    /// The suite in rustls.
    pub suite: SupportedCipherSuite,
    /// The key's bits, for SSL_CIPHER_USEKEYSIZE and `@STRENGTH`.
    pub bits: u16,
    /// Authenticated by an ECDSA (or EdDSA) certificate; otherwise by an RSA one. TLS 1.2 only.
    pub ecdsa: bool,
}

impl Suite {
    /// Uses AES in GCM; otherwise ChaCha20-Poly1305.
    pub fn is_aes(&self) -> bool {
        self.name.contains("AES")
    }
}

/// The suite of a connection.
pub fn suite_of(negotiated: CipherSuite) -> Option<&'static Suite> {
    TLS13.iter().chain(TLS12).find(|suite| suite.suite.suite() == negotiated)
}

const fn suite(
    name: &'static str,
    iana: &'static str,
    suite: SupportedCipherSuite,
    bits: u16,
    ecdsa: bool,
) -> Suite {
    Suite { name, iana, suite, bits, ecdsa }
}

/// TLS 1.2, in the order of `openssl ciphers ALL`.
pub static TLS12: &[Suite] = &[
    suite(
        "ECDHE-ECDSA-AES256-GCM-SHA384",
        "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
        of_rustls::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        256,
        true,
    ),
    suite(
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
        of_rustls::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        256,
        false,
    ),
    suite(
        "ECDHE-ECDSA-CHACHA20-POLY1305",
        "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
        of_rustls::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        256,
        true,
    ),
    suite(
        "ECDHE-RSA-CHACHA20-POLY1305",
        "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
        of_rustls::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        256,
        false,
    ),
    suite(
        "ECDHE-ECDSA-AES128-GCM-SHA256",
        "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        of_rustls::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        128,
        true,
    ),
    suite(
        "ECDHE-RSA-AES128-GCM-SHA256",
        "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        of_rustls::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        128,
        false,
    ),
];

/// TLS 1.3, in OpenSSL's default order.
pub static TLS13: &[Suite] = &[
    suite(
        "TLS_AES_256_GCM_SHA384",
        "TLS_AES_256_GCM_SHA384",
        of_rustls::TLS13_AES_256_GCM_SHA384,
        256,
        false,
    ),
    suite(
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_CHACHA20_POLY1305_SHA256",
        of_rustls::TLS13_CHACHA20_POLY1305_SHA256,
        256,
        false,
    ),
    suite(
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_128_GCM_SHA256",
        of_rustls::TLS13_AES_128_GCM_SHA256,
        128,
        false,
    ),
];
