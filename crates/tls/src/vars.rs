//! The `SSL_*` variables, for `%{…}x`, expressions, CGI and SSI.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#envvars>, `ssl_engine_vars.c`.

use rustls::{CipherSuite, HandshakeKind, ProtocolVersion, ServerConnection};
use rustls_pki_types::CertificateDer;

use crate::verify::Verdict;
use crate::{certs, ciphers, pem};

pub mod certificate;
pub mod name;

pub use name::Style;

/// SSL_VERSION_LIBRARY.
pub const LIBRARY: &str = "rustls/0.23";

/// Binds the identifier of [`session_id`] to this use.
const SESSION_LABEL: &[u8] = b"EXPORTER-session-identifier";

/// What is known of a connection once its handshake is done.
#[derive(Clone, Debug)]
pub struct Connection {
    /// TLS 1.2 or 1.3.
    pub protocol: Option<ProtocolVersion>,
    /// The cipher suite.
    pub suite: Option<CipherSuite>,
    /// A session was resumed.
    pub resumed: bool,
    /// See [`session_id`].
    pub session_id: Vec<u8>,
    /// The name that the client asked for.
    pub server_name: Option<String>,
    /// The server's certificate and its chain.
    pub server_chain: Vec<CertificateDer<'static>>,
    /// What the client presented.
    pub client_chain: Vec<CertificateDer<'static>>,
    /// What became of it.
    pub verdict: Verdict,
    /// SSL_VERSION_INTERFACE: `mod_ssl/` and the version that the server follows.
    pub interface: String,
}

impl Connection {
    /// Takes down what rustls knows. The verdict is the verifier's
    /// ([`crate::verify::ClientVerifier::judge`]), the chain that of the certificate in use.
    pub fn of(
        connection: &ServerConnection,
        server_chain: Vec<CertificateDer<'static>>,
        verdict: Verdict,
        interface: impl Into<String>,
    ) -> Self {
        Self {
            protocol: connection.protocol_version(),
            suite: connection.negotiated_cipher_suite().map(|suite| suite.suite()),
            resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            session_id: session_id(connection),
            server_name: connection.server_name().map(str::to_owned),
            server_chain,
            client_chain: owned(connection.peer_certificates()),
            verdict,
            interface: interface.into(),
        }
    }

    /// The value of one variable, named in full (`SSL_CLIENT_S_DN_CN`); `None` where it has none
    /// in this connection or does not exist. Case counts in the parts of names (`CN`) alone, as in
    /// Apache. `now` is in seconds since 1970.
    pub fn lookup(&self, name: &str, style: Style, now: i64) -> Option<Vec<u8>> {
        if name.eq_ignore_ascii_case("HTTPS") {
            return Some(b"on".to_vec());
        }
        let name = strip(name, "SSL_")?;
        if let Some(rest) = strip(name, "CLIENT_") {
            return self.client(rest, style, now);
        }
        if let Some(rest) = strip(name, "SERVER_") {
            return certificate_variable(&self.server_chain, rest, style, now);
        }
        self.session(&name.to_ascii_uppercase()).map(String::into_bytes)
    }

