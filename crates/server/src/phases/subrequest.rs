//! Subrequests, with their limits, and requests of the server's own in general.
//!
//! Source: `ap_sub_req_method_uri`, `ap_sub_req_lookup_file` (server/request.c).

use std::any::TypeId;
use std::borrow::Cow;

use messages::Message;
use wire::Table;
use wire::method::Method;

use crate::api::filter;
use crate::api::hooks::Verdict;
use crate::config::core::Links;
use crate::explain::{Begun, Event, Kind};
use crate::files::path::StatError;
use crate::files::validity::Trace;
use crate::log::Level;
use crate::phases::changes::{self, LeftToMain};
use crate::phases::process;
use crate::phases::uri_of_file::{parse_uri, query_of_name};
use crate::phases::walk::symlink;
use crate::request::etag::VariantsTag;
use crate::request::filters::InputFilters;
use crate::request::{FileKind, LentSession, MainRequest, ParentSession, Request};

/// Most look-ups of a request's expressions (`-U`, `-F`), and of a subrequest including all within
/// it. Each occupies the loop, and can cause many more.
pub const LOOKUP_LIMIT: u32 = 500;

/// Look-ups of a request, or of a subrequest including all within it, before the loop yields.
const TURN_LOOKUPS: u32 = 16;

/// The default of `LimitInternalRecursion`: internal redirects, and nested subrequests.
pub const RECURSION_LIMIT: u16 = 10;

/// Begins a request of the server's own in a recording.
pub(super) fn record(request: &Request, kind: Kind, name: &[u8]) -> Option<Begun> {
    let recorder = request.engine.recording()?;
    Some(recorder.begin(Event::new(kind, String::from_utf8_lossy(name))))
}

/// Takes over the results of a subrequest without running anything again
/// (`ap_internal_fast_redirect`).
pub fn fast_redirect(request: &mut Request, sub: Request) {
    request.depends_as(&sub);
    let of_input = sub.kept::<InputFilters>().cloned().unwrap_or_default();
    request.resource.uri = sub.resource.uri;
    request.resource.filename = sub.resource.filename;
    request.resource.canonical_filename = sub.resource.canonical_filename;
    request.resource.path_info = sub.resource.path_info;
    request.resource.args = sub.resource.args;
    request.resource.file = sub.resource.file;
    request.resource.proxied = sub.resource.proxied;
    request.handler = sub.handler;
    request.response.content_type = sub.response.content_type;
    request.response.content_encoding = sub.response.content_encoding;
    request.response.content_languages = sub.response.content_languages;
    request.layer = sub.layer;
    request.plan = sub.plan;
    request.body_in.set_limit(request.plan.core.limit_request_body());
    request.copy = sub.copy;
    request.response.no_cache = sub.response.no_cache;
    request.response.no_local_copy = sub.response.no_local_copy;
    // Whatever is set from now on is not in those of the requests before this one.
    request.fork_error_fields();
    overlay(&mut request.response.headers_out, sub.response.headers_out);
    overlay(&mut request.response.err_headers_out, sub.response.err_headers_out);
    request.adopt_filters(sub.response.filters, of_input);
    overlay(&mut request.env, sub.env);
    overlay(&mut request.notes, sub.notes);
    request.take_trace(sub.depends.trace);
    let own = [
        TypeId::of::<VariantsTag>(),
        TypeId::of::<InputFilters>(),
        // Emptied when the subrequest had been looked up.
        TypeId::of::<LeftToMain>(),
        TypeId::of::<ParentSession>(),
    ];
    // Such a request looks for sessions where the first one has them.
    let keeps_session = request.prev.is_some() && request.main.is_none();
    let is_own =
        |of: &TypeId| own.contains(of) || (keeps_session && *of == TypeId::of::<LentSession>());
    let kept = sub.extensions.into_iter().filter(|(of, _)| !is_own(of));
    request.adopt_kept(kept.collect());
}

/// The first of equal names counts where one is read, and all are sent (`apr_table_overlay`).
fn overlay(table: &mut Table, mut first: Table) {
    if table.is_empty() || !first.is_empty() {
        first.extend(table);
        *table = first;
    }
}

