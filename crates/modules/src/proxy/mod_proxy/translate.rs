//! Finds the mapping of a request: ProxyPass and ProxyPassMatch, of the host and of `<Location>`.
//!
//! Source: `proxy_trans`, `ap_proxy_trans_match` (mod_proxy.c).

use std::borrow::Cow;

use pcre::{Captures, MAX_SUBSTITUTION_BYTES, substitute};
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::matching::{self, Stop, certain};
use server::request::{Proxied, Request};

use super::alias::{prefix_length, servlet};
use super::mapping::{From, Mapping, PathForm};
use super::{Proxy, interpolate};

/// The note of a request whose path is forwarded as sent, for its scheme.
pub const NOT_CANONICAL: &[u8] = b"proxy-nocanon";
/// The note of a request whose query is not forwarded.
pub const WITHOUT_QUERY: &[u8] = b"proxy-noquery";
/// The note of a request whose path is still escaped.
pub const STILL_ESCAPED: &[u8] = b"proxy-noencode";

/// Whether some mapping is compared with the path as sent, or URLs of other servers stay as sent.
pub(super) fn maps_encoded(proxy: Bound<'_, Proxy>) -> bool {
    proxy.server.has_encoded.or(false) || proxy.server.requests.or(false)
}

/// Whether there is a mapping, or the request may have been mapped before.
pub(super) fn maps(proxy: Bound<'_, Proxy>) -> bool {
    !proxy.server.mappings.is_empty() || proxy.dir.mapping.is_set() || maps_encoded(proxy)
}

/// The hook of `pre_translate_name`: the path is still escaped. [`Verdict::Done`] leaves it so.
pub(super) fn before<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    if request.resource.proxied != Proxied::No {
        return Step::DONE;
    }
    find(proxy, request, true)
}

/// The hook of `translate_name`.
pub(super) fn translate<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request) -> Step<'r> {
    if request.resource.proxied != Proxied::No {
        return Step::OK;
    }
    find(proxy, request, false)
}

fn find<'r>(proxy: Bound<'r, Proxy>, request: &'r mut Request, is_encoded: bool) -> Step<'r> {
    let is_path = request.resource.uri.first() == Some(&b'/') && request.head.unparsed_uri != b"*";
    if !is_path || request.env.contains(b"no-proxy") {
        return Step::DECLINED;
    }
    matching::settle(request, move |request| {
        let of_section = proxy.dir.mapping.get().into_iter();
        for mapping in of_section.chain(proxy.server.mappings.iter()) {
            if (mapping.form != PathForm::Decoded) != is_encoded {
                continue;
            }
            if let Some(decided) = apply(mapping, proxy, request)? {
                return Ok(decided);
            }
        }
        Ok(Verdict::Declined)
    })
}

/// What a mapping makes of a request's path.
struct Found {
    /// The URL.
    url: Vec<u8>,
    /// For `mapping=servlet`: the path without parameters.
    path: Option<Vec<u8>>,
    /// Whether `nocanon` has no effect, since the mapping does not fit the path as sent.
    is_unsafe: bool,
}

/// Applies a mapping; `None` if it does not fit.
fn apply(
    mapping: &Mapping,
    proxy: Bound<'_, Proxy>,
    request: &mut Request,
) -> Result<Option<Verdict>, Stop> {
    let expands = proxy.dir.interpolates.or(false) && mapping.interpolates;
    let expand = |text| match expands {
        true => Cow::Owned(interpolate::expand(&request.env, text).into_owned()),
        false => Cow::Borrowed(text),
    };
    let target: Option<Cow<'_, [u8]>> = mapping.target.as_deref().map(expand);
    trace_attempt(mapping, request);
    let found = match &mapping.from {
        From::Regex(_) => by_pattern(mapping, target.as_deref(), request)?,
        From::Prefix(prefix) => {
            let prefix: Cow<'_, [u8]> = match expands {
                true => interpolate::expand(&request.env, prefix),
                false => prefix.into(),
            };
            by_prefix(mapping, &prefix, target.as_deref(), request)
        }
    };
    let Some(found) = found else { return Ok(None) };
    // `!`
    if target.is_none() {
        let number = if mapping.is_pattern() { 3462 } else { 3463 };
        let uri = Verbatim::new(&request.resource.uri);
        let line = format_args!("proxying is explicitly disabled for URI path '{uri}'; declining");
        request.log::<Proxy>(Level::Trace1, number, line);
        return Ok(Some(Verdict::Declined));
    }
    let upgrades = proxy.server.workers.0.upgrades;
    if upgrades.is_some_and(|scheme| !scheme.accepts(request, &found.url)) {
        return Ok(None);
    }
    take(mapping, request, found);
    let is_encoded = mapping.form != PathForm::Decoded;
    Ok(Some(if is_encoded { Verdict::Done } else { Verdict::Ok }))
}

