//! The rules of a directory, which run when the file is known and cause an internal redirect.
//!
//! Source: `hook_fixup`, `handler_redirect`.

use std::borrow::Cow;

use server::core::OptionFlags;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::redirect::internal_redirect;
use server::request::Request;

use super::of_server::has_ended;
use super::pass::{Outcome, Pass};
use super::redirect;
use super::settings::{Directory, Options};
use super::trace::Trace;
use super::{Rewrite, url, value};

/// The name of the handler.
pub(in super::super) const HANDLER: &str = "redirect-handler";

/// The prefix of a file name that is a path to redirect to.
const REDIRECT: &[u8] = b"redirect:";

/// Whether a section has the engine on, and directives of this module.
pub(super) fn runs(rewrite: Bound<'_, Rewrite>) -> bool {
    rewrite.dir.common.is_on() && rewrite.dir.path.is_some()
}

/// The first hook of `fixups`.
pub(super) fn fixup<'r>(rewrite: Bound<'r, Rewrite>, request: &'r mut Request) -> Step<'r> {
    let directory = rewrite.dir;
    let Some(path) = directory.path.as_deref() else { return Step::DECLINED };
    // mod_dir redirects a directory without its slash.
    let is_bare = path.strip_suffix(b"/") == Some(&request.resource.filename);
    if is_bare && !directory.common.options().has(Options::ALLOW_NO_SLASH) {
        return Step::DECLINED;
    }
    if has_ended(request) {
        let line = format_args!("Declining, no further rewriting due to END flag");
        Trace::of(request).line(request, Level::Trace8, Some(path), line);
        return Step::DECLINED;
    }
    if !may_follow_links(request) {
        return Step::status(403);
    }
    let own_args = request.own_query().map(<[u8]>::to_vec);
    let mut pass = Pass::new(request, rewrite.server, Some(directory));
    let found = pass.seek();
    if found == Ok(false) {
        return Step::Ready(pass_through(pass));
    }
    Step::Pending(Box::pin(async move {
        let outcome = pass.run(found).await.unwrap_or_else(Outcome::Status);
        if redirect::has_unsafe_query(pass.request, outcome, 10411) {
            return Verdict::Status(403);
        }
        match outcome {
            Outcome::Unchanged => pass_through(pass),
            Outcome::Status(status) => redirect::end(pass.request, status),
            // `PT` has a meaning only for a host, but it keeps the result from being a URL.
            Outcome::Changed { passed_through: true, .. } => go_to(pass, directory),
            Outcome::Changed { unescaped, .. } => {
                finish(pass, directory, unescaped, own_args.as_deref())
            }
        }
    }))
}

/// Whether links are allowed: rules could bypass the restriction.
fn may_follow_links(request: &Request) -> bool {
    let options = request.plan.core.options.flags();
    if options.has(OptionFlags::FOLLOW_SYMLINKS)
        || options.has(OptionFlags::SYMLINKS_IF_OWNER_MATCH)
    {
        return true;
    }
    let file = Verbatim::new(&request.resource.filename);
    request.log::<Rewrite>(
        Level::Error,
        670,
        format_args!(
            "Options FollowSymLinks and SymLinksIfOwnerMatch are both off, so the RewriteRule \
             directive is also forbidden due to its similar ability to circumvent directory \
             restrictions : {file}"
        ),
    );
    false
}

fn pass_through(pass: Pass<'_>) -> Verdict {
    let file = Verbatim::new(&pass.request.resource.filename);
    pass.line(Level::Trace1, format_args!("pass through {file}"));
    if let Some(own_file) = pass.own_file {
        pass.request.resource.filename = own_file;
    }
    Verdict::Declined
}

fn finish(
    mut pass: Pass<'_>,
    directory: &Directory,
    unescaped: bool,
    own_args: Option<&[u8]>,
) -> Verdict {
    let is_redirect = url::scheme(&pass.request.resource.filename).is_some();
    if pass.request.resource.filename.starts_with(b"proxy:") {
        return redirect::proxy(&mut pass, unescaped, 10160);
    }
    if is_redirect {
        replace_in_url(&mut pass, directory);
        return redirect::answer(&mut pass, unescaped, own_args);
    }
    go_to(pass, directory)
}

/// Replaces the directory's path at the start of a URL's path, as in a relative result.
fn replace_in_url(pass: &mut Pass<'_>, directory: &Directory) {
    let (Some(path), Some(base)) = (directory.path.as_deref(), directory.base.as_deref()) else {
        return;
    };
    let whole = &pass.request.resource.filename;
    let start = url::scheme(whole).map_or(0, |scheme| scheme.length);
    let rest = whole.get(start..).unwrap_or_default();
    let slash = rest.iter().position(|byte| *byte == b'/');
    let Some(start) = slash.map(|slash| start + slash + 1).filter(|start| *start < whole.len())
    else {
        return;
    };
    trace_replacing(pass, path, base);
    let (head, rest) = pass.request.resource.filename.split_at_checked(start).unwrap_or_default();
    let bare = |text: &[u8]| -> Vec<u8> { text.strip_prefix(b"/").unwrap_or(text).to_vec() };
    if let Some(found) = rebase(pass, rest, &bare(path), &bare(base)) {
        pass.request.resource.filename = [head, &found[..]].concat();
    }
}

