//! Which script a request runs, where, and with what settings.

use std::sync::Arc;

use server::core::OptionFlags;
use server::errorlog::Verbatim;
use server::log::Level;
use server::request::{FileKind, PathInfoUse, Request};

use super::alias::ScriptAlias;
use super::environ::split_path;
use super::runtime::{Group, Runtime};
use super::script::{HandlerScript, Selector, host_name};
use super::{Bound, HANDLER, Wsgi, owner};

/// The name of an application in its script.
pub(super) const CALLABLE: &[u8] = b"application";

/// The function of a handler script.
const HANDLE: &[u8] = b"handle_request";

/// What runs for a request.
pub(super) struct Target {
    pub script: Vec<u8>,
    pub process_group: Vec<u8>,
    pub application_group: Vec<u8>,
    pub callable: Vec<u8>,
    pub passes_authorization: bool,
    pub handler: Vec<u8>,
    pub handler_script: Vec<u8>,
}

/// Logs an error about a script, and returns the status.
///
/// Source: `wsgi_log_script_error`
pub(super) fn refuse(request: &Request, status: u16, text: &str) -> u16 {
    let file = Verbatim::new(&request.resource.filename);
    request.log::<Wsgi>(Level::Error, 0, format_args!("{text}: {file}"));
    status
}

/// Whether a request may run its file as a script.
///
/// Source: `wsgi_hook_handler`
pub(super) fn check_script(request: &Request) -> Result<(), u16> {
    let flags = request.plan.core.options.flags();
    if !flags.has(OptionFlags::EXEC_CGI) && !is_aliased(request) {
        return Err(refuse(request, 403, "Options ExecCGI is off in this directory"));
    }
    match request.resource.file.kind {
        FileKind::None => {
            Err(refuse(request, 404, "Target WSGI script not found or unable to stat"))
        }
        FileKind::Directory => {
            Err(refuse(request, 403, "Attempt to invoke directory as WSGI application"))
        }
        _ => Ok(()),
    }
}

/// Source: `wsgi_is_script_aliased`
fn is_aliased(request: &Request) -> bool {
    let kind = request.notes.get(b"alias-forced-type");
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(HANDLER.as_bytes()))
}

/// What holds for scripts and handlers alike: the path behind the script, and the body.
pub(super) fn check_request(bound: Bound<'_, Wsgi>, request: &Request) -> Result<(), u16> {
    let is_refused = request.plan.core.accept_path_info.get() == Some(&PathInfoUse::Reject);
    if is_refused && !request.resource.path_info.is_empty() {
        return Err(refuse(request, 404, "AcceptPathInfo off disallows user's path"));
    }
    if let Some(coding) = request.head.headers_in.get(b"Transfer-Encoding") {
        if !coding.eq_ignore_ascii_case(b"chunked") {
            let coding = Verbatim::new(coding);
            let text = format!(
                "Unexpected value for Transfer-Encoding of '{coding}' supplied. Only 'chunked' \
                 supported."
            );
            return Err(refuse(request, 501, &text));
        }
        if !bound.dir.chunked_request.or(false) {
            let text = "Received request requiring chunked transfer encoding, but optional \
                        support for chunked transfer encoding has not been enabled.";
            return Err(refuse(request, 411, text));
        }
    }
    if request.body_in.is_over_limit() {
        return Err(refuse(request, 413, "Request content length is too large"));
    }
    Ok(())
}

impl Target {
    /// The script of a request's file.
    pub fn of_script(bound: Bound<'_, Wsgi>, request: &Request) -> Target {
        let alias = request.kept::<ScriptAlias>().filter(|_| is_aliased(request));
        let of_alias = |field: fn(&ScriptAlias) -> &Option<Arc<Selector>>| {
            alias.and_then(|alias| field(alias).clone())
        };
        let dir = bound.dir;
        let process_group = of_alias(|alias| &alias.process_group);
        let application_group = of_alias(|alias| &alias.application_group);
        let callable = of_alias(|alias| &alias.callable).or_else(|| dir.callable.get().cloned());
        let passes = alias.and_then(|alias| alias.pass_authorization);
        let script = request.resource.filename.clone();
        let mut target = Target::new(bound, request, script, process_group, application_group);
        let callable = callable.and_then(|callable| callable.callable(request));
        target.callable = callable.unwrap_or_else(|| CALLABLE.to_vec());
        target.passes_authorization = passes.unwrap_or(target.passes_authorization);
        target.handler = request.handler.as_deref().unwrap_or_default().to_vec();
        target
    }

    /// The script of a handler.
    pub fn of_handler(bound: Bound<'_, Wsgi>, request: &Request, script: &HandlerScript) -> Target {
        let (process, application) =
            (script.process_group.clone(), script.application_group.clone());
        let path = script.path.clone();
        let mut target = Target::new(bound, request, path.clone(), process, application);
        target.callable = HANDLE.to_vec();
        target.passes_authorization =
            script.pass_authorization.unwrap_or(target.passes_authorization);
        target.handler = request.handler.as_deref().unwrap_or_default().to_vec();
        target.handler_script = path;
        target
    }

    fn new(
        bound: Bound<'_, Wsgi>,
        request: &Request,
        script: Vec<u8>,
        process_group: Option<Arc<Selector>>,
        application_group: Option<Arc<Selector>>,
    ) -> Target {
        let (script_name, _) = split_path(request);
        let dir = bound.dir;
        let process_group = process_group.or_else(|| dir.process_group.get().cloned());
        let application_group = application_group.or_else(|| dir.application_group.get().cloned());
        let application_group = application_group.unwrap_or_else(|| Arc::new(Selector::Resource));
        Target {
            script,
            process_group: process_group
                .map(|group| group.process_group(request))
                .unwrap_or_default(),
            application_group: application_group.application_group(request, &script_name),
            callable: Vec::new(),
            passes_authorization: dir.pass_authorization.or(false)
                || request.plan.core.cgi_pass_auth.or(false),
            handler: Vec::new(),
            handler_script: Vec::new(),
        }
    }

    /// The process group, if the request may use it.
    ///
    /// Source: `wsgi_execute_remote`
    pub fn group<'r>(
        &self,
        bound: Bound<'_, Wsgi>,
        request: &Request,
        runtime: &'r Runtime,
    ) -> Result<&'r Group, u16> {
        let name = Verbatim::new(&self.process_group);
        let restricted = &bound.dir.restricted;
        if !restricted.is_empty() && !restricted.contains(&self.process_group) {
            let text = format!(
                "Daemon process called '{name}' cannot be accessed by this WSGI application as \
                 not a member of allowed groups"
            );
            return Err(refuse(request, 500, &text));
        }
        let Some(group) = runtime.find(&self.process_group) else {
            let text = format!("No WSGI daemon process called '{name}' has been configured");
            return Err(refuse(request, 500, &text));
        };
        if group.host.as_ref().is_some_and(|host| *host != host_name(&request.host)) {
            let text = format!(
                "Daemon process called '{name}' cannot be accessed by this WSGI application"
            );
            return Err(refuse(request, 500, &text));
        }
        match &group.daemon {
            None if bound.server.python.0.no_embedded == Some(true) => {
                let text = "Embedded mode of mod_wsgi disabled by runtime configuration.";
                Err(refuse(request, 500, text))
            }
            Some(daemon) => {
                if let Some(wanted) = daemon.script_owner {
                    owner::check(&self.script, wanted).map_err(|why| refuse(request, 403, why))?;
                }
                Ok(group)
            }
            None => Ok(group),
        }
    }
}
