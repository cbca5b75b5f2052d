//! mod_authz_host: authorisation by the client's address or name.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_authz_host.html>

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use conf::values::{Subnet, SubnetError};
use server::directive::{Fault, Target};
use server::errorlog::Verbatim;
use server::hooks::Hooks;
use server::hostname;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use super::expression::Expression;
use super::line::words;
use super::mod_authz_core::builtin::granted_if;
use super::mod_authz_user::required;
use super::provider::{AUTHZ, Authz, AuthzProvider, Requirement};

/// `mod_authz_host.c`
pub struct AuthzHost;

impl Module for AuthzHost {
    const NAME: &'static str = "authz_host_module";
    const FILE: &'static str = "mod_authz_host.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, AuthzHost>) {
        hooks.provider(AUTHZ, "ip", AuthzProvider::new(ip));
        hooks.provider(AUTHZ, "host", AuthzProvider::new(host));
        hooks.provider(AUTHZ, "forward-dns", AuthzProvider::new(forward_dns));
        hooks.provider(AUTHZ, "local", AuthzProvider::new(|_, _| Ok(Arc::new(Local))));
    }
}

/// `Require ip`
struct Ip(Box<[Subnet]>);

fn ip(_: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    let mut networks = Vec::new();
    for word in words(arguments) {
        let shown = bstr::BStr::new(&word);
        networks.push(network(&word).map_err(|reason| match reason {
            None => format!("ip address '{shown}' appears to be invalid"),
            Some(reason) => format!("ip address '{shown}' appears to be invalid: {reason}"),
        })?);
    }
    if networks.is_empty() {
        return Err("'require ip' requires an argument".into());
    }
    Ok(Arc::new(Ip(networks.into())))
}

/// Parses an address or network. `Err(None)` means that the text does not resemble one.
///
/// # Errors
/// APR's message (`APR_EBADIP`, `APR_EBADMASK`), if it has one.
pub fn network(word: &[u8]) -> Result<Subnet, Option<&'static str>> {
    // `looks_like_ip` of APR.
    let looks_like_one = word.split(|byte| *byte == b'/').next().is_some_and(|address| {
        let of_v4 = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
        !address.is_empty() && (address.contains(&b':') || address.iter().all(of_v4))
    });
    Subnet::parse(word).map_err(|why| match why {
        _ if !looks_like_one => None,
        SubnetError::Address => Some("The specified IP address is invalid."),
        SubnetError::Mask => Some("The specified network mask is invalid."),
    })
}

impl Requirement for Ip {
    fn check(&self, request: &mut Request) -> Authz {
        let address = request.useragent_addr.ip();
        granted_if(self.0.iter().any(|network| network.contains(address)))
    }
}

/// `Require local`
struct Local;

impl Requirement for Local {
    fn check(&self, request: &mut Request) -> Authz {
        let address = request.useragent_addr.ip().to_canonical();
        let own = request.connection.local.ip().to_canonical();
        granted_if(address.is_loopback() || address == own)
    }
}

/// `Require host`
struct Host {
    names: Expression,
    /// The line as written, for the log.
    line: Vec<u8>,
}

fn host(target: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(Host { names: required(target, arguments)?, line: arguments.to_vec() }))
}

impl Requirement for Host {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let Some(name) = hostname::verified(request).await.map(<[u8]>::to_vec) else {
                self.refused(request, Level::Error, "unable to get the remote host name");
                return Authz::Denied;
            };
            match self.names.value(request) {
                Ok(names) if words(&names).any(|domain| is_in_domain(&name, &domain)) => {
                    return Authz::Granted;
                }
                Ok(_) => self.refused(request, Level::Debug, "hostname mismatch"),
                Err(why) => {
                    let message = format_args!(
                        "authz_host authorize: require host: Can't evaluate require expression: \
                         {why}"
                    );
                    request.log::<AuthzHost>(Level::Error, 2593, message);
                }
            }
            Authz::Denied
        })
    }
}

impl Host {
    fn refused(&self, request: &Request, level: Level, reason: &str) {
        let (line, uri) = (Verbatim::new(&self.line), Verbatim::new(&request.resource.uri));
        let message = format_args!("access check of '{line}' to {uri} failed, reason: {reason}");
        request.log::<AuthzHost>(level, 1753, message);
    }
}

/// Whether `host` equals `domain` or lies in it (`in_domain`).
pub fn is_in_domain(host: &[u8], domain: &[u8]) -> bool {
    let Some(before) = host.len().checked_sub(domain.len()) else { return false };
    let (rest, end) = host.split_at(before);
    if !end.eq_ignore_ascii_case(domain) {
        return false;
    }
    rest.is_empty() || domain.first() == Some(&b'.') || rest.last() == Some(&b'.')
}

/// `Require forward-dns`
struct ForwardDns(Expression);

fn forward_dns(target: &mut Target<'_>, arguments: &[u8]) -> Result<Arc<dyn Requirement>, Fault> {
    Ok(Arc::new(ForwardDns(required(target, arguments)?)))
}

impl Requirement for ForwardDns {
    fn waits(&self) -> bool {
        true
    }

    fn wait<'r>(&'r self, request: &'r mut Request) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            let names = match self.0.value(request) {
                Ok(names) => names.into_owned(),
                Err(why) => {
                    let message = format_args!(
                        "authz_host authorize: require forward-dns: Can't evaluate require \
                         expression: {why}"
                    );
                    request.log::<AuthzHost>(Level::Error, 3354, message);
                    return Authz::Denied;
                }
            };
            let address = request.useragent_addr.ip().to_canonical();
            for name in words(&names) {
                let found = hostname::has_address(request, name.clone(), address).await;
                let name = Verbatim::new(&name);
                let answer = if found { "yes" } else { "no" };
                let message = format_args!("access check for {address} as '{name}': {answer}");
                request.log::<AuthzHost>(Level::Debug, 3355, message);
                if found {
                    return Authz::Granted;
                }
            }
            Authz::Denied
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{is_in_domain, network};

    #[test]
    fn domains_match_whole_labels() {
        assert!(is_in_domain(b"www.Example.org", b"example.org"));
        assert!(is_in_domain(b"example.org", b"example.org"));
        assert!(is_in_domain(b"www.example.org", b".example.org"));
        assert!(!is_in_domain(b"fooexample.org", b"example.org"));
        assert!(!is_in_domain(b"example.org", b".example.org"));
        assert!(!is_in_domain(b"org", b"example.org"));
    }

    #[test]
    fn networks_are_refused_in_aprs_words() {
        assert!(network(b"10.1").is_ok() && network(b"2001:db8::/32").is_ok());
        assert_eq!(network(b"x"), Err(None));
        assert_eq!(network(b"10.0.0.x/8"), Err(None));
        assert_eq!(network(b"#"), Err(None));
        assert_eq!(network(b"beef"), Err(None));
        assert_eq!(network(b"beef:1"), Err(Some("The specified IP address is invalid.")));
        assert_eq!(network(b"10.0.0.0/40"), Err(Some("The specified network mask is invalid.")));
        assert_eq!(network(b"10.1/16"), Err(Some("The specified IP address is invalid.")));
        assert_eq!(network(b"300.1.1.1"), Err(Some("The specified IP address is invalid.")));
    }
}