/// Looks up a URI like a client's, without running a handler. The subrequest's `status` is 200 if
/// it could be served.
pub async fn lookup_uri(request: &mut Request, uri: &[u8], method: Method) -> Request {
    let mut sub = child_for_uri(request, uri, method);
    finish_lookup(request, &mut sub).await;
    sub
}

/// As [`lookup_uri`], for a response that the request's own filters would get: its quick handlers
/// run (`ap_sub_req_lookup_uri` with `next_filter`).
pub async fn lookup_response(request: &mut Request, uri: &[u8]) -> Request {
    let mut sub = child_for_uri(request, uri, Method::GET);
    look_up_response(request, &mut sub).await;
    sub
}

/// The same with the method of the request, if its body was kept (`ap_sub_req_method_uri`).
pub async fn lookup_response_again(request: &mut Request, uri: &[u8]) -> Request {
    let mut sub = child_for_uri(request, uri, Method::GET);
    if request.body_in.kept().is_some() {
        sub.head.method = request.head.method;
        sub.head.method_name.clone_from(&request.head.method_name);
    }
    look_up_response(request, &mut sub).await;
    sub
}

/// Looks up a subrequest like [`lookup_response`].
pub async fn look_up_response(request: &mut Request, sub: &mut Request) {
    sub.quick_lookup = true;
    finish_lookup(request, sub).await;
}

pub(super) fn child_for_uri(request: &mut Request, uri: &[u8], method: Method) -> Request {
    let mut sub = request.child(uri);
    sub.head.method = method;
    if sub.resource.uri.first() != Some(&b'/') {
        // The URI is still escaped, and the folder that it is relative to is not.
        let mut uri = Vec::new();
        match parent(&request.resource.uri) {
            // A file in a folder below a page has no URI (`ap_make_full_path`).
            b"" => uri.push(b'/'),
            folder => wire::escape::path(&mut uri, folder),
        }
        uri.extend_from_slice(&sub.resource.uri);
        sub.resource.uri = uri;
    }
    sub
}

/// Looks up a file by its name in the request's directory, or by an absolute path. Returns `None`
/// if the name can't be joined.
pub async fn lookup_file(request: &mut Request, name: &[u8]) -> Request {
    let mut sub = child_for_file(request, name);
    parse_uri(&mut sub);
    finish_lookup(request, &mut sub).await;
    sub
}

/// Looks up a name that a listing of the request's directory shows, which is an entry of it.
pub async fn lookup_listed(request: &mut Request, name: &[u8]) -> Request {
    let mut sub = child_for_file(request, name);
    finish_lookup(request, &mut sub).await;
    sub
}

/// Looks up a file below the request's directory by its path. One in a folder has no URI of its
/// own, as a file elsewhere, nor has the directory itself.
pub async fn lookup_below(request: &mut Request, path: &[u8]) -> Request {
    let mut sub = child_for_file(request, path);
    if path.is_empty() || path.contains(&b'/') {
        sub.resource.uri.clear();
        sub.resource.args = query_of_name(path);
    }
    parse_uri(&mut sub);
    finish_lookup(request, &mut sub).await;
    sub
}