    /// The variables of `SSLOptions +StdEnvVars`, those that have a value.
    pub fn standard(&self, style: Style, now: i64) -> Vec<(String, Vec<u8>)> {
        let mut variables: Vec<(String, Vec<u8>)> = STANDARD
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.lookup(name, style, now)?)))
            .collect();
        for (prefix, chain, other) in [
            ("SSL_SERVER_", &self.server_chain, "OTHER_dnsSRV"),
            ("SSL_CLIENT_", &self.client_chain, "OTHER_msUPN"),
        ] {
            let Some(parsed) = chain.first().and_then(|der| certs::parse(der).ok()) else {
                continue;
            };
            let parts = name::parts(parsed.subject(), "S_DN_")
                .chain(name::parts(parsed.issuer(), "I_DN_"))
                .chain(certificate::alternative_names(&parsed, other));
            variables.extend(parts.map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        variables
    }

    /// The variables of `SSLOptions +ExportCertData`.
    pub fn exported(&self) -> Vec<(String, Vec<u8>)> {
        let encode = |der: &CertificateDer<'_>| pem::encode("CERTIFICATE", der).into_bytes();
        let mut variables = Vec::new();
        if let Some(der) = self.server_chain.first() {
            variables.push(("SSL_SERVER_CERT".to_owned(), encode(der)));
        }
        if let Some((leaf, chain)) = self.client_chain.split_first() {
            variables.push(("SSL_CLIENT_CERT".to_owned(), encode(leaf)));
            for (index, der) in chain.iter().enumerate() {
                variables.push((format!("SSL_CLIENT_CERT_CHAIN_{index}"), encode(der)));
            }
        }
        variables
    }

    fn client(&self, name: &str, style: Style, now: i64) -> Option<Vec<u8>> {
        if name.eq_ignore_ascii_case("VERIFY") {
            return Some(self.verdict.variable().into_bytes());
        }
        if let Some(index) = strip(name, "CERT_CHAIN_") {
            let index = index.parse::<usize>().ok()?.checked_add(1)?;
            return Some(pem::encode("CERTIFICATE", self.client_chain.get(index)?).into_bytes());
        }
        certificate_variable(&self.client_chain, name, style, now)
    }

    fn session(&self, name: &str) -> Option<String> {
        let suite = self.suite.and_then(ciphers::suite_of);
        Some(match name {
            "PROTOCOL" => match self.protocol? {
                ProtocolVersion::TLSv1_2 => "TLSv1.2".into(),
                ProtocolVersion::TLSv1_3 => "TLSv1.3".into(),
                _ => return None,
            },
            "CIPHER" => suite?.name.into(),
            "CIPHER_EXPORT" => "false".into(),
            "CIPHER_USEKEYSIZE" | "CIPHER_ALGKEYSIZE" => suite?.bits.to_string(),
            "COMPRESS_METHOD" => "NULL".into(),
            "SECURE_RENEG" => "true".into(),
            "SESSION_ID" => hex(&self.session_id),
            "SESSION_RESUMED" if self.resumed => "Resumed".into(),
            "SESSION_RESUMED" => "Initial".into(),
            "TLS_SNI" => self.server_name.clone()?,
            "VERSION_INTERFACE" => self.interface.clone(),
            "VERSION_LIBRARY" | "VERSION_LIBRARY_INTERFACE" => LIBRARY.into(),
            _ => return None,
        })
    }
}

/// An identifier of the session. rustls keeps the protocol's own to itself, so this is exported key
/// material (RFC 5705): the same as long as the connection lasts, never the same for another.
pub fn session_id(connection: &ServerConnection) -> Vec<u8> {
    connection
        .export_keying_material([0; 32], SESSION_LABEL, None)
        .map(Vec::from)
        .unwrap_or_default()
}

/// The variable behind `%{name}c` in a log format, mod_ssl's older way; `None` logs `-`, as Apache
/// does for `errcode` and `errstr` too.
pub fn of_log_format(name: &str) -> Option<&'static str> {
    Some(match name {
        "version" => "SSL_PROTOCOL",
        "cipher" => "SSL_CIPHER",
        "subjectdn" | "clientcert" => "SSL_CLIENT_S_DN",
        "issuerdn" => "SSL_CLIENT_I_DN",
        _ => return None,
    })
}

/// The variables of StdEnvVars apart from the parts of names.
const STANDARD: &[&str] = &[
    "SSL_VERSION_INTERFACE",
    "SSL_VERSION_LIBRARY",
    "SSL_PROTOCOL",
    "SSL_SECURE_RENEG",
    "SSL_COMPRESS_METHOD",
    "SSL_CIPHER",
    "SSL_CIPHER_EXPORT",
    "SSL_CIPHER_USEKEYSIZE",
    "SSL_CIPHER_ALGKEYSIZE",
    "SSL_CLIENT_VERIFY",
    "SSL_CLIENT_M_VERSION",
    "SSL_CLIENT_M_SERIAL",
    "SSL_CLIENT_V_START",
    "SSL_CLIENT_V_END",
    "SSL_CLIENT_V_REMAIN",
    "SSL_CLIENT_S_DN",
    "SSL_CLIENT_I_DN",
    "SSL_CLIENT_A_KEY",
    "SSL_CLIENT_A_SIG",
    "SSL_CLIENT_CERT_RFC4523_CEA",
    "SSL_SERVER_M_VERSION",
    "SSL_SERVER_M_SERIAL",
    "SSL_SERVER_V_START",
    "SSL_SERVER_V_END",
    "SSL_SERVER_S_DN",
    "SSL_SERVER_I_DN",
    "SSL_SERVER_A_KEY",
    "SSL_SERVER_A_SIG",
    "SSL_SESSION_ID",
    "SSL_SESSION_RESUMED",
    "SSL_TLS_SNI",
];

fn certificate_variable(
    chain: &[CertificateDer<'static>],
    name: &str,
    style: Style,
    now: i64,
) -> Option<Vec<u8>> {
    let der = chain.first()?;
    if name.eq_ignore_ascii_case("CERT") {
        return Some(pem::encode("CERTIFICATE", der).into_bytes());
    }
    certificate::variable(&certs::parse(der).ok()?, name, style, now)
}

/// The rest of a name behind a prefix in any case.
fn strip<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn owned(certificates: Option<&[CertificateDer<'_>]>) -> Vec<CertificateDer<'static>> {
    certificates.into_iter().flatten().map(|der| der.clone().into_owned()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
