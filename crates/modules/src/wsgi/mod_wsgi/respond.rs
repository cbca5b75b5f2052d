//! Runs an application for a request, and makes the response of what it sends.
//!
//! Source: `wsgi_hook_handler`, `wsgi_execute_remote`, `wsgi_transfer_response`

use bytes::Bytes;
use server::body::Body;
use server::errorlog::Verbatim;
use server::errors::NoStatus;
use server::hooks::{Bound, Step, Verdict};
use server::request::Request;
use wire::table::Overlap;
use wire::wsgi::{ResponseHead, WsgiFault};

use super::body::{Beginning, Output, Unread, beginning};
use super::conversation::{Broken, Conversation, Next, parsed};
use super::counts::Counted;
use super::environ::{self, About};
use super::message::request_head;
use super::runtime::{self, Group, Runtime, Unavailable, Waits};
use super::script::Selector;
use super::target::{Target, check_request, check_script, refuse};
use super::{Wsgi, access};
use crate::proxy::mod_proxy::relay::Announced;
use crate::util_script::prompt::Prompt;
use crate::util_script::redirect::to_local;

/// How often a request is given to another worker because one was about to end.
const RETRIES: usize = 200;

/// The longest head of a response.
const HEAD_BYTES: usize = 1 << 20;

pub(super) fn handle<'r>(bound: Bound<'r, Wsgi>, request: &'r mut Request) -> Step<'r> {
    Step::Pending(Box::pin(async move {
        if let Err(status) = check_script(request) {
            return Verdict::Status(status);
        }
        let target = Target::of_script(bound, request);
        verdict(respond(bound, request, target).await)
    }))
}

/// The handlers of `WSGIHandlerScript`.
pub(super) fn handle_named<'r>(bound: Bound<'r, Wsgi>, request: &'r mut Request) -> Step<'r> {
    let name = request.handler.as_deref().unwrap_or_default();
    let Some(script) = bound.dir.handlers.get(name) else { return Step::DECLINED };
    Step::Pending(Box::pin(async move {
        let target = Target::of_handler(bound, request, script);
        verdict(respond(bound, request, target).await)
    }))
}

fn verdict(outcome: Result<Verdict, u16>) -> Verdict {
    outcome.unwrap_or_else(Verdict::Status)
}

async fn respond(
    bound: Bound<'_, Wsgi>,
    request: &mut Request,
    mut target: Target,
) -> Result<Verdict, u16> {
    check_request(bound, request)?;
    if bound.dir.dispatch.is_set() {
        access::dispatch(bound, request, &mut target).await?;
    }
    let handle = bound.server.runtime.0.clone();
    let Some(runtime) = handle.get() else {
        return Err(refuse(request, 500, "Only a running server runs applications"));
    };
    let group = target.group(bound, request, runtime)?;
    environ::add(bound, request, &About::of(&target)).await;
    let (conversation, response) = begin(bound, request, (runtime, group), &target).await?;
    let response = match parsed(&response) {
        Ok(response) => response,
        Err(broken) => return Err(failed(request, &target, &broken)),
    };
    let is_daemon = group.daemon.is_some();
    if group.limits.field_bytes.is_some_and(|most| has_long_field(&response, most)) {
        let name = Verbatim::new(&target.process_group);
        return Err(refuse(request, 500, &format!("{TRUNCATED} '{name}'")));
    }
    let length = put(request, &response, is_daemon);
    let is_error = (400..600).contains(&request.response.status);
    if is_daemon && is_error && bound.dir.error_override.or(false) {
        drop(conversation);
        let status = request.response.status;
        (request.response.status, request.response.status_line) = (200, None);
        request.response.content_type = None;
        return Err(status);
    }
    if let Some(location) = local_redirect(request, is_daemon) {
        drop(conversation);
        return Ok(to_local(request, &location).await);
    }
    give_body(request, conversation, length, is_daemon).await
}

impl About<'_> {
    fn of(target: &Target) -> About<'_> {
        About {
            process_group: &target.process_group,
            application_group: &target.application_group,
            callable: &target.callable,
            handler: &target.handler,
            handler_script: &target.handler_script,
            passes_authorization: target.passes_authorization,
        }
    }
}