/// Looks up an entry of the request's directory, with the rest of the request's path and its query,
/// if it is not empty (`ap_sub_req_lookup_dirent` with `AP_SUBREQ_MERGE_ARGS`). If the entry is a
/// link, the options outside of all sections have to allow it as well.
pub async fn lookup_entry(request: &mut Request, name: &[u8]) -> Request {
    let mut sub = child_for_file(request, name);
    let root = request.engine.plans.root(&request.host);
    let links = request.core_of(&root).options.flags().links();
    if links != Links::Followed {
        request.trace_path(&sub.resource.filename);
        request.depends.trace.iter_mut().for_each(|trace| trace.links_matter = true);
    }
    let stat = symlink::stat(&request.engine, &sub.resource.filename, links);
    // A dangling link is met on the walk, where links are followed.
    if links != Links::Followed && matches!(stat, Err(StatError::SymlinkForbidden)) {
        sub.response.status = 403;
        return sub;
    }
    let path_info = &request.resource.path_info;
    // A folder, behind a link: it may have an index file, but none for a path with more behind it.
    let is_folder = stat.is_ok_and(|stat| stat.kind == FileKind::Directory);
    if is_folder && path_info.is_empty() {
        sub.resource.filename.push(b'/');
        sub.resource.uri.push(b'/');
    } else if is_folder {
        return sub;
    }
    if !path_info.is_empty() {
        let uri = &request.resource.uri;
        let beside = uri.get(..path_info_at(uri, path_info)).unwrap_or_default();
        sub.resource.uri = [&join(beside, name), path_info.as_slice()].concat();
        sub.resource.path_info.clone_from(path_info);
    }
    if request.resource.args.as_ref().is_some_and(|args| !args.is_empty()) {
        sub.inherit_query(request);
    }
    finish_lookup(request, &mut sub).await;
    sub
}

pub(super) fn child_for_file(request: &mut Request, name: &[u8]) -> Request {
    let mut sub = request.child(b"");
    sub.file_lookup = true;
    let directory = parent(&request.resource.filename);
    if name.first() == Some(&b'/') {
        // Only what lies in the request's directory itself has a URI beside the request's own.
        let is_beside =
            |rest: &&[u8]| !directory.is_empty() && !rest.is_empty() && !rest.contains(&b'/');
        let inside = name.strip_prefix(directory).filter(is_beside);
        sub.resource.uri = inside.map_or_else(Vec::new, |rest| join(&request.resource.uri, rest));
        if sub.resource.uri.is_empty() {
            sub.resource.args = query_of_name(name);
        }
        sub.resource.filename = name.to_vec();
    } else {
        sub.resource.filename = [directory, name].concat();
        sub.resource.uri = join(&request.resource.uri, name);
    }
    sub
}

/// Whether a rule may look something up, or a file take its folder's place: at the limit of
/// internal redirects it may not, and the log says so (`ap_is_recursion_limit_exceeded`).
pub fn may_look_up(request: &Request) -> bool {
    let most = request.host.core.max_internal_redirects();
    let may = request.depth.redirects < most;
    if !may {
        request.log_limit(124, most, "internal redirects");
    }
    may
}

pub(super) async fn finish_lookup(request: &mut Request, sub: &mut Request) {
    let most = request.host.core.max_subrequests();
    let lookups = sub.depth.lookups.get_or_insert_default();
    lookups.made.set(lookups.made.get().saturating_add(1));
    let are_too_many = lookups.made.get() > LOOKUP_LIMIT;
    let redirects = request.host.core.max_internal_redirects();
    let is_redirected = request.depth.redirects >= redirects;
    if are_too_many || is_redirected || sub.depth.subrequests > most {
        // Once for all that share the limit, so that the log is not flooded.
        if is_redirected && !lookups.have_logged_depth.replace(true) {
            request.log_limit(124, redirects, "internal redirects");
        } else if !are_too_many && !lookups.have_logged_depth.replace(true) {
            request.log_limit(125, most, "subrequest nesting levels");
        } else if are_too_many && !lookups.have_logged.replace(true) {
            let why = format!("Request exceeded the limit of {LOOKUP_LIMIT} look-ups");
            request.log_core(Level::Error, Message::TooManyLookups.number(), &why, None);
        }
        sub.response.status = 500;
        return;
    }
    request.depth.made += 1;
    let is_turn = |made: u32| made.is_multiple_of(TURN_LOOKUPS);
    if !sub.depth.in_expression && (is_turn(request.depth.made) || is_turn(lookups.made.get())) {
        tokio::task::yield_now().await;
    }
    let asked = if sub.file_lookup { &sub.resource.filename } else { &sub.resource.uri };
    let recorded = record(sub, Kind::Subrequest, asked);
    let verdict = Box::pin(process::look_up(sub)).await;
    // Else it is what a fixup may have set.
    if let Verdict::Status(status) = verdict {
        sub.response.status = status;
    }
    if let Some(recorded) = recorded {
        recorded.end(|event| event.outcome = outcome(sub));
    }
    request.depends_as(sub);
    let looked_at = sub.depends.trace.take();
    request.take_trace(looked_at);
    changes::carry_out(sub, request);
}

