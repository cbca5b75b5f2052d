//! Whether a request is filtered, and the order to start its program.
//!
//! Source: `init_filter_instance`, `init_ext_filter_process`.

use std::sync::Arc;

use mpm::Line;
use rustix::fs::{Access, access};
use rustix::io::Errno;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::uri::{Slashes, unescape_url};

use super::{Definition, ExtFilter};
use crate::arch::mod_unixd::spawner;
use crate::util_script::error_lines::ErrorLines;
use crate::util_script::program::order;
use crate::util_script::shell_escaped;
use crate::util_script::variables::{add_cgi, add_common};

/// What starts a filter's program.
pub(super) struct Start {
    /// The line to the companion.
    pub line: Arc<Line>,
    /// The order.
    pub order: Vec<u8>,
    /// The program's messages.
    pub lines: ErrorLines,
    /// Whether the messages are logged.
    pub logs_errors: bool,
}

/// The definition of a filter for the request's host.
///
/// # Errors
/// `INVAL`, which has been logged, if the host has none.
pub(super) fn find(request: &Request, name: &str) -> Result<Definition, Errno> {
    let settings = request.server_of::<ExtFilter>();
    let found = settings.and_then(|settings| settings.filters.get(name.as_bytes()));
    found.cloned().ok_or_else(|| {
        let text = format_args!("couldn't find definition of filter '{name}'");
        request.log::<ExtFilter>(Level::Error, 1459, text);
        Errno::INVAL
    })
}

/// Whether the program runs for a request, whose body, or whose response's, has this media type.
pub(super) fn applies(request: &Request, filter: &Definition, media_type: Option<&[u8]>) -> bool {
    let bare = media_type.map(|text| text.split(|byte| *byte == b';').next().unwrap_or_default());
    let fits = |wanted: &Vec<u8>| bare.is_some_and(|bare| bare.eq_ignore_ascii_case(wanted));
    let is_set = |name: &Vec<u8>| request.env.contains(name);
    filter.in_type.as_ref().is_none_or(fits)
        && filter.enabled_by.as_ref().is_none_or(is_set)
        && !filter.disabled_by.as_ref().is_some_and(is_set)
}

/// Adds the variables that a program gets to those of the request.
pub(super) async fn add_variables(request: &mut Request) {
    add_common::<ExtFilter>(request).await;
    add_cgi(request).await;
    let query = request.query().map(<[u8]>::to_vec);
    let Request { env, resource, .. } = request;
    env.set(b"DOCUMENT_URI", &resource.uri);
    env.set(b"DOCUMENT_PATH_INFO", &resource.path_info);
    if let Some(mut query) = query {
        // Whatever it contains.
        let _ = unescape_url(&mut query, Slashes::Decode);
        let text = query.split(|byte| *byte == 0).next().unwrap_or_default();
        env.set(b"QUERY_STRING_UNESCAPED", &shell_escaped(text));
    }
}

/// What starts the program for a request, whose variables are complete.
///
/// # Errors
/// The reason why the program can't be started, which has been logged.
pub(super) fn start(request: &Request, filter: &Definition) -> Result<Start, Errno> {
    let program = filter.words.first().map(Vec::as_slice);
    // Apache passes no name to access(2).
    let name = Verbatim::new(program.unwrap_or(b"(null)"));
    let spawner = spawner::of(request);
    let found = program.ok_or(Errno::FAULT).and_then(|program| {
        access(program, Access::READ_OK | Access::EXEC_OK)?;
        spawner.map(|spawner| (program, spawner)).ok_or(Errno::NOTCONN)
    });
    let (program, spawner) = found.inspect_err(|errno| {
        let text = format_args!("couldn't create child process to run `{name}'");
        request.log_error::<ExtFilter>(Level::Error, 1458, *errno, text);
    })?;
    let words: Vec<&[u8]> = filter.words.iter().map(Vec::as_slice).collect();
    let here = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let folder = here.as_os_str().as_encoded_bytes();
    Ok(Start {
        line: spawner.line.clone(),
        order: order(request, folder, program, &words),
        lines: ErrorLines::new(request, "mod_ext_filter.c", 0, program),
        logs_errors: request.dir_of::<ExtFilter>().is_some_and(|dir| dir.logs_errors.or(false)),
    })
}

/// Logs what happens to a request, at `trace1`.
///
/// Source: `get_cfg_string`
pub(super) fn trace(request: &Request, filter: &Definition, is_filtered: bool) {
    if !request.logs::<ExtFilter>(Level::Trace1) {
        return;
    }
    let dir = request.dir_of::<ExtFilter>();
    let logs_errors = dir.is_some_and(|dir| dir.logs_errors.or(false));
    let shown = |text: &Option<Vec<u8>>, none: &str| match text {
        Some(text) => String::from_utf8_lossy(text).into_owned(),
        None => none.to_owned(),
    };
    let command = filter.words.first().map(Vec::as_slice).unwrap_or(b"(null)");
    let text = format_args!(
        "{}filtering `{}' of type `{}' through `{}', cfg ExtFilterOptions {} {} ExtFilterInType \
         {} ExtFilterOuttype {}",
        if is_filtered { "" } else { "NOT " },
        Verbatim::new(&request.resource.uri),
        shown(&request.response.content_type, "(unspecified)"),
        Verbatim::new(command),
        if logs_errors { "LogStderr" } else { "NoLogStderr" },
        if filter.preserves_length { "PreservesContentLength" } else { "!PreserveContentLength" },
        shown(&filter.in_type, "*/*"),
        shown(&filter.out_type, "(unchanged)"),
    );
    request.log::<ExtFilter>(Level::Trace1, 0, text);
}

/// Logs that a filter can't be used; returns whether it is left out, instead of the request
/// failing.
pub(super) fn is_removed(request: &Request, name: &str, errno: Errno, is_input: bool) -> bool {
    let removes = request.dir_of::<ExtFilter>().is_some_and(|dir| dir.removes.or(false));
    let what = if removes { "removing" } else { "aborting" };
    let (number, kind) = if is_input { (1470, "input") } else { (1467, "output") };
    let text = format_args!("can't initialise {kind} filter {name}: {what}");
    request.log_error::<ExtFilter>(Level::Error, number, errno, text);
    removes
}
