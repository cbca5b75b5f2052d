//! SSLVHostSNIPolicy and SSLStrictSNIVHostCheck: the hosts that requests on a connection may name,
//! besides the host of its handshake (`ssl_hook_ReadReq`, CVE-2025-23048).

use server::connection_info::{ConnectionInfo, TlsFacts};
use server::errorlog::Verbatim;
use server::host::{Host, Server as Served};
use server::request::Request;
use tls::sessions::context;
use wire::{HeadError, LogLevel};

use super::config::Server;
use super::{host_by_id, of_host};

/// The error page's text for a client without SNI, if it is required.
const NO_NAME_NOTES: &str = "Reason: The client software did not provide a hostname using \
    Server Name Indication (SNI), which is required to access this server.<br />\n";

/// The message about a client whose handshake was with a host that asks for no such certificate.
pub const UNVERIFIED: &str = "cannot perform post-handshake authentication";

/// The value of SSLVHostSNIPolicy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SniPolicy {
    /// The same host only.
    Strict,
    /// Hosts with the same certificates, protocols, ciphers and rules for clients.
    #[default]
    Secure,
    /// Hosts with the same rules for clients.
    AuthOnly,
    /// Any.
    Insecure,
}

impl SniPolicy {
    /// Parses the directive's argument.
    pub fn parse(word: &str) -> Option<SniPolicy> {
        let is = |name: &str| word.eq_ignore_ascii_case(name);
        Some(match () {
            () if is("strict") => SniPolicy::Strict,
            () if is("secure") => SniPolicy::Secure,
            () if is("authonly") => SniPolicy::AuthOnly,
            () if is("insecure") => SniPolicy::Insecure,
            () => return None,
        })
    }
}

/// A host's settings in hashes, for comparing hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Certificates, keys, protocols, ciphers.
    connection: [u8; 32],
    /// Whether TLS is on, and which clients are trusted by the host itself.
    clients: [u8; 32],
    /// What its sections require beyond that, which handshakes ask for as well.
    sections: [u8; 32],
}

impl Rules {
    /// The rules of a host.
    pub fn of(server: &Server) -> Rules {
        // What is not set and what is set to the default are the same, except where Apache does not
        // fill in the default; SSLCertificateChainFile does not count.
        let connection = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?}",
            server.certificates,
            server.keys,
            server.protocols.get().copied().unwrap_or_default(),
            server.cipher_suite,
            server.cipher_suite_tls13,
            server.openssl_commands,
        );
        let clients = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
            server.is_on(),
            server.verify.get().copied().unwrap_or_default(),
            server.verify_depth.or(1),
            server.authorities(),
            server.requested(),
            server.revocation_lists(),
            server.revocation_check.get().copied().unwrap_or_default(),
            server.ocsp.enable.get().copied().unwrap_or_default(),
            server.ocsp.default_responder.get(),
            server.ocsp.override_responder.get(),
        );
        let sections = format!("{:?} {:?}", server.handshake_mode(), server.handshake_depth());
        Rules {
            connection: context(&[connection.as_bytes()]),
            clients: context(&[clients.as_bytes()]),
            sections: context(&[sections.as_bytes()]),
        }
    }

    fn allow(&self, other: &Rules, policy: SniPolicy) -> bool {
        match policy {
            SniPolicy::Strict => false,
            SniPolicy::Secure => {
                (self.connection, self.clients) == (other.connection, other.clients)
            }
            SniPolicy::AuthOnly => self.clients == other.clients,
            SniPolicy::Insecure => true,
        }
    }
}