/// Gives the request to a worker, and waits for the head of the response.
async fn begin(
    bound: Bound<'_, Wsgi>,
    request: &mut Request,
    (runtime, group): (&Runtime, &Group),
    target: &Target,
) -> Result<(Conversation, Vec<u8>), u16> {
    let sees_files = group.daemon.as_ref().is_none_or(|daemon| daemon.chroot.is_none());
    for _ in 0..RETRIES {
        let head = request_head(bound, request, target, sees_files)?;
        let mut conversation = open(request, runtime, group, &target.application_group, &head)
            .await
            .map_err(|error| unavailable(request, target, &error))?;
        // Its memory is that of the next request's.
        drop(head);
        conversation.give_body(std::mem::take(&mut request.body_in));
        match conversation.next().await {
            Ok(Next::Head(response)) => return Ok((conversation, response)),
            Ok(Next::Retry) => request.body_in = conversation.take_body().unwrap_or_default(),
            Ok(Next::Failed(status)) => {
                request.body_in = conversation.take_body().unwrap_or_default();
                // A daemon process does not tell that a script has no application.
                return Err(if group.daemon.is_some() && status == 404 { 500 } else { status });
            }
            Ok(_) => return Err(failed(request, target, &WsgiFault::Truncated.into())),
            Err(broken) => {
                request.body_in = conversation.take_body().unwrap_or_default();
                return Err(failed(request, target, &broken));
            }
        }
    }
    Err(refuse(request, 500, "Maximum number of WSGI daemon process restart connects reached"))
}

/// Sends a message to a group.
pub(super) async fn open(
    request: &mut Request,
    runtime: &Runtime,
    group: &Group,
    application: &[u8],
    head: &[u8],
) -> Result<Conversation, Unavailable> {
    let counted = Counted::new(group.counts);
    let (link, taken) = group.send(request, &runtime.line, application, head).await?;
    let timeout = request.host.core.timeout();
    // Embedded mode has no limit but that some process takes the request.
    let mut waits = Waits { queue: Some(timeout), piece: None };
    if group.daemon.is_some() {
        let piece = group.limits.piece.unwrap_or(timeout);
        waits = Waits { queue: group.limits.queued, piece: Some(piece) };
    }
    let rest = head.get(taken..).unwrap_or_default();
    Ok(Conversation::new(request, (link, rest), waits, HEAD_BYTES, counted))
}

/// Logs why a request can't be given to a worker; returns the status.
pub(super) fn unavailable(request: &Request, target: &Target, error: &Unavailable) -> u16 {
    let name = Verbatim::new(&target.process_group);
    let text = format!("Unable to connect to WSGI daemon process '{name}': {error}");
    match error {
        Unavailable::Io(error) if error.kind() == std::io::ErrorKind::TimedOut => {
            refuse(request, 504, &text)
        }
        _ => refuse(request, 503, &text),
    }
}

/// Logs why there is no response; returns the status.
fn failed(request: &Request, target: &Target, broken: &Broken) -> u16 {
    let name = Verbatim::new(&target.process_group);
    match broken {
        Broken::Queued => {
            let text = format!("Timeout before daemon process '{name}' took the request");
            refuse(request, 504, &text)
        }
        Broken::Late => {
            let text =
                format!("Timeout when reading response headers from daemon process '{name}'");
            refuse(request, 504, &text)
        }
        Broken::Client(error) => error.status(request),
        Broken::Worker(fault @ (WsgiFault::Status | WsgiFault::Field)) => {
            let text = format!("Malformed response headers received from daemon process '{name}'");
            refuse(request, 502, &format!("{text}: {fault}"))
        }
        Broken::Worker(_) | Broken::Io(_) => refuse(request, 502, &format!("{TRUNCATED} '{name}'")),
    }
}

const TRUNCATED: &str = "Truncated or oversized response headers received from daemon process";

/// Whether a field does not fit the buffer of Apache, with its end of the line and a NUL.
fn has_long_field(head: &ResponseHead<'_>, size: usize) -> bool {
    head.fields.iter().any(|(name, value)| name.len() + value.len() + 5 > size)
}

/// Puts a head into the response; returns the length that it announces.
///
/// Source: `Adapter_output`
fn put(request: &mut Request, head: &ResponseHead<'_>, is_daemon: bool) -> Option<u64> {
    let response = &mut request.response;
    response.status = head.status;
    response.status_line = Some(head.status_line.to_vec());
    let (mut length, mut cookies, mut own) = (None, Vec::new(), None);
    for (name, value) in &head.fields {
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        // As in Apache, where the head comes as that of a program's output.
        let value = if is_daemon { value.trim_ascii_start() } else { value };
        if is(b"Content-Type") {
            response.content_type = Some(value.to_vec()).filter(|value| !value.is_empty());
        } else if is(b"Content-Length") {
            length = wire::chars::decimal(value);
            response.headers_out.set(name, value);
        } else if is(b"Transfer-Encoding") {
            // The framing is this server's.
        } else if is(b"WWW-Authenticate") {
            response.err_headers_out.add(name, value);
        } else if is_daemon && is(b"Status") {
            own = Some(value);
        } else if is_daemon && is(b"Set-Cookie") {
            cookies.push((name, value));
        } else {
            response.headers_out.add(name, value);
        }
    }
    if is_daemon {
        response.headers_out.compress(Overlap::Merge);
        cookies.iter().for_each(|(name, value)| response.headers_out.add(name, value));
    }
    if let Some(value) = own {
        put_status(request, value);
    }
    length
}

