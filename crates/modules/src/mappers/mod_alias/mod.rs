//! mod_alias: maps parts of the URL space to other places on disk or to other servers.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_alias.html>

mod entry;
mod rows;

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use conf::Span;
use conf::expr::Expr;
use server::directive::Row;
use server::errorlog::Verbatim;
use server::expr;
use server::hooks::{Bound, Hooks, Phase, Rank, Step, Verdict};
use server::log::Level;
use server::matching::{self, Stop};
use server::merge::{Prepend, Setting};
use server::module::Module;
use server::path;
use server::request::Request;

use super::set_context;
pub(crate) use entry::prefix_length;
use entry::{Alias as AliasEntry, Pattern, Redirect, Unknown, escape_target};

/// `mod_alias.c`
pub struct Alias;

server::config! {
    /// Server configuration.
    pub struct Settings {
        /// `Alias`, `AliasMatch`, `ScriptAlias`, `ScriptAliasMatch`
        aliases: Prepend<AliasEntry>,
        /// `Redirect` and its family, outside of sections.
        redirects: Prepend<Redirect>,
    }
}

server::config! {
    /// Per-directory configuration.
    pub struct Directory {
        /// `Redirect` and its family with a prefix or pattern, in sections.
        redirects: Prepend<Redirect>,
        /// `Alias` of a whole `<Location>`.
        alias: Setting<Arc<Whole>>,
        /// `Redirect` of a whole section: the status, and the target if the status has one.
        redirect: Setting<(u16, Option<Arc<Expr>>)>,
        /// `RedirectRelative`
        relative: Setting<bool>,
        /// `AliasPreservePath`
        preserve_path: Setting<bool>,
    }
}

/// `Alias` or `ScriptAlias` of a whole `<Location>`.
#[derive(Debug, PartialEq)]
struct Whole {
    /// The path of the section.
    path: Vec<u8>,
    /// The file or folder.
    target: Expr,
    /// The handler to set.
    handler: Option<&'static str>,
}

impl Module for Alias {
    const NAME: &'static str = "alias_module";
    const FILE: &'static str = "mod_alias.c";
    type Server = Settings;
    type Dir = Directory;
    const DIRECTIVES: &'static [Row<Alias>] = rows::ROWS;

    fn hooks(hooks: &mut Hooks<'_, Self>) {
        // If an expression is involved, its evaluation makes the request impure.
        hooks
            .on(Phase::TranslateName, Rank::MIDDLE, maps, translate)
            .before(&["mod_userdir.c", "mod_vhost_alias.c"])
            .pure();
        hooks.on(Phase::Fixups, Rank::MIDDLE, redirects, fixup).pure();
    }
}

fn maps(alias: Bound<'_, Alias>) -> bool {
    let (server, dir) = (alias.server, alias.dir);
    !server.aliases.is_empty()
        || !server.redirects.is_empty()
        || dir.alias.is_set()
        || dir.redirect.is_set()
}

fn redirects(alias: Bound<'_, Alias>) -> bool {
    !alias.dir.redirects.is_empty() || alias.dir.redirect.is_set()
}

/// Source: `translate_alias_redir`
fn translate<'r>(alias: Bound<'r, Alias>, request: &'r mut Request) -> Step<'r> {
    if !matches!(request.resource.uri.first(), None | Some(b'/')) {
        return Step::DECLINED;
    }
    matching::settle(request, move |request| {
        if let Some(found) = find_redirect(alias.dir, &alias.server.redirects, request)? {
            let status = answer(alias.dir, request, found, 673);
            // Apache takes the path of the URL for that of a file then, which mostly is not there.
            return Ok(Verdict::Status(if status == NO_STATUS { 404 } else { status }));
        }
        let Some(file) = find_file(alias, request)? else { return Ok(Verdict::Declined) };
        request.resource.canonical_filename.clone_from(&file);
        request.resource.filename = file;
        Ok(Verdict::Ok)
    })
}

/// Applies redirects of sections and `.htaccess`, once all of them are known.
fn fixup<'r>(alias: Bound<'r, Alias>, request: &'r mut Request) -> Step<'r> {
    matching::settle(request, move |request| {
        let found = find_redirect(alias.dir, &alias.dir.redirects, request)?;
        Ok(match found.map(|found| answer(alias.dir, request, found, 675)) {
            None | Some(NO_STATUS) => Verdict::Declined,
            Some(status) => Verdict::Status(status),
        })
    })
}

/// The status of a redirect that is none (`Redirect 0`).
const NO_STATUS: u16 = 0;

/// A redirect that applies: its status and target, which is empty for a status without one.
type Found = (u16, Vec<u8>);