/// The outcome of a look-up, for a recording.
fn outcome(sub: &Request) -> String {
    match (sub.response.status, sub.resource.file.kind) {
        (200, FileKind::None) => "does not exist".to_owned(),
        (status, _) => status.to_string(),
    }
}

/// Runs a looked-up subrequest's handler, so that its body can be included (`ap_run_sub_req`).
pub async fn run(sub: &mut Request) -> Verdict {
    Box::pin(crate::phases::handler::produce(sub)).await
}

/// The same, and applies its filters, for a response that includes its body: what the body depends
/// on, the response of `request` does as well.
pub async fn run_within(request: &mut Request, sub: &mut Request) -> Verdict {
    sub.depends.trace = request.depends.trace.as_ref().map(|_| Trace::default());
    let verdict = run(sub).await;
    filter::apply_all(sub).await;
    request.depends_as(sub);
    // A body for one user is for no other.
    request.depends.pure &= sub.user.is_none() && !sub.response.no_cache;
    let looked_at = sub.depends.trace.take();
    request.take_trace(looked_at);
    verdict
}

/// The path up to and including the last slash.
pub(super) fn parent(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    path.get(..end).unwrap_or_default()
}

/// The position in a path of the part that does not name the file: runs of slashes count as one
/// (`ap_find_path_info`).
pub fn path_info_at(uri: &[u8], path_info: &[u8]) -> usize {
    let mut at = uri.len();
    for byte in path_info.iter().rev() {
        if at == 0 || uri.get(at - 1) != Some(byte) {
            break;
        }
        at -= 1;
        while *byte == b'/' && at > 0 && uri.get(at - 1) == Some(&b'/') {
            at -= 1;
        }
    }
    let rest = uri.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len())
}

fn join(base: &[u8], uri: &[u8]) -> Vec<u8> {
    if uri.first() == Some(&b'/') { uri.to_vec() } else { [parent(base), uri].concat() }
}

impl Request {
    /// A subrequest for `uri`.
    fn child(&mut self, uri: &[u8]) -> Request {
        let place = self.engine.plans.place(&self.host);
        let mut sub = Request::blank(self.engine.clone(), self.connection.clone(), place);
        self.derive(&mut sub, uri);
        sub.matching = self.matching.share();
        sub.head.method = Method::GET;
        sub.head.method_name = Cow::Borrowed(b"GET");
        sub.main = Some(Box::new(MainRequest {
            plan: self.plan.clone(),
            copy: self.copy,
            if_walks: self.if_walks.clone(),
            uri: self.resource.uri.clone(),
            filename: self.resource.filename.clone(),
            kind: self.resource.file.kind,
            walked: match self.engine.server.registry.hooks.merges_by_uri {
                true => self.resource.canonical_filename.clone(),
                false => Vec::new(),
            },
            user: self.user.clone(),
            auth_type: self.auth_type.clone(),
            lent: self.lends(),
            login: self.login().cloned(),
            has_other_method: false,
        }));
        sub.env.extend(&self.env);
        sub.depth.subrequests += 1;
        sub.depth.made = 0;
        if self.main.is_none() {
            sub.depth.lookups = None;
        }
        match self.body_in.again() {
            Some(body) => sub.body_in = body,
            None => {
                for field in [&b"Content-Length"[..], b"Transfer-Encoding"] {
                    sub.head.headers_in.unset(field);
                }
            }
        }
        for field in [&b"Range"[..], b"If-Match", b"If-Modified-Since"] {
            sub.head.headers_in.unset(field);
        }
        for field in [&b"If-None-Match"[..], b"If-Unmodified-Since"] {
            sub.head.headers_in.unset(field);
        }
        sub.depends.trace = self.depends.trace.as_ref().map(|_| Trace::default());
        sub
    }
}