fn trace_attempt(mapping: &Mapping, request: &Request) {
    let (what, from) = match &mapping.from {
        From::Regex(regex) => ("pattern", regex.pattern()),
        From::Prefix(prefix) => ("prefix", prefix.as_slice()),
    };
    let (uri, from) = (Verbatim::new(&request.resource.uri), Verbatim::new(from));
    let line =
        format_args!("attempting to match URI path '{uri}' against {what} '{from}' for proxying");
    request.log::<Proxy>(Level::Trace2, 3461, line);
}

fn by_prefix(
    mapping: &Mapping,
    prefix: &[u8],
    target: Option<&[u8]>,
    request: &Request,
) -> Option<Found> {
    let uri = request.resource.uri.as_slice();
    let target = target.unwrap_or_default();
    let (length, path) = match mapping.form {
        PathForm::Servlet => {
            let servlet = servlet(uri, prefix)?;
            (servlet.length, Some(servlet.path))
        }
        _ => (prefix_length(uri, prefix)?, None),
    };
    let sent = request.head.unparsed_uri.as_slice();
    let is_unsafe = mapping.is_literal && prefix_length(sent, prefix) != Some(length);
    // With the query, which for a servlet is added once more, as in Apache.
    let used = if mapping.is_literal && !is_unsafe { sent } else { uri };
    let url = [target, used.get(length..).unwrap_or_default()].concat();
    Some(Found { url, path, is_unsafe })
}

fn by_pattern(
    mapping: &Mapping,
    target: Option<&[u8]>,
    request: &mut Request,
) -> Result<Option<Found>, Stop> {
    let From::Regex(regex) = &mapping.from else { return Ok(None) };
    let mut captures = Captures::new();
    let uri = request.resource.uri.clone();
    if !certain(request.matches(regex, &uri, Some(&mut captures))?)? {
        return Ok(None);
    }
    let Some(target) = target else {
        return Ok(Some(Found { url: Vec::new(), path: None, is_unsafe: false }));
    };
    let (mut used, mut is_unsafe) = (uri, false);
    if mapping.is_literal {
        let sent = request.head.unparsed_uri.clone();
        let mut of_sent = Captures::new();
        match certain(request.matches(regex, &sent, Some(&mut of_sent))?)? {
            true => (used, captures) = (sent, of_sent),
            false => is_unsafe = true,
        }
    }
    let mut url = Vec::new();
    if substitute(target, &used, &captures, MAX_SUBSTITUTION_BYTES, &mut url).is_err() {
        let text = "Substitution in regular expression failed. Replacement too long?";
        request.log::<Proxy>(Level::Crit, 1135, format_args!("{text}"));
        return Err(Stop::Status(500));
    }
    // Without captures in the target, the whole path follows it.
    if url == target {
        url.extend_from_slice(&used);
    }
    Ok(Some(Found { url, path: None, is_unsafe }))
}

/// Makes the request one for the URL.
fn take(mapping: &Mapping, request: &mut Request, found: Found) {
    if found.is_unsafe {
        let text = "Unescaped URL path matched ProxyPass; ignoring unsafe nocanon";
        request.log::<Proxy>(Level::Warn, 1136, format_args!("{text}"));
    }
    request.proxy(Proxied::Reverse, &found.url);
    let is_servlet = mapping.form == PathForm::Servlet;
    if mapping.is_literal && !found.is_unsafe && !is_servlet {
        request.notes.set(NOT_CANONICAL, b"1");
    }
    if mapping.drops_query {
        request.notes.set(WITHOUT_QUERY, b"1");
    }
    if mapping.form != PathForm::Decoded {
        request.notes.set(STILL_ESCAPED, b"1");
    }
    let (uri, file) =
        (Verbatim::new(&request.resource.uri), Verbatim::new(&request.resource.filename));
    let Some(path) = found.path else {
        let line = format_args!("URI path '{uri}' matches proxy handler '{file}'");
        return request.log::<Proxy>(Level::Trace1, 3464, line);
    };
    let shown = Verbatim::new(&path);
    let line = format_args!("Servlet path '{uri}' ({shown}) matches proxy handler '{file}'");
    request.log::<Proxy>(Level::Trace1, 10248, line);
    request.resource.uri = path;
}