fn find_redirect(
    dir: &Directory,
    list: &[Redirect],
    request: &mut Request,
) -> Result<Option<Found>, Stop> {
    if let Some((status, target)) = dir.redirect.get() {
        let Some(target) = target else { return Ok(Some((*status, Vec::new()))) };
        let target = expr::string(target, request).map_err(|why| {
            let message = format_args!("Can't evaluate redirect expression: {why}");
            request.log::<Alias>(Level::Error, 2825, message);
            500u16
        })?;
        return Ok(Some((*status, escape_target(&target))));
    }
    for redirect in list {
        match redirect.apply(request) {
            Ok(None) => {}
            Ok(Some(target)) => {
                record(request, redirect.span);
                if let Pattern::Prefix(prefix) = &redirect.from {
                    set_context(request, Some(prefix), redirect.target.as_deref());
                }
                return Ok(Some((redirect.status, target)));
            }
            Err(Unknown::Later) => return Err(Stop::Later),
            // An undecided match must not serve a file that may be forbidden. If the redirect has a
            // target, the file is served.
            Err(Unknown::Undecided) if redirect.target.is_none() => return Err(Stop::Status(500)),
            Err(Unknown::Undecided) => {}
            Err(Unknown::TooLong) => {
                return Err(Stop::Status(too_long(request, redirect.target.as_deref())));
            }
        }
    }
    Ok(None)
}

fn record(request: &Request, span: Span) {
    if let Some(recorder) = request.engine.recording() {
        recorder.directive(b"Location", span);
    }
}

/// Sets `Location` if the status has a target, and returns the status of the response. `number` is
/// that of the message about a target without a host; the next one's is about one that is no URL.
fn answer(dir: &Directory, request: &mut Request, (status, mut target): Found, number: u32) -> u16 {
    if !wire::status::is_redirect(status) {
        return status;
    }
    let is_path = target.first() == Some(&b'/');
    if is_path && !dir.relative.or(false) {
        let whole = request.construct_url(&target);
        let (uri, path, url) =
            (Verbatim::new(&request.resource.uri), Verbatim::new(&target), Verbatim::new(&whole));
        request.log::<Alias>(
            Level::Debug,
            number,
            format_args!(
                "incomplete redirection target of '{path}' for URI '{uri}' modified to '{url}'"
            ),
        );
        target = whole;
    }
    if !is_path && !entry::is_url(&target) {
        let (uri, target) = (Verbatim::new(&request.resource.uri), Verbatim::new(&target));
        request.log::<Alias>(
            Level::Error,
            number + 1,
            format_args!(
                "cannot redirect '{uri}' to '{target}'; target is not a valid absoluteURI or \
                 abs_path"
            ),
        );
        return 500;
    }
    if let Some(args) = request.query()
        && !target.contains(&b'?')
    {
        target.push(b'?');
        target.extend_from_slice(args);
    }
    request.response.headers_out.set(b"Location", &target);
    status
}

/// The file of an alias; `None` without an alias, or if the result is not a path or too long.
fn find_file(alias: Bound<'_, Alias>, request: &mut Request) -> Result<Option<Vec<u8>>, Stop> {
    if let Some(whole) = alias.dir.alias.get() {
        let mut found = expr::string(&whole.target, request).map_err(|why| {
            let message = format_args!("Can't evaluate alias expression: {why}");
            request.log::<Alias>(Level::Error, 2826, message);
            500u16
        })?;
        if alias.dir.preserve_path.or(false)
            && let Some(length) = entry::prefix_length(&request.resource.uri, &whole.path)
        {
            set_context(request, Some(&whole.path), Some(&found));
            found.extend_from_slice(request.resource.uri.get(length..).unwrap_or_default());
        }
        return Ok(mapped(request, whole.handler, &found));
    }
    for entry in alias.server.aliases.iter() {
        match entry.apply(request) {
            Ok(None) | Err(Unknown::Undecided) => {}
            Err(Unknown::Later) => return Err(Stop::Later),
            Ok(Some(found)) => {
                record(request, entry.span);
                if let Pattern::Prefix(prefix) = &entry.from {
                    set_context(request, Some(prefix), Some(&entry.target));
                }
                return Ok(mapped(request, entry.handler, &found));
            }
            Err(Unknown::TooLong) => {
                return Err(Stop::Status(too_long(request, Some(&entry.target))));
            }
        }
    }
    Ok(None)
}

/// The file of an alias, and its handler. A name that is too long becomes that of a document, which
/// the handler must not execute.
fn mapped(request: &mut Request, handler: Option<&'static str>, found: &[u8]) -> Option<Vec<u8>> {
    let file = below_server_root(request, found)?;
    if let Some(handler) = handler {
        request.handler = Some(Cow::Borrowed(handler.as_bytes()));
        request.notes.set(b"alias-forced-type", handler.as_bytes());
    }
    Some(file)
}

fn too_long(request: &Request, target: Option<&[u8]>) -> u16 {
    let target = Verbatim::new(target.unwrap_or_default());
    let message = format_args!("Regex substitution in '{target}' failed. Replacement too long?");
    request.log::<Alias>(Level::Error, 672, message);
    500
}

fn below_server_root(request: &Request, found: &[u8]) -> Option<Vec<u8>> {
    path::below_root(request.engine.server.server_root.as_os_str().as_bytes(), found)
}
