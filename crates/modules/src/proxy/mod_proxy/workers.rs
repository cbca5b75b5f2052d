//! The workers of a configuration: each a backend with its parameters and its state.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use server::request::Proxied;

use super::balancer;
use super::balancing::BalancingProvider;
use super::define::is_balancer;
use super::growth::Spare;
use super::lbmethod::MethodProvider;
use super::scheme::SchemeProvider;
use super::shared::{BalancerState, State};
use super::target::Target;
use super::worker::Parameters;

/// A backend (`proxy_worker`).
pub struct Worker {
    /// Its URL, as in logs.
    pub name: Vec<u8>,
    /// The same, in parts.
    pub target: Target,
    /// What the configuration says of it.
    pub parameters: Parameters,
    /// Its scheme; `None` if no loaded module handles it.
    pub scheme: Option<SchemeProvider>,
    /// Whether `$1` and so on in its name stand for any text.
    pub is_pattern: bool,
    /// Whether it stands for any URL without a worker (`proxy:reverse`, `proxy:forward`), of which
    /// no connection is kept.
    pub is_generic: bool,
    /// Whether it is a member of a balancer, which counts what goes to it and comes back.
    pub is_member: bool,
    /// Its place among the workers of the configuration.
    pub number: usize,
    /// What changes while it serves. Connections outlive the request, and so refer to it.
    pub state: Arc<State>,
}

impl Worker {
    /// Whether its connections are without TLS, whatever the request.
    pub fn is_plain(&self) -> bool {
        let scheme = self.target.scheme.as_slice();
        let is_plain = !matches!(scheme, b"https" | b"wss") && !scheme.contains(&b'$');
        is_plain && self.has_one_place()
    }

    /// Whether all its requests go to the same host and port: a pattern's may depend on captures.
    pub fn has_one_place(&self) -> bool {
        let depends = self.target.host.contains(&b'$') || self.target.path.starts_with(b"$");
        !(self.is_generic || self.is_pattern && depends)
    }

    /// `route`; empty: none.
    pub fn route(&self) -> Cow<'_, [u8]> {
        match self.state.is_changed() {
            true => self.state.route().into(),
            false => self.parameters.route.as_deref().unwrap_or_default().into(),
        }
    }

    /// `redirect`; empty: none.
    pub fn redirect(&self) -> Cow<'_, [u8]> {
        match self.state.is_changed() {
            true => self.state.redirect().into(),
            false => self.parameters.redirect.as_deref().unwrap_or_default().into(),
        }
    }
}

