//! TLS: who has to show a certificate, and what a host takes.

use super::Phase::{Access, Fixup, Login, Protocol};
use super::{DIRECTORY, HOST, Row, SECTION, row};

/// They stand in sites of TLS alone.
pub const ROWS: &[Row] = &[
    row("ssl", "SSLRequireSSL", Access, DIRECTORY, 6, |_| String::new()),
    row("ssl", "SSLOptions", Fixup, HOST | DIRECTORY, 8, |choice| {
        choice.word(&[
            "+StdEnvVars",
            "+StdEnvVars",
            "+StrictRequire",
            "StdEnvVars StrictRequire",
            "-StdEnvVars",
            "+LegacyDNStringFormat",
        ])
    }),
    row("ssl", "SSLRequire", Access, DIRECTORY, 4, |choice| {
        choice.word(&[
            "%{HTTPS} eq \"on\"",
            "%{SSL_PROTOCOL} eq \"TLSv1.3\"",
            "%{SSL_CLIENT_VERIFY} eq \"SUCCESS\" or %{REQUEST_METHOD} eq \"GET\"",
            "%{REMOTE_ADDR} =~ m/^127/",
        ])
    }),
    row("ssl", "SSLUserName", Login, HOST | SECTION, 3, |choice| {
        choice.word(&["SSL_CLIENT_S_DN_CN", "SSL_TLS_SNI", "SSL_PROTOCOL"])
    }),
    row("ssl", "SSLProtocol", Protocol, HOST, 3, |choice| {
        choice.word(&["all", "TLSv1.2", "-all +TLSv1.3", "all -TLSv1.3", "TLSv1.2 TLSv1.3"])
    }),
    row("ssl", "SSLHonorCipherOrder", Protocol, HOST, 2, |choice| choice.word(&["on", "off"])),
    row("ssl", "SSLCipherSuite", Protocol, HOST, 2, |choice| {
        choice.word(&[
            "HIGH:!aNULL:!MD5",
            "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384",
            "TLSv1.3 TLS_AES_256_GCM_SHA384",
        ])
    }),
    row("ssl", "SSLOpenSSLConfCmd", Protocol, HOST, 4, |choice| {
        choice.word(&["Curves X25519:P-256", "Groups P-256:P-384", "ECDHParameters prime256v1"])
    }),
    row("ssl", "SSLSessionTickets", Protocol, HOST, 1, |choice| choice.word(&["on", "off"])),
];
