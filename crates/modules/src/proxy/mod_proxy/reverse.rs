//! Maps what another server says of itself to this server: ProxyPassReverse, and the domains and
//! paths of cookies.
//!
//! Source: `ap_proxy_location_reverse_map`, `ap_proxy_cookie_reverse_map`,
//! `ap_proxy_should_override` (proxy_util.c).

use std::borrow::Cow;

use server::hooks::Bound;
use server::request::{Proxied, Request};
use wire::Table;

use super::target::split_at_text;
use super::workers::Balancer;
use super::{Directory, ErrorOverride, Proxy, Reverse, interpolate};

/// The fields whose value is a URL.
const URLS: [&[u8]; 4] = [b"Location", b"Content-Location", b"URI", b"Destination"];

/// What the directives of a request say, with its variables if they are interpolated
/// (`proxy_req_conf`).
pub(super) struct Interpolated {
    urls: Vec<Reverse>,
    cookie_domains: Vec<Reverse>,
    cookie_paths: Vec<Reverse>,
}

/// Expands the variables of a request in its directives, if `ProxyPassInterpolateEnv` is on.
pub fn prepare(request: &mut Request, dir: &Directory) {
    if !dir.interpolates.or(false) || request.resource.proxied != Proxied::Reverse {
        return;
    }
    let all = |entries: &[Reverse]| -> Vec<Reverse> {
        let expand = |entry: &Reverse| match entry.interpolates {
            true => Reverse {
                from: interpolate::expand(&request.env, &entry.from).into_owned(),
                to: interpolate::expand(&request.env, &entry.to).into_owned(),
                interpolates: true,
            },
            false => entry.clone(),
        };
        entries.iter().map(expand).collect()
    };
    let interpolated = Interpolated {
        urls: all(&dir.reverse),
        cookie_domains: all(&dir.cookie_domains),
        cookie_paths: all(&dir.cookie_paths),
    };
    request.keep(interpolated);
}

/// Maps the fields of a response's head, in place: URLs and cookies.
pub fn map_fields(request: &Request, bound: Bound<'_, Proxy>, fields: &mut Table) {
    let dir = bound.dir;
    let is_empty =
        dir.reverse.is_empty() && dir.cookie_domains.is_empty() && dir.cookie_paths.is_empty();
    if is_empty || request.resource.proxied != Proxied::Reverse {
        return;
    }
    let is_url = |name: &[u8]| URLS.iter().any(|known| known.eq_ignore_ascii_case(name));
    let mut mapped = Table::with_capacity(fields.len(), fields.capacity_bytes());
    for (name, value) in fields.iter() {
        let value = match name {
            name if is_url(name) => location(request, bound, value),
            name if name.eq_ignore_ascii_case(b"Set-Cookie") => cookie(request, dir, value),
            _ => value.into(),
        };
        mapped.add(name, &value);
    }
    *fields = mapped;
}

/// Maps a URL of another server to this one.
pub fn location<'u>(request: &Request, bound: Bound<'_, Proxy>, url: &'u [u8]) -> Cow<'u, [u8]> {
    if request.resource.proxied != Proxied::Reverse {
        return url.into();
    }
    let entries = match request.kept::<Interpolated>() {
        Some(interpolated) => interpolated.urls.as_slice(),
        None => bound.dir.reverse.as_slice(),
    };
    let path =
        entries.iter().find_map(|entry| match bound.server.workers.0.balancer_of(&entry.to) {
            Some(balancer) => in_balancer(balancer, entry, url),
            None => below(entry, url),
        });
    match path {
        Some(path) if is_url(&path) => path.into(),
        Some(path) => request.construct_url(&path).into(),
        None => url.into(),
    }
}

