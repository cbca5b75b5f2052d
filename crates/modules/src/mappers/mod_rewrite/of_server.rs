//! The rules of a host, which run when a URL becomes a file name.
//!
//! Source: `hook_uri2file`.

use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::path;
use server::request::Request;

use super::act::Reduced;
use super::pass::{Ended, Outcome, Pass};
use super::redirect;
use super::settings::Options;
use super::trace::Trace;
use super::{Rewrite, url, value};
use crate::core::map_to_document_root;

/// Whether a section has the engine on, and its host has directives of this module.
pub(super) fn runs(rewrite: Bound<'_, Rewrite>) -> bool {
    rewrite.dir.common.is_on() && !rewrite.server.is_foreign
}

/// The hook of `translate_name`.
pub(super) fn translate<'r>(rewrite: Bound<'r, Rewrite>, request: &'r mut Request) -> Step<'r> {
    let trace = Trace::of(request);
    if has_ended(request) {
        let line = "Declining, no further rewriting due to END flag";
        trace.line(request, Level::Trace8, None, format_args!("{line}"));
        return Step::DECLINED;
    }
    let is_path = request.resource.uri.first() == Some(&b'/') && request.head.unparsed_uri != b"*";
    if !is_path && !rewrite.dir.common.options().has(Options::ALLOW_ANY_URI) {
        decline_no_path(request, trace);
        return Step::DECLINED;
    }
    set_script_variables(request);
    let own_args = request.own_query().map(<[u8]>::to_vec);
    begin(request, trace);
    let mut pass = Pass::new(request, rewrite.server, None);
    let found = pass.seek();
    if found == Ok(false) {
        return Step::Ready(pass_through(&pass));
    }
    Step::Pending(Box::pin(async move {
        let outcome = pass.run(found).await.unwrap_or_else(Outcome::Status);
        finish(pass, outcome, own_args.as_deref())
    }))
}

/// Whether `END` was reached, possibly before an internal redirect.
pub(super) fn has_ended(request: &Request) -> bool {
    let mut next = Some(request);
    while let Some(request) = next {
        if request.kept::<Ended>().is_some() {
            return true;
        }
        next = request.prev.as_deref();
    }
    false
}

fn decline_no_path(request: &Request, trace: Trace) {
    let uri = Verbatim::new(&request.resource.uri);
    let line = format_args!(
        "Declining, request-URI '{uri}' is not a URL-path. Consult the manual entry for the \
         RewriteOptions directive for options and caveats about matching other strings."
    );
    trace.line(request, Level::Trace8, None, line);
}

/// Sets `SCRIPT_URL`, the requested path, and `SCRIPT_URI`, its full URL.
fn set_script_variables(request: &mut Request) {
    let known: &[u8] = if request.main.is_some() { b"SCRIPT_URL" } else { b"REDIRECT_SCRIPT_URL" };
    let path = request.env.get(known).unwrap_or(&request.resource.uri).to_vec();
    let uri = request.construct_url(&path);
    request.env.set(b"SCRIPT_URL", &path);
    request.env.set(b"SCRIPT_URI", &uri);
}

fn begin(request: &mut Request, trace: Trace) {
    let uri = Verbatim::new(&request.resource.uri);
    if request.resource.filename.is_empty() {
        let line = format_args!("init rewrite engine with requested uri {uri}");
        trace.line(request, Level::Trace2, None, line);
        request.resource.filename.clone_from(&request.resource.uri);
    } else {
        let file = Verbatim::new(&request.resource.filename);
        let line =
            format_args!("init rewrite engine with passed filename {file}. Original uri = {uri}");
        trace.line(request, Level::Trace2, None, line);
    }
}

fn pass_through(pass: &Pass<'_>) -> Verdict {
    let file = Verbatim::new(&pass.request.resource.filename);
    pass.line(Level::Trace1, format_args!("pass through {file}"));
    Verdict::Declined
}

fn finish(mut pass: Pass<'_>, outcome: Outcome, own_args: Option<&[u8]>) -> Verdict {
    if redirect::has_unsafe_query(pass.request, outcome, 10410) {
        return Verdict::Status(403);
    }
    let (unescaped, passed_through) = match outcome {
        Outcome::Unchanged => return pass_through(&pass),
        Outcome::Status(status) => return redirect::end(pass.request, status),
        Outcome::Changed { unescaped, passed_through } => (unescaped, passed_through),
    };
    if passed_through {
        let path = pass.request.resource.filename.clone();
        pass.request.resource.uri = path;
        return Verdict::Declined;
    }
    let is_redirect = url::scheme(&pass.request.resource.filename).is_some();
    if pass.request.resource.filename.starts_with(b"proxy:") {
        return redirect::proxy(&mut pass, unescaped, 669);
    }
    if is_redirect {
        return redirect::answer(&mut pass, unescaped, own_args);
    }
    local_path(&mut pass)
}