/// Puts the status of a `Status` field into the response.
fn put_status(request: &mut Request, value: &[u8]) {
    let end = value.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(value.len());
    let number = value.get(..end).and_then(wire::chars::decimal);
    let status = number.and_then(|number| u16::try_from(number).ok());
    if status.is_none() {
        request.keep(NoStatus);
    }
    request.response.status = status.unwrap_or(500);
    request.response.status_line = status.map(|_| value.to_vec());
}

/// Another resource of this server that a daemon process asks for: a `Location` with 200.
fn local_redirect(request: &Request, is_daemon: bool) -> Option<Vec<u8>> {
    let location = request.response.headers_out.get(b"Location")?;
    let is_local = is_daemon && request.response.status == 200 && location.starts_with(b"/");
    is_local.then(|| location.to_vec())
}

async fn give_body(
    request: &mut Request,
    mut conversation: Conversation,
    length: Option<u64>,
    is_daemon: bool,
) -> Result<Verdict, u16> {
    // In Apache the end of a body does not come with the rest of it.
    if request.head.headers_in.contains(b"Range") {
        request.refuse_ranges();
    }
    let status = request.response.status;
    let begun = beginning(&mut conversation).await;
    let has_no_body = request.head.header_only || matches!(status, 204 | 304);
    let is_over = has_no_body || !matches!(begun, Beginning::Part(_));
    match is_over.then(|| conversation.take_body()).flatten() {
        // The application has not read it: as in Apache, a daemon process is given all of it. Of
        // another one the connection reads it.
        Some(body) if is_daemon && !body.is_empty() => {
            request.body_in = Unread::new(body).discard().await;
        }
        Some(body) => request.body_in = body,
        // It may still read it.
        None => request.response.reads_request = conversation.may_read(),
    }
    let first = match begun {
        Beginning::Whole(pieces) => {
            request.response.body = whole(request, pieces, (length, is_daemon));
            return Ok(Verdict::Ok);
        }
        Beginning::Part(pieces) => pieces,
        Beginning::Failed(pieces, broken) => {
            conversation.log_broken(&broken);
            request.response.body = Body::Stream(Box::pin(Output::broken(pieces, length)));
            return Ok(Verdict::Ok);
        }
    };
    if has_no_body {
        request.response.body = match length {
            Some(length) => Body::Stream(Box::pin(Announced(length))),
            None => Body::Stream(Box::pin(Output::complete(Vec::new(), None))),
        };
        // The application goes on, although no client sees what it makes.
        let wait = request.host.core.timeout();
        request.engine.handle.spawn_local(async move {
            let rest = async { while matches!(conversation.next().await, Ok(Next::Data(_))) {} };
            // One that never ends would keep its thread.
            let _ = tokio::time::timeout(wait, rest).await;
        });
        return Ok(Verdict::Ok);
    }
    let output = Output::new(conversation, first, length);
    request.response.body = Body::Stream(Box::pin(Prompt::new(output)));
    Ok(Verdict::Ok)
}

/// A body that has come as a whole.
fn whole(
    request: &Request,
    mut pieces: Vec<Bytes>,
    (length, is_daemon): (Option<u64>, bool),
) -> Body {
    let given: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
    match length {
        Some(length) if request.head.header_only => Body::Stream(Box::pin(Announced(length))),
        Some(length) if given == length => match pieces.len() {
            0 => Body::Empty,
            1 => Body::Bytes(pieces.remove(0)),
            _ => Body::Bytes(pieces.concat().into()),
        },
        None if given == 0 && !is_daemon => Body::Empty,
        Some(_) | None => Body::Stream(Box::pin(Output::complete(pieces, length))),
    }
}

/// The application group of a script that decides something.
pub(super) fn application_group(request: &Request, group: Option<&Selector>) -> Vec<u8> {
    let (script_name, _) = environ::split_path(request);
    group.map(|group| group.application_group(request, &script_name)).unwrap_or_default()
}

/// What runs applications, and embedded mode.
pub(super) fn embedded(request: &Request) -> Option<(&Runtime, &Group)> {
    let runtime = runtime::of(request)?;
    Some((runtime, runtime.find(b"")?))
}
