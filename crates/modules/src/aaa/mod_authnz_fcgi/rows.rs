//! The directives of mod_authnz_fcgi.

use std::sync::Arc;

use conf::Arg;
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};

use super::{Authenticator, AuthnzFcgi, CheckAuthn, Provider, parse_requirement};
use crate::aaa::expression::Expression;
use crate::aaa::provider::{AUTHN, AUTHZ, AuthnProvider, AuthzProvider};

/// The group of the [`Provider`]s that authenticate, for AuthnzFcgiCheckAuthnProvider.
pub(super) const OWN: &str = "authnz_fcgi";

pub(super) const ROWS: &[Row<AuthnzFcgi>] = &[
    Row::<AuthnzFcgi>::new(
        "AuthnzFcgiCheckAuthnProvider",
        Takes::Some { least: 0, most: usize::MAX, set: check_authn },
        "provider-name|None option ...",
        "Sets the FastCGI authorizer that authenticates users in the check_authn phase: \
         Authoritative, DefaultUser, RequireBasicAuth, UserExpr.",
    )
    .standing(Places::ALL, Override::FILE_INFO)
    .default("none"),
    Row::<AuthnzFcgi>::new(
        "AuthnzFcgiDefineProvider",
        Takes::Some { least: 0, most: usize::MAX, set: define },
        "type provider-name backend-address",
        "Defines a FastCGI authorizer as a provider: authn, authz or authnz.",
    )
    .standing(Places::SERVER, Override::NONE),
];

type Here<'a, 't> = Cx<'a, 't, AuthnzFcgi>;

/// Source: `fcgi_check_authn_provider`
fn check_authn(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    const NAME: &str = "AuthnzFcgiCheckAuthnProvider";
    let Some((name, mut rest)) = args.split_first() else {
        return Err(Fault::new(format!("{NAME}: No provider given")));
    };
    if name.is("None") && !rest.is_empty() {
        return Err(Fault::new("Options aren't supported with \"None\""));
    }
    let earlier = cx.dir().check.get().cloned();
    let mut check = earlier.unwrap_or(CheckAuthn {
        name: String::new(),
        authoritative: true,
        default_user: None,
        requires_basic: false,
        user: None,
    });
    check.name = name.text.to_string();
    while let Some((option, behind)) = rest.split_first() {
        let Some((value, behind)) = behind.split_first() else {
            return Err(Fault::new(format!("{NAME}: {}needs an argument", option.text)).at(option));
        };
        rest = behind;
        let flag = || match (value.is("On"), value.is("Off")) {
            (true, _) => Ok(true),
            (_, true) => Ok(false),
            _ => {
                let (value, option) = (&value.text, &option.text);
                Err(Fault::new(format!("{NAME}: Bad argument '{value}' to option '{option}'")))
            }
        };
        if option.is("Authoritative") {
            check.authoritative = flag()?;
        } else if option.is("DefaultUser") {
            check.default_user = Some(value.text.to_vec());
        } else if option.is("RequireBasicAuth") {
            check.requires_basic = flag()?;
        } else if option.is("UserExpr") {
            let user = Expression::parse(cx.target, &value.text).map_err(|why| {
                Fault::new(format!("{NAME}: Error parsing '{}': '{why}'", value.text)).at(value)
            })?;
            check.user = Some(user);
        } else {
            let fault = format!("{NAME}: Unexpected option '{}'", option.text);
            return Err(Fault::new(fault).at(option));
        }
    }
    cx.dir().check.set(check);
    Ok(())
}

/// Source: `fcgi_define_provider`
fn define(cx: &mut Here<'_, '_>, args: &[Arg]) -> Set {
    const NAME: &str = "AuthnzFcgiDefineProvider";
    let missing = |what: &str| Fault::new(format!("{NAME}: No {what} given"));
    let kind = args.first().ok_or_else(|| missing("type"))?;
    let (is_authn, is_authz) = match kind.text.to_ascii_lowercase().as_slice() {
        b"authn" => (true, false),
        b"authz" => (false, true),
        b"authnz" => (true, true),
        _ => {
            let fault = format!("{NAME}: Invalid provider type {}", kind.text);
            return Err(Fault::new(fault).at(kind));
        }
    };
    let name = args.get(1).ok_or_else(|| missing("provider name"))?.text.to_string();
    let address = args.get(2).ok_or_else(|| missing("backend-address"))?;
    let backend = address.text.to_string();
    let invalid = |what: &str| {
        Fault::new(format!("{NAME}: backend-address '{backend}' has invalid {what}")).at(address)
    };
    let (host, port) = parts(&backend).ok_or_else(|| invalid("form"))?;
    let port = u16::try_from(port).map_err(|_| invalid("port"))?;
    let is_known = std::net::ToSocketAddrs::to_socket_addrs(&(host, port))
        .is_ok_and(|mut found| found.next().is_some());
    if !is_known {
        let fault = format!("{NAME}: Error resolving backend address");
        return Err(Fault::new(fault).at(address));
    }
    if let Some(more) = args.get(3) {
        return Err(Fault::new(format!("{NAME}: Unexpected parameter {}", more.text)).at(more));
    }
    let host = host.to_owned();
    let provider = Provider { name: name.clone(), backend, host, port, is_authn, is_authz };
    let provider = Arc::new(provider);
    let defined = &mut cx.build().defined;
    if is_authn {
        let authenticator: AuthnProvider = Arc::new(Authenticator(provider.clone()));
        defined.define(AUTHN, name.clone(), authenticator);
        defined.define(OWN, name.clone(), provider.clone());
    }
    if is_authz {
        let authorizer =
            AuthzProvider::new(move |_, arguments| parse_requirement(&provider, arguments));
        defined.define(AUTHZ, name, authorizer);
    }
    Ok(())
}

/// Host and port of `fcgi://HOST:PORT/`, whose slash may be missing.
fn parts(backend: &str) -> Option<(&str, u32)> {
    let rest = backend.strip_prefix("fcgi://")?;
    let (host, port) = rest.strip_suffix('/').unwrap_or(rest).rsplit_once(':')?;
    let is_number = (1..=5).contains(&port.len()) && port.bytes().all(|byte| byte.is_ascii_digit());
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let port = port.parse().ok().filter(|_| is_number)?;
    Some((bare.unwrap_or(host), port))
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        assert_eq!(parts("fcgi://localhost:9000/"), Some(("localhost", 9000)));
        assert_eq!(parts("fcgi://[::1]:1"), Some(("::1", 1)));
        assert_eq!(parts("fcgi://a:99999"), Some(("a", 99999)));
        for text in ["fcgi://a", "fcgi://a:", "fcgi://a:1/b", "http://a:1", "fcgi://a:123456"] {
            assert_eq!(parts(text), None, "{text}");
        }
    }
}
