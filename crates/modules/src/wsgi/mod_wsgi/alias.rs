//! `WSGIScriptAlias`: which paths are scripts.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use conf::Span;
use pcre::{Captures, MAX_SUBSTITUTION_BYTES, Matched, Regex, substitute};
use server::hooks::{Bound, Step, Verdict};
use server::log::Level;
use server::matching::{self, Stop};
use server::path;
use server::request::Request;

use super::script::{Import, Selector};
use super::{HANDLER, Wsgi};
use crate::mappers::mod_alias::prefix_length;

/// What a path is matched with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pattern {
    /// A path and everything below it.
    Prefix(Vec<u8>),
    /// A regular expression.
    Regex(Regex),
}

/// `WSGIScriptAlias`, `WSGIScriptAliasMatch`
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ScriptAlias {
    pub span: Span,
    pub from: Pattern,
    /// The script, or the folder of scripts.
    pub target: Vec<u8>,
    pub process_group: Option<Arc<Selector>>,
    pub application_group: Option<Arc<Selector>>,
    pub callable: Option<Arc<Selector>>,
    pub pass_authorization: Option<bool>,
}

impl ScriptAlias {
    /// What processes load at their start: the script, if both groups are known by then.
    pub fn preloaded(&self) -> Option<Import> {
        let name = |group: &Option<Arc<Selector>>| match group.as_deref() {
            Some(Selector::Name(name)) => Some(name.clone()),
            _ => None,
        };
        let is_script = matches!(self.from, Pattern::Prefix(_)) && !self.target.ends_with(b"/");
        let (process_group, application_group) =
            (name(&self.process_group)?, name(&self.application_group)?);
        is_script.then(|| Import {
            span: self.span,
            path: self.target.clone(),
            process_group,
            application_group,
        })
    }
}

/// Source: `wsgi_hook_intercept`
pub(super) fn translate<'r>(bound: Bound<'r, Wsgi>, request: &'r mut Request) -> Step<'r> {
    if !matches!(request.resource.uri.first(), Some(b'/')) {
        return Step::DECLINED;
    }
    matching::settle(request, move |request| {
        for alias in bound.server.aliases.iter() {
            let Some(found) = apply(alias, request)? else { continue };
            if let Some(recorder) = request.engine.recording() {
                recorder.directive(b"Location", alias.span);
            }
            let root = request.engine.server.server_root.as_os_str().as_bytes();
            // A name that is too long must not become that of a document.
            let Some(file) = path::below_root(root, &found) else { return Err(Stop::Status(403)) };
            request.handler = Some(Cow::Borrowed(HANDLER.as_bytes()));
            request.notes.set(b"alias-forced-type", HANDLER.as_bytes());
            request.keep(alias.clone());
            request.resource.canonical_filename.clone_from(&file);
            request.resource.filename = file;
            return Ok(Verdict::Ok);
        }
        Ok(Verdict::Declined)
    })
}

/// The file for a request's path.
fn apply(alias: &ScriptAlias, request: &mut Request) -> Result<Option<Vec<u8>>, Stop> {
    let uri = request.resource.uri.as_slice();
    let regex = match &alias.from {
        Pattern::Prefix(prefix) => {
            // The root's own slash begins the path behind the script.
            let length = match prefix.as_slice() {
                b"/" => Some(0),
                prefix => prefix_length(uri, prefix),
            };
            let rest = length.map(|length| uri.get(length..).unwrap_or_default());
            return Ok(rest.map(|rest| [&alias.target, rest].concat()));
        }
        Pattern::Regex(regex) => regex,
    };
    let mut captures = Captures::new();
    match request.matches(regex, uri, Some(&mut captures)).map_err(|_| Stop::Later)? {
        Matched::Yes => {}
        Matched::No | Matched::Undecided(_) => return Ok(None),
    }
    let mut found = Vec::new();
    let end = captures.range(0).map_or(0, |matched| matched.end);
    if end == 0 {
        return Ok(None);
    }
    // What follows the match is below the script; all of it below that of the root.
    let rest = if uri.get(..end) == Some(b"/") { 0 } else { end };
    match substitute(&alias.target, uri, &captures, MAX_SUBSTITUTION_BYTES, &mut found) {
        Ok(()) => {
            found.extend_from_slice(uri.get(rest..).unwrap_or_default());
            Ok(Some(found))
        }
        Err(_) => {
            let target = bstr::BStr::new(&alias.target);
            let text = format_args!("Regex substitution in '{target}' failed.");
            request.log::<Wsgi>(Level::Error, 0, text);
            Err(Stop::Status(500))
        }
    }
}