/// The path of a URL that begins with that of the entry; the URL of an entry may be a path.
fn below(entry: &Reverse, url: &[u8]) -> Option<Vec<u8>> {
    let mut part = url;
    if entry.to.first() == Some(&b'/')
        && let Some((_, authority)) = split_at_text(url, b"://")
        && let Some(slash) = authority.iter().position(|byte| *byte == b'/')
    {
        part = authority.get(slash..).unwrap_or_default();
    }
    if entry.to.is_empty() {
        return None;
    }
    let rest = without_prefix(part, &entry.to)?;
    Some([&entry.from, rest].concat())
}

/// The path of a URL of one of a balancer's members.
fn in_balancer(balancer: &Balancer, entry: &Reverse, url: &[u8]) -> Option<Vec<u8>> {
    let (_, rest) = split_at_text(&entry.to, b"://")?;
    let slash = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let path = rest.get(slash..).filter(|path| path.len() > 1);
    balancer.members().find_map(|member| {
        let name = member.name.as_slice();
        let Some(path) = path else {
            let rest = without_prefix(url, name)?;
            let is_root = entry.from == b"/" && rest.first() == Some(&b'/');
            return Some(if is_root { rest.to_vec() } else { [&entry.from, rest].concat() });
        };
        let rest = without_prefix(url, name.strip_suffix(b"/").unwrap_or(name))?;
        Some([&entry.from, rest.strip_prefix(path)?].concat())
    })
}

/// The rest of `text` after `prefix`, in any case.
fn without_prefix<'t>(text: &'t [u8], prefix: &[u8]) -> Option<&'t [u8]> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// Whether it begins with a scheme and `://` (`ap_is_url`).
fn is_url(text: &[u8]) -> bool {
    split_at_text(text, b"://").is_some_and(|(scheme, _)| {
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        !scheme.is_empty() && scheme.iter().all(allowed)
    })
}

/// Maps the domain and the path in a `Set-Cookie` field. Of several attributes of one name the last
/// counts.
pub fn cookie<'v>(request: &Request, dir: &Directory, value: &'v [u8]) -> Cow<'v, [u8]> {
    if request.resource.proxied != Proxied::Reverse {
        return value.into();
    }
    let (paths, domains) = match request.kept::<Interpolated>() {
        Some(Interpolated { cookie_paths, cookie_domains, .. }) => (cookie_paths, cookie_domains),
        None => (&dir.cookie_paths.0, &dir.cookie_domains.0),
    };
    mapped_cookie(paths, domains, value)
}

fn mapped_cookie<'v>(paths: &[Reverse], domains: &[Reverse], value: &'v [u8]) -> Cow<'v, [u8]> {
    let path = attribute(value, b"path=", |value| {
        paths.iter().find(|entry| value.starts_with(&entry.from))
    });
    let domain = attribute(value, b"domain=", |value| {
        domains.iter().find(|entry| without_prefix(value, &entry.from).is_some())
    });
    let mut changes: Vec<_> = path.into_iter().chain(domain).collect();
    changes.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut mapped = Cow::Borrowed(value);
    for (range, replacement) in changes {
        mapped.to_mut().splice(range, replacement.iter().copied());
    }
    mapped
}

/// The place of the last attribute's value, and what replaces it.
fn attribute<'e>(
    cookie: &[u8],
    name: &[u8],
    find: impl Fn(&[u8]) -> Option<&'e Reverse>,
) -> Option<(std::ops::Range<usize>, &'e [u8])> {
    let (mut place, mut replacement) = (None, None);
    let mut start = 0;
    for token in cookie.split(|byte| *byte == b';') {
        let trimmed = token.trim_ascii_start();
        let end = start + token.len();
        if let Some(value) = without_prefix(trimmed, name) {
            place = Some(end - value.len()..end);
            replacement = find(value).map(|entry| entry.to.as_slice());
        }
        start = end + 1;
    }
    place.zip(replacement)
}

impl ErrorOverride {
    /// Whether a response with this status gets an error document of this server.
    pub fn has(&self, status: u16) -> bool {
        match self.statuses.as_slice() {
            [] => self.is_on && wire::status::is_error(status),
            some => self.is_on && some.contains(&status),
        }
    }
}

#[cfg(test)]
mod tests;