fn trace_replacing(pass: &Pass<'_>, path: &[u8], base: &[u8]) {
    let (path, base) = (Verbatim::new(path), Verbatim::new(base));
    pass.line(Level::Trace2, format_args!("trying to replace prefix {path} with {base}"));
}

fn rebase(pass: &Pass<'_>, path: &[u8], prefix: &[u8], base: &[u8]) -> Option<Vec<u8>> {
    let (rest, whole) = url::rebase(path, prefix, base)?;
    let (path, rest, shown) = (Verbatim::new(path), Verbatim::new(rest), Verbatim::new(&whole));
    pass.plain_line(Level::Trace5, format_args!("strip matching prefix: {path} -> {rest}"));
    pass.plain_line(Level::Trace4, format_args!("add subst prefix: {rest} -> {shown}"));
    Some(whole)
}

/// Sets the handler that redirects to the result, which is a path of this server.
fn go_to(pass: Pass<'_>, directory: &Directory) -> Verdict {
    let file = Verbatim::new(&pass.request.resource.filename);
    if pass.request.resource.filename.first() != Some(&b'/') {
        return Verdict::Status(400);
    }
    // A rule without a substitution leaves the file as it is.
    let is_same = |own: &Vec<u8>| *own == pass.request.resource.filename;
    if pass.own_file.as_ref().is_none_or(is_same) {
        let line = format_args!("initial URL equal rewritten URL: {file} [IGNORING REWRITE]");
        pass.line(Level::Trace1, line);
        return Verdict::Ok;
    }
    let target = public_path(&pass, directory);
    pass.request.notes.set(b"redirect-keeps-vary", b"");
    let shown = Verbatim::new(&target);
    let line = format_args!("internal redirect with {shown} [INTERNAL REDIRECT]");
    pass.line(Level::Trace1, line);
    pass.request.resource.filename = [REDIRECT, &target].concat();
    pass.request.handler = Some(Cow::Borrowed(HANDLER.as_bytes()));
    Verdict::Ok
}

/// The URL path of a file: by `RewriteBase`, `DocumentRoot`, or the folder's mapping. If none of
/// them fits, the file's own path.
fn public_path(pass: &Pass<'_>, directory: &Directory) -> Vec<u8> {
    let file = pass.request.resource.filename.as_slice();
    let path = directory.path.as_deref().unwrap_or_default();
    let found = if let Some(base) = directory.base.as_deref() {
        trace_replacing(pass, path, base);
        rebase(pass, file, path, base)
    } else {
        let root = value::document_root(pass.request);
        let rest = file.strip_prefix(root.strip_suffix(b"/").unwrap_or(root));
        let rest = rest.filter(|rest| rest.first() == Some(&b'/'));
        if let Some(rest) = rest {
            let (file, rest) = (Verbatim::new(file), Verbatim::new(rest));
            let line = format_args!("strip document_root prefix: {file} -> {rest}");
            pass.line(Level::Trace2, line);
        }
        rest.map(<[u8]>::to_vec)
    };
    found.or_else(|| by_context(pass, directory)).unwrap_or_else(|| file.to_vec())
}

fn by_context(pass: &Pass<'_>, directory: &Directory) -> Option<Vec<u8>> {
    if directory.common.options().has(Options::IGNORE_CONTEXT_INFO) {
        return None;
    }
    let prefix = pass.request.notes.get(b"CONTEXT_PREFIX").unwrap_or_default();
    let root = value::context_document_root(pass.request);
    let (shown_root, shown) = (Verbatim::new(root), Verbatim::new(prefix));
    let line =
        format_args!("trying to replace context docroot {shown_root} with context prefix {shown}");
    pass.line(Level::Trace2, line);
    rebase(pass, &pass.request.resource.filename, root, prefix)
}

/// The handler: the request starts again with another path.
pub(super) fn handle<'r>(_: Bound<'r, Rewrite>, request: &'r mut Request) -> Step<'r> {
    let Some(path) = request.resource.filename.strip_prefix(REDIRECT) else {
        return Step::DECLINED;
    };
    let target = request.with_query(path.to_vec());
    Step::Pending(Box::pin(async move { internal_redirect(request, &target).await }))
}

/// The last hook of `fixups`: applies the type and handler of `T` and `H` (`hook_mimetype`).
pub(super) fn force_type<'r>(_: Bound<'r, Rewrite>, request: &'r mut Request) -> Step<'r> {
    let trace = Trace::of(request);
    let note = |request: &Request, name| request.notes.get(name).map(<[u8]>::to_vec);
    if let Some(media_type) = note(request, super::act::FORCED_TYPE) {
        let (file, shown) = (Verbatim::new(&request.resource.filename), Verbatim::new(&media_type));
        let line = format_args!("force filename {file} to have MIME-type '{shown}'");
        trace.line(request, Level::Trace1, None, line);
        request.set_trusted_type(media_type);
    }
    if let Some(handler) = note(request, super::act::FORCED_HANDLER) {
        let (file, shown) = (Verbatim::new(&request.resource.filename), Verbatim::new(&handler));
        let line = format_args!("force filename {file} to have the Content-handler '{shown}'");
        trace.line(request, Level::Trace1, None, line);
        request.handler = Some(Cow::Owned(handler));
    }
    Step::OK
}
