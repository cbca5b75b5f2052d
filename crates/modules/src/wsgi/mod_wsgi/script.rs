//! Scripts, and the groups that run them.

use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;

use conf::Span;
use server::request::Request;

/// How a name is chosen for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Selector {
    /// This name; empty for `%{GLOBAL}`.
    Name(Vec<u8>),
    /// `%{RESOURCE}`
    Resource,
    /// `%{SERVER}`
    Server,
    /// `%{HOST}`
    Host,
    /// `%{ENV:variable}`
    Variable(Vec<u8>),
}

/// A script that decides something, and the application group that it runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub path: Vec<u8>,
    pub application_group: Option<Arc<Selector>>,
}

/// `WSGIHandlerScript`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HandlerScript {
    pub path: Vec<u8>,
    pub process_group: Option<Arc<Selector>>,
    pub application_group: Option<Arc<Selector>>,
    pub pass_authorization: Option<bool>,
}

/// A script that is loaded when a process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Import {
    pub span: Span,
    pub path: Vec<u8>,
    pub process_group: Vec<u8>,
    pub application_group: Vec<u8>,
}

impl Selector {
    /// The name, or the text of another form: before a request there is nothing to resolve it by.
    pub fn literal(&self) -> Vec<u8> {
        match self {
            Selector::Name(name) => name.clone(),
            Selector::Resource => b"%{RESOURCE}".to_vec(),
            Selector::Server => b"%{SERVER}".to_vec(),
            Selector::Host => b"%{HOST}".to_vec(),
            Selector::Variable(variable) => [b"%{ENV:", variable.as_slice(), b"}"].concat(),
        }
    }

    /// Parses a name.
    pub fn parse(text: &[u8]) -> Selector {
        let inside = text.strip_prefix(b"%{").and_then(|text| text.strip_suffix(b"}"));
        match inside {
            Some(b"GLOBAL") => Selector::Name(Vec::new()),
            Some(b"RESOURCE") => Selector::Resource,
            Some(b"SERVER") => Selector::Server,
            Some(b"HOST") => Selector::Host,
            Some(inside) => match inside.strip_prefix(b"ENV:") {
                Some(name) => Selector::Variable(name.to_vec()),
                None => Selector::Name(text.to_vec()),
            },
            None => Selector::Name(text.to_vec()),
        }
    }

    /// The application group of a request, whose script is at the path `script_name`.
    ///
    /// Source: `wsgi_application_group`
    pub fn application_group(&self, request: &Request, script_name: &[u8]) -> Vec<u8> {
        match self {
            Selector::Name(name) => name.clone(),
            Selector::Resource => {
                let mut name = with_port(request, host_name(&request.host));
                name.push(b'|');
                name.extend_from_slice(script_name);
                name
            }
            Selector::Server => with_port(request, host_name(&request.host)),
            Selector::Host => with_port(request, named_host(request)),
            Selector::Variable(variable) => {
                // Without the variable, the text that names it: no other group has that name.
                let Some(value) = value(request, variable) else { return self.literal() };
                match Selector::parse(&value) {
                    other @ Selector::Variable(_) => other.literal(),
                    other => other.application_group(request, script_name),
                }
            }
        }
    }

    /// The process group of a request. Without the variable, the text that names it is that of no
    /// group: a request must not reach embedded mode, which runs as the server's user.
    ///
    /// Source: `wsgi_process_group`
    pub fn process_group(&self, request: &Request) -> Vec<u8> {
        match self {
            Selector::Variable(variable) => match value(request, variable) {
                Some(value) => Selector::parse(&value).literal(),
                None => self.literal(),
            },
            other => other.literal(),
        }
    }

    /// The name of an application in its script; `None` for the usual one.
    ///
    /// Source: `wsgi_callable_object`
    pub fn callable(&self, request: &Request) -> Option<Vec<u8>> {
        match self {
            Selector::Name(name) if name.is_empty() || name.starts_with(b"%") => None,
            Selector::Name(name) => Some(name.clone()),
            Selector::Resource | Selector::Server | Selector::Host => None,
            Selector::Variable(variable) => value(request, variable),
        }
    }
}

/// The value of a variable.
fn value(request: &Request, variable: &[u8]) -> Option<Vec<u8>> {
    let found = request.notes.get(variable).or_else(|| request.env.get(variable));
    found.map(<[u8]>::to_vec).or_else(|| {
        let name = std::str::from_utf8(variable).ok()?;
        std::env::var_os(name).map(OsStringExt::into_vec)
    })
}

/// A name with the host's port unless that is a usual one. Any other port than the connection's
/// does not count: each that a client names would be an application group, with processes.
fn with_port(request: &Request, mut name: Vec<u8>) -> Vec<u8> {
    let (named, own) = (request.server_port(), request.connection.local.port());
    let is_known = matches!(named, 80 | 443) || named == request.host.identity.port;
    let port = if is_known { named } else { own };
    if !matches!(port, 80 | 443) {
        name.extend_from_slice(format!(":{port}").as_bytes());
    }
    name
}

/// The name that the client has for the host, if the host has that `ServerAlias`, or else
/// `ServerName`. What matches a wildcard is not told apart: each name would be a group.
fn named_host(request: &Request) -> Vec<u8> {
    let named = request.hostname.as_deref().unwrap_or_default();
    match request.host.core.server_aliases.0.iter().any(|alias| alias == named) {
        true => named.to_vec(),
        false => host_name(&request.host),
    }
}

/// `ServerName` of a host.
pub(super) fn host_name(host: &server::host::Host) -> Vec<u8> {
    host.identity.name.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_their_forms() {
        for (text, expected) in [
            ("site", Selector::Name(b"site".to_vec())),
            ("%{GLOBAL}", Selector::Name(Vec::new())),
            ("%{RESOURCE}", Selector::Resource),
            ("%{SERVER}", Selector::Server),
            ("%{HOST}", Selector::Host),
            ("%{ENV:X}", Selector::Variable(b"X".to_vec())),
            ("%{OTHER}", Selector::Name(b"%{OTHER}".to_vec())),
        ] {
            assert_eq!(Selector::parse(text.as_bytes()), expected);
        }
    }
}