/// Maps the result, a file or a path below `DocumentRoot`.
fn local_path(pass: &mut Pass<'_>) -> Verdict {
    // The database of users is not watched.
    pass.request.depends.pure &= !pass.request.resource.filename.starts_with(b"/~");
    if let Some(found) = expand_tilde(&pass.request.resource.filename) {
        pass.request.resource.filename = found;
    }
    let file = Verbatim::new(&pass.request.resource.filename);
    pass.line(Level::Trace2, format_args!("local path result: {file}"));
    if pass.request.resource.filename.first() != Some(&b'/') {
        return Verdict::Status(400);
    }
    let is_legacy = pass.scope.settings.common.options().has(Options::LEGACY_PREFIX);
    let is_reduced = !is_legacy && pass.request.kept::<Reduced>().is_some();
    if !is_file(pass) || is_reduced {
        let path = std::mem::take(&mut pass.request.resource.filename);
        let mapped = map_to_document_root(pass.request, &path);
        if let Err(status) = mapped {
            let path = Verbatim::new(&path);
            let line = format_args!("prefixing with document_root of {path} FAILED");
            pass.line(Level::Trace1, line);
            return Verdict::Status(status);
        }
        let file = Verbatim::new(&pass.request.resource.filename);
        pass.line(Level::Trace2, format_args!("prefixed with document_root to {file}"));
    } else {
        let Some(file) = path::canonical(&within_root(&pass.request.resource.filename)) else {
            return Verdict::Status(500);
        };
        pass.request.resource.canonical_filename = file;
    }
    let file = Verbatim::new(&pass.request.resource.filename);
    pass.line(Level::Trace1, format_args!("go-ahead with {file} [OK]"));
    let canonical = pass.request.resource.canonical_filename.clone();
    pass.request.resource.filename = canonical;
    Verdict::Ok
}

/// Expands `/~name/…` to a path below that user's home.
fn expand_tilde(path: &[u8]) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let rest = path.strip_prefix(b"/~")?;
    let end = rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(end)?;
    let name = std::str::from_utf8(name).ok().filter(|name| !name.is_empty())?;
    let user = nix::unistd::User::from_name(name).ok()??;
    let home = user.dir.as_os_str().as_bytes();
    let home = if rest.is_empty() { home } else { home.strip_suffix(b"/").unwrap_or(home) };
    Some([home, rest].concat())
}

/// Whether the result is a file system path: its first segment exists and comes from the rule, or
/// the whole is below `DocumentRoot` (`prefix_stat`).
fn is_file(pass: &mut Pass<'_>) -> bool {
    let Some(first) = first_segment(&pass.request.resource.filename) else { return false };
    pass.request.trace_path(&first);
    if pass.request.engine.stat(&first).is_err() {
        return false;
    }
    let trusts_all = pass.scope.settings.common.options().has(Options::UNSAFE_PREFIX_STAT);
    let Some(last) = pass.last.filter(|_| !trusts_all) else {
        let shown = Verbatim::new(&first);
        let line = format_args!("prefix_stat no lastsub subst prefix {shown}");
        pass.line(Level::Trace3, line);
        return true;
    };
    let (output, shown) = (Verbatim::new(&last.target.text), Verbatim::new(&first));
    let is_trusted = last.flags.trusts_prefix;
    let flag = if is_trusted { UNSAFE_PREFIX_STAT } else { 0 };
    pass.line(
        Level::Trace3,
        format_args!(
            "prefix_stat compare statpath {shown} and lastsub output {output} STATOK {flag} "
        ),
    );
    is_trusted
        || begins(pass, &last.target.text, &first)
        || begins(pass, &pass.request.resource.filename, value::document_root(pass.request))
}

/// Apache's bit for the option, which the log shows.
const UNSAFE_PREFIX_STAT: u32 = 1 << 22;

fn begins(pass: &Pass<'_>, text: &[u8], prefix: &[u8]) -> bool {
    let begins = text.starts_with(prefix);
    let (text, prefix) = (Verbatim::new(text), Verbatim::new(prefix));
    let found = u8::from(begins);
    let line = format_args!("prefix_stat startsWith({text}, {prefix}) {found}");
    pass.line(Level::Trace5, line);
    begins
}

/// The first segment of a path, with its slash.
fn first_segment(path: &[u8]) -> Option<Vec<u8>> {
    let start = path.iter().position(|byte| *byte != b'/').unwrap_or(path.len());
    let segment = path.get(start..)?.split(|byte| *byte == b'/').next()?;
    path::into_canonical(within_root(&[b"/", segment].concat()))
}

/// Resolves `..` of an absolute path, staying at the root.
fn within_root(path: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(path.len());
    for segment in path.split(|byte| *byte == b'/').skip(1) {
        if segment == b".." {
            out.truncate(out.iter().rposition(|byte| *byte == b'/').unwrap_or(0));
        } else if !matches!(segment, b"" | b".") {
            out.push(b'/');
            out.extend_from_slice(segment);
        }
    }
    let is_directory = [&b"/"[..], b"/.", b"/.."].iter().any(|end| path.ends_with(end));
    if is_directory || out.is_empty() {
        out.push(b'/');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{first_segment, within_root};

    #[test]
    fn the_first_segment_has_one_slash() {
        assert_eq!(first_segment(b"/a/b").as_deref(), Some(&b"/a"[..]));
        assert_eq!(first_segment(b"//a").as_deref(), Some(&b"/a"[..]));
        assert_eq!(first_segment(b"/").as_deref(), Some(&b"/"[..]));
        assert_eq!(first_segment(b"/../a").as_deref(), Some(&b"/"[..]));
    }

    #[test]
    fn the_root_is_its_own_parent() {
        assert_eq!(within_root(b"/../a"), b"/a");
        assert_eq!(within_root(b"/a/b/../../../c/"), b"/c/");
        assert_eq!(within_root(b"/a/.."), b"/");
    }
}
