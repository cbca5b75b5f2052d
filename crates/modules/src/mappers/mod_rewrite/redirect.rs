//! Results that lead elsewhere: redirects and proxy requests.

use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::request::{Proxied, Request};
use server::variant_key::Inputs;

use super::Rewrite;
use super::pass::{Outcome, Pass};
use super::url;
use crate::proxy::mod_proxy::translate;

/// Redirects the client to the request's file name, which is a URL. The query is escaped as well,
/// unless it came with the request.
pub(super) fn answer(pass: &mut Pass<'_>, unescaped: bool, own_args: Option<&[u8]>) -> Verdict {
    let mut target = std::mem::take(&mut pass.request.resource.filename);
    if !unescaped && let Some(scheme) = url::scheme(&target) {
        pass.line(Level::Trace1, format_args!("escaping {} for redirect", Verbatim::new(&target)));
        target = url::escape(&target, scheme);
    }
    if let Some(args) = pass.request.query().map(<[u8]>::to_vec) {
        let copies = unescaped || own_args == Some(&args[..]);
        let mut escaped = Vec::new();
        if !copies {
            wire::escape::path(&mut escaped, &args);
        }
        target.push(b'?');
        target.extend_from_slice(if copies { &args } else { &escaped });
        let what = if copies { "copying" } else { "escaping" };
        let (args, escaped) = (Verbatim::new(&args), Verbatim::new(&escaped));
        let line = format_args!("{what} {args} to query string for redirect {escaped}");
        pass.line(Level::Trace1, line);
    }
    let own = pass.request.response.status;
    let status = if wire::status::is_redirect(own) { own } else { 302 };
    pass.request.response.headers_out.set(b"Location", &target);
    let shown = Verbatim::new(&target);
    pass.line(Level::Trace1, format_args!("redirect to {shown} [REDIRECT/{status}]"));
    pass.request.resource.filename = target;
    // Apache resets the request's status only if a rule has set one for redirects: not by `R=foo`.
    match own == status {
        true => end(pass.request, status),
        false => Verdict::Status(status),
    }
}

/// Ends the request with a status that rules have decided. Of an error document it replaces the
/// status of the error: Apache's module resets the request's status, so that this is its first
/// error.
pub(super) fn end(request: &mut Request, status: u16) -> Verdict {
    request.response.status = 200;
    Verdict::Status(status)
}

/// Whether the query has characters that are not allowed; logs that under `number`. It counts for
/// any result, a status as well, except one that will be escaped. A client's query can have them
/// only if the protocol is not enforced strictly.
pub(super) fn has_unsafe_query(request: &Request, outcome: Outcome, number: u32) -> bool {
    let unescaped = match outcome {
        Outcome::Unchanged => return false,
        Outcome::Changed { unescaped, passed_through } => unescaped || passed_through,
        Outcome::Status(_) => false,
    };
    if !unescaped && url::scheme(&request.resource.filename).is_some() {
        return false;
    }
    if !request.connection.base_host.core.strict_protocol() {
        request.looks_at(Inputs::QUERY);
    }
    let is_unsafe = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
    let found = request.own_query().is_some_and(|args| args.iter().any(is_unsafe));
    if found {
        let why = "Rewritten query string contains control characters or spaces";
        request.log::<Rewrite>(Level::Error, number, format_args!("{why}"));
    }
    found
}

/// Makes the request one for another server, whose URL is its file name after `proxy:`, if a proxy
/// is loaded; logs under `number` if there is none.
pub(super) fn proxy(pass: &mut Pass<'_>, unescaped: bool, number: u32) -> Verdict {
    let request = &mut *pass.request;
    if !request.engine.server.registry.is_active("mod_proxy.c") {
        return Verdict::Status(without_proxy(request, number));
    }
    if unescaped {
        request.notes.set(translate::NOT_CANONICAL, b"1");
    }
    let mut filename = std::mem::take(&mut request.resource.filename);
    // In a directory the path's rest is already part of the URL.
    if pass.scope.directory.is_none() {
        filename.extend_from_slice(&request.resource.path_info);
    }
    let proxied = match request.resource.proxied {
        Proxied::No => Proxied::Reverse,
        known => known,
    };
    // Otherwise the scheme adds the query.
    if (unescaped || proxied == Proxied::Forward)
        && let Some(args) = request.query()
    {
        filename.push(b'?');
        filename.extend_from_slice(args);
    }
    request.proxy(proxied, filename.get(PREFIX.len()..).unwrap_or_default());
    let shown = Verbatim::new(&pass.request.resource.filename);
    pass.line(Level::Trace1, format_args!("go-ahead with proxy request {shown} [OK]"));
    Verdict::Ok
}

/// The beginning of a proxy request's file name.
const PREFIX: &[u8] = b"proxy:";

/// The status of a proxy request without a proxy.
fn without_proxy(request: &Request, number: u32) -> u16 {
    let target = Verbatim::new(&request.resource.filename);
    request.log::<Rewrite>(
        Level::Error,
        number,
        format_args!(
            "attempt to make remote request from mod_rewrite without proxy enabled: {target}"
        ),
    );
    403
}