/// A group of workers.
pub struct Balancer {
    /// Its URL without a path, in lower case.
    pub name: Vec<u8>,
    /// What the configuration says of it.
    pub parameters: balancer::Parameters,
    /// The workers of the configuration.
    pub configured: Vec<Arc<Worker>>,
    /// The places for members that are added (`growth`).
    pub spares: Vec<Spare>,
    /// The path of the last ProxyPass that leads here.
    pub path: Vec<u8>,
    /// Its place among the balancers of the configuration.
    pub number: usize,
    /// The methods that loaded modules provide, by their names.
    pub methods: Arc<[(&'static str, MethodProvider)]>,
    /// The place of `lbmethod` among them; beyond the last if it is not loaded.
    pub method: usize,
    /// What changes while it serves.
    pub state: BalancerState,
}

impl Balancer {
    /// `maxattempts`: how often another member is tried.
    pub fn max_attempts(&self) -> u32 {
        let set = match self.state.changed() {
            Some(changed) => changed.max_attempts,
            None => self.parameters.max_attempts,
        };
        set.unwrap_or_else(|| self.configured.len().saturating_sub(1) as u32)
    }
}

/// The workers of a host.
#[derive(Default)]
pub struct Workers {
    /// Those with a URL, in the order of their definition.
    pub own: Vec<Arc<Worker>>,
    /// The groups.
    pub balancers: Vec<Arc<Balancer>>,
    /// The one of all other URLs that the configuration maps to.
    pub reverse: Option<Arc<Worker>>,
    /// The one of all other URLs that clients ask for; `None` without ProxyRequests.
    pub forward: Option<Arc<Worker>>,
    /// The schemes that loaded modules handle, by their names.
    pub schemes: Vec<(&'static str, SchemeProvider)>,
    /// What chooses the members of balancers; `None` without mod_proxy_balancer.
    pub balancing: Option<BalancingProvider>,
    /// The scheme that may leave a mapping out for a request.
    pub upgrades: Option<SchemeProvider>,
    /// What serves CONNECT.
    pub tunnels: Option<SchemeProvider>,
    /// The base of relative names of UNIX sockets.
    pub run_dir: PathBuf,
}

/// Which workers are looked for, by how they were defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// By a URL.
    Prefix,
    /// By a pattern.
    Pattern,
    /// Either.
    Any,
}

impl Workers {
    /// The worker of a URL: of those that fit the one with the longest name.
    pub fn find(&self, url: &[u8], kind: Kind) -> Option<&Arc<Worker>> {
        let names = self.own.iter().map(|worker| (worker.name.as_slice(), worker.is_pattern));
        self.own.get(best(names, url, kind)?)
    }

    /// The worker of a request to a URL (`ap_proxy_pre_request`).
    pub fn of_request(&self, proxied: Proxied, url: &[u8]) -> Option<&Arc<Worker>> {
        let generic = match proxied {
            Proxied::Forward => self.forward.as_ref(),
            _ => self.reverse.as_ref(),
        };
        self.find(url, Kind::Any).or(generic)
    }

    /// The balancer that a URL names.
    pub fn balancer_of(&self, url: &[u8]) -> Option<&Balancer> {
        if self.balancers.is_empty() || !is_balancer(url) {
            return None;
        }
        let name = balancer_name(url)?;
        self.balancers.iter().find(|one| one.name == name).map(|one| &**one)
    }

    /// The module of a scheme.
    pub fn scheme(&self, name: &[u8]) -> Option<SchemeProvider> {
        let is_it = |own: &&str| own.as_bytes().eq_ignore_ascii_case(name);
        self.schemes.iter().find(|(own, _)| is_it(own)).map(|(_, scheme)| *scheme)
    }
}

/// The URL of a balancer without its path, in lower case; `None` if it is none. As in Apache,
/// members may be added to one with any scheme, but requests only reach `balancer:`.
pub(super) fn balancer_name(url: &[u8]) -> Option<Vec<u8>> {
    let colon = url.iter().position(|byte| *byte == b':')?;
    let (scheme, rest) = url.split_at(colon);
    let rest = rest.strip_prefix(b"://").filter(|rest| !rest.is_empty())?;
    // A slash at the very beginning is part of the name.
    let slash = rest.get(1..)?.iter().position(|byte| *byte == b'/');
    let first = if rest.first() == Some(&b'/') { Some(0) } else { slash.map(|at| at + 1) };
    let name = rest.get(..first.unwrap_or(rest.len()))?;
    Some([scheme, b"://", name].concat().to_ascii_lowercase())
}

/// The place of the longest name that fits a URL and covers its authority
/// (`ap_proxy_get_worker_ex`).
pub(super) fn best<'n>(
    names: impl Iterator<Item = (&'n [u8], bool)>,
    url: &[u8],
    kind: Kind,
) -> Option<usize> {
    let colon = url.iter().position(|byte| *byte == b':')?;
    let rest = url.get(colon..)?.strip_prefix(b"://").filter(|rest| !rest.is_empty())?;
    let slash = rest.iter().position(|byte| *byte == b'/');
    let least = slash.map_or(url.len(), |slash| colon + 3 + slash);
    let mut longest: Option<(usize, usize)> = None;
    for (place, (name, is_pattern)) in names.enumerate() {
        let is_asked = kind == Kind::Any || is_pattern == (kind == Kind::Pattern);
        // The authority of a pattern may be shorter than what it stands for.
        let covers = is_pattern || name.len() >= least;
        let is_long = covers && longest.is_none_or(|(_, length)| name.len() > length);
        if !is_asked || !is_long || name.len() > url.len() {
            continue;
        }
        let fits = match is_pattern {
            true => {
                let (authority, path) = url.split_at(least);
                matches_pattern(&[&authority.to_ascii_lowercase(), path].concat(), name) == Fit::Yes
            }
            false => {
                let (authority, path) = name.split_at(least);
                let (of_url, rest) = url.split_at(least);
                // That of a canonical URL is in lower case.
                let is_same = of_url == authority || of_url.eq_ignore_ascii_case(authority);
                is_same && rest.starts_with(path)
            }
        };
        if fits {
            longest = Some((place, name.len()));
        }
    }
    longest.map(|(place, _)| place)
}

/// The outcome of a comparison with a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    /// Nor does any shorter end of the text.
    Never,
}

/// Compares a URL with a worker's name, in which `$1` and so on stand for any text and `\` precedes
/// a literal character (`ap_proxy_strcmp_ematch`).
fn matches_pattern(text: &[u8], name: &[u8]) -> Fit {
    let is_capture = |rest: &[u8]| matches!(rest, [b'$', digit, ..] if digit.is_ascii_digit());
    let (mut text, mut name) = (text, name);
    while !name.is_empty() {
        if is_capture(name) {
            while is_capture(name) {
                name = name.get(2..).unwrap_or_default();
            }
            if name.is_empty() {
                return Fit::Yes;
            }
            while !text.is_empty() {
                match matches_pattern(text, name) {
                    Fit::No => text = text.get(1..).unwrap_or_default(),
                    decided => return decided,
                }
            }
            return Fit::Never;
        }
        let Some((byte, after)) = text.split_first() else { return Fit::Never };
        name = name.strip_prefix(b"\\").unwrap_or(name);
        match name.split_first() {
            Some((expected, rest)) if expected == byte => (text, name) = (after, rest),
            Some(_) => return Fit::No,
            None => return Fit::Never,
        }
    }
    Fit::Yes
}

#[cfg(test)]
mod tests;