/// Whether a request on this connection may name `host`.
pub fn admit(
    client: &ConnectionInfo,
    server: &Served,
    tls: &TlsFacts,
    host: &Host,
) -> Result<(), Box<HeadError>> {
    // As in Apache, the host that the client named, even if it has no TLS of its own.
    let name = tls.server_name.as_deref();
    let named = name.and_then(|name| server.vhosts.named(client.local, name.as_bytes()));
    let shaken = named.map(|host| &**host).or_else(|| host_by_id(server, tls.host));
    let (Some(asked), Some(shaken_own)) =
        (of_host(server, host), shaken.and_then(|shaken| of_host(server, shaken)))
    else {
        return Ok(());
    };
    let is_strict = asked.strict_sni.or(false) || shaken_own.strict_sni.or(false);
    if tls.server_name.is_none() && is_strict && server.vhosts.is_name_based(client.local) {
        let message = "No hostname was provided via SNI for a name based virtual host";
        return Err(refusal(403, 2033, message.to_owned(), NO_NAME_NOTES));
    }
    let alike = match (&asked.rules.0, &shaken_own.rules.0) {
        (Some(asked), Some(own)) => own.allow(asked, shaken_own.sni_policy.0),
        _ => false,
    };
    let is_same = shaken.is_some_and(|shaken| shaken.id == host.id);
    if !is_same && alike && verifies_otherwise(asked, shaken_own) {
        return Err(refusal(403, 10158, UNVERIFIED.to_owned(), ""));
    }
    if is_same || alike {
        return Ok(());
    }
    let told = match &tls.server_name {
        Some(name) => format!("Hostname {name} provided via SNI"),
        None => "Hostname (default host as no SNI was provided)".to_owned(),
    };
    let asked = Verbatim::new(host.name());
    let message =
        format!("{told} and hostname {asked} provided via HTTP have no compatible SSL setup");
    Err(refusal(421, 2032, message, ""))
}

/// Whether the host that is asked verifies clients, by rules other than those of the handshake.
/// Apache asks the client for a certificate then, as far as client and protocol can still do that.
fn verifies_otherwise(asked: &Server, shaken: &Server) -> bool {
    let clients = |own: &Server| own.rules.0.as_ref().map(|rules| rules.clients);
    asked.verifies_clients() && clients(asked) != clients(shaken)
}

/// Whether the request's host verifies clients by rules other than those of the handshake.
pub fn is_unverified(tls: &TlsFacts, request: &Request) -> bool {
    let server = &request.engine.server;
    let shaken = host_by_id(server, tls.host).and_then(|shaken| of_host(server, shaken));
    match (of_host(server, &request.host), shaken) {
        (Some(asked), Some(shaken)) => verifies_otherwise(asked, shaken),
        _ => true,
    }
}

/// Whether the client's certificate was verified by rules equal to those of the request's host.
pub fn is_judged_for(tls: &TlsFacts, request: &Request) -> bool {
    let server = &request.engine.server;
    let shaken = host_by_id(server, tls.host).and_then(|shaken| of_host(server, shaken));
    let rules = |own: Option<&Server>| own.and_then(|own| own.rules.0.clone());
    match (rules(of_host(server, &request.host)), rules(shaken)) {
        (Some(asked), Some(shaken)) => {
            (asked.clients, asked.sections) == (shaken.clients, shaken.sections)
        }
        _ => tls.host == request.host.id,
    }
}

fn refusal(status: u16, number: u32, message: String, notes: &'static str) -> Box<HeadError> {
    Box::new(HeadError {
        status,
        log_number: number,
        level: LogLevel::Error,
        message: message.into_bytes(),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hosts_have_in_common_decides() {
        let plain = Rules::of(&Server::default());
        let mut other = Server::default();
        other.certificates.push(b"/other.pem".to_vec());
        let certified = Rules::of(&other);
        other.verify.set(tls::verify::Mode::Require);
        let verifying = Rules::of(&other);
        use SniPolicy::{AuthOnly, Insecure, Secure, Strict};
        other.verify = Default::default();
        other.certificates.clear();
        other.section_modes.push(tls::verify::Mode::Require);
        let in_sections = Rules::of(&other);
        assert_ne!(plain, in_sections);
        for (to, strict, secure, auth, insecure) in [
            (&in_sections, false, true, true, true),
            (&plain, false, true, true, true),
            (&certified, false, false, true, true),
            (&verifying, false, false, false, true),
        ] {
            let allows = [Strict, Secure, AuthOnly, Insecure].map(|policy| plain.allow(to, policy));
            assert_eq!(allows, [strict, secure, auth, insecure]);
        }
    }
}
