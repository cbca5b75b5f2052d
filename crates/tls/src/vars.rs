//! The `SSL_*` variables, for `%{…}x`, expressions, CGI and SSI.
//! <https://httpd.apache.org/docs/2.4/mod/mod_ssl.html#envvars>, `ssl_engine_vars.c`.

use std::cell::OnceCell;

use aws_lc_rs::rand;
use rustls::CipherSuite;
use rustls_pki_types::CertificateDer;

use crate::{certs, ciphers, pem};

pub mod certificate;
pub mod name;

pub use name::Style;

/// SSL_VERSION_LIBRARY.
pub const LIBRARY: &str = "rustls/0.23";

/// The facts about a connection after its handshake.
#[derive(Clone, Copy, Debug)]
pub struct Connection<'a> {
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'a str,
    /// The cipher suite.
    pub suite: CipherSuite,
    /// A session was resumed.
    pub resumed: bool,
    /// An identifier of the session, generated on first use: rustls does not expose the protocol's.
    pub session_id: &'a OnceCell<Box<[u8; 32]>>,
    /// The server name that the client requested.
    pub server_name: Option<&'a str>,
    /// The server's certificate and its chain.
    pub server_chain: &'a [CertificateDer<'static>],
    /// The chain that the client presented.
    pub client_chain: &'a [CertificateDer<'static>],
    /// Why that is not trusted; `None` if it is, or if there is none.
    pub failure: Option<&'a str>,
    /// SSL_VERSION_INTERFACE: `mod_ssl/` and the version that the server follows.
    pub interface: &'a str,
}

impl Connection<'_> {
    /// The value of one variable, by its full name (`SSL_CLIENT_S_DN_CN`); `None` if it has no
    /// value in this connection or does not exist. As in Apache, only the parts of names (`CN`) are
    /// case-sensitive. `now` is in seconds since 1970.
    pub fn lookup(&self, name: &str, style: Style, now: i64) -> Option<Vec<u8>> {
        if name.eq_ignore_ascii_case("HTTPS") {
            return Some(b"on".to_vec());
        }
        let name = strip(name, "SSL_")?;
        if let Some(rest) = strip(name, "CLIENT_") {
            return self.client(rest, style, now);
        }
        if let Some(rest) = strip(name, "SERVER_") {
            // Apache asserts a client's certificate alone.
            if rest.eq_ignore_ascii_case("CERT_RFC4523_CEA") {
                return None;
            }
            return certificate_variable(self.server_chain, rest, style, now);
        }
        self.session(&name.to_ascii_uppercase()).map(String::into_bytes)
    }

    /// The variables of `SSLOptions +StdEnvVars` that have a value.
    pub fn standard(&self, style: Style, now: i64) -> Vec<(String, Vec<u8>)> {
        let mut variables: Vec<(String, Vec<u8>)> = STANDARD
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.lookup(name, style, now)?)))
            .collect();
        for (prefix, chain, other) in [
            ("SSL_SERVER_", self.server_chain, "OTHER_dnsSRV"),
            ("SSL_CLIENT_", self.client_chain, "OTHER_msUPN"),
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
        let client = self.client_chain.first().map(encode).unwrap_or_default();
        variables.push(("SSL_CLIENT_CERT".to_owned(), client));
        if let Some((_, chain)) = self.client_chain.split_first() {
            for (index, der) in chain.iter().enumerate() {
                variables.push((format!("SSL_CLIENT_CERT_CHAIN_{index}"), encode(der)));
            }
        }
        variables
    }

    fn client(&self, name: &str, style: Style, now: i64) -> Option<Vec<u8>> {
        if name.eq_ignore_ascii_case("VERIFY") {
            return Some(self.verified().into_bytes());
        }
        if let Some(index) = strip(name, "CERT_CHAIN_") {
            let index = index.parse::<usize>().ok()?.checked_add(1)?;
            return Some(pem::encode("CERTIFICATE", self.client_chain.get(index)?).into_bytes());
        }
        certificate_variable(self.client_chain, name, style, now)
    }

    /// `SSL_CLIENT_VERIFY`
    fn verified(&self) -> String {
        match self.failure {
            _ if self.client_chain.is_empty() => "NONE".into(),
            Some(reason) => format!("FAILED:{reason}"),
            None => "SUCCESS".into(),
        }
    }

    fn session(&self, name: &str) -> Option<String> {
        let suite = ciphers::suite_of(self.suite);
        Some(match name {
            "PROTOCOL" => self.protocol.into(),
            "CIPHER" => suite?.name.into(),
            "CIPHER_EXPORT" => "false".into(),
            "CIPHER_USEKEYSIZE" | "CIPHER_ALGKEYSIZE" => suite?.bits.to_string(),
            "COMPRESS_METHOD" => "NULL".into(),
            // TLS 1.3 has no renegotiation.
            "SECURE_RENEG" => (self.protocol == "TLSv1.2").to_string(),
            "SESSION_ID" => hex(&self.session_id.get_or_init(fresh_id)[..]),
            "SESSION_RESUMED" if self.resumed => "Resumed".into(),
            "SESSION_RESUMED" => "Initial".into(),
            "TLS_SNI" => self.server_name?.into(),
            "VERSION_INTERFACE" => self.interface.into(),
            "VERSION_LIBRARY" | "VERSION_LIBRARY_INTERFACE" => LIBRARY.into(),
            _ => return None,
        })
    }
}

/// A random identifier.
fn fresh_id() -> Box<[u8; 32]> {
    let mut id = Box::new([0; 32]);
    // Random bytes were available for the handshake.
    let _ = rand::fill(&mut id[..]);
    id
}

/// The variable behind `%{name}c` in a log format, mod_ssl's older syntax; `None` logs `-`, which
/// Apache also does for `errcode` and `errstr`.
pub fn of_log_format(name: &str) -> Option<&'static str> {
    Some(match name {
        "version" => "SSL_PROTOCOL",
        "cipher" => "SSL_CIPHER",
        "subjectdn" | "clientcert" => "SSL_CLIENT_S_DN",
        "issuerdn" => "SSL_CLIENT_I_DN",
        _ => return None,
    })
}

/// The variables of StdEnvVars except the parts of names.
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

/// The rest of a name after a prefix, which is matched case-insensitively.
fn strip<'a>(name: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = name.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
