//! Runs a program for a request, and makes the response of what it writes.
//!
//! Source: `cgi_handler`, `cgid_handler`, `cgi_handle_response`.

use std::io;
use std::time::Duration;

use mpm::companion::spawner::Outcome;
use server::body::Body;
use server::core::OptionFlags;
use server::errorlog::Verbatim;
use server::hooks::{Bound, Verdict};
use server::log::Level;
use server::request::{BodyEnd, FileKind, PathInfoUse, Request};
use wire::Method;
use wire::script_head::{ScriptFault, ScriptHead};

use super::Kind;
use super::conversation::{Broken, Conversation, Upload};
use super::order;
use super::output::{Output, log_late};
use super::script_log::{Entry, Messages};
use crate::arch::mod_unixd::spawner;
use crate::proxy::mod_proxy::relay::{Announced, Unsent};
use crate::util_script::error_lines::ErrorLines;
use crate::util_script::head::{drop_framing, finish, log, put, refuse};
use crate::util_script::program::Program;
use crate::util_script::redirect::to_local;
use crate::util_script::variables::{add_cgi, add_common};

/// The number of the message for a line of a program's standard error.
pub(super) const ERROR_LINE: u32 = 1215;

/// The status of the response, the number and the text of the message.
type Refusal = (u16, u32, &'static str);

/// Whether a request may run its file at all.
pub(super) fn may_run<M: Kind>(request: &Request) -> Result<(), Refusal> {
    let [closed, included, missing, folder, path_info] = M::REFUSED;
    let file = &request.resource.file;
    let core = &request.plan.core;
    if !core.options.flags().has(OptionFlags::EXEC_CGI) && !is_script_alias(request) {
        return Err((403, closed, "Options ExecCGI is off in this directory"));
    }
    if is_raw(request) && request.main.is_some() {
        return Err((403, included, "attempt to include NPH CGI script"));
    }
    match file.kind {
        FileKind::None => return Err((404, missing, "script not found or unable to stat")),
        FileKind::Directory => return Err((403, folder, "attempt to invoke directory as script")),
        _ => {}
    }
    let is_path_refused = core.accept_path_info.get() == Some(&PathInfoUse::Reject);
    if is_path_refused && !request.resource.path_info.is_empty() {
        return Err((404, path_info, "AcceptPathInfo off disallows user's path"));
    }
    Ok(())
}

/// Source: `is_scriptaliased`
fn is_script_alias(request: &Request) -> bool {
    let kind = request.notes.get(b"alias-forced-type");
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"cgi-script"))
}

/// Whether the program writes the whole response (`nph-`).
fn is_raw(request: &Request) -> bool {
    let name = request.resource.filename.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.starts_with(b"nph-"))
}

/// Responds to a request that may not run its file.
///
/// Source: `log_scripterror`
pub(super) async fn deny<M: Kind>(
    bound: Bound<'_, M>,
    request: &mut Request,
    status: u16,
    number: u32,
    text: &'static str,
) -> Verdict {
    let file = Verbatim::new(&request.resource.filename);
    request.log::<M>(Level::Error, number, format_args!("stderr from {file}: {text}"));
    if let Some(entry) = Entry::new(&bound.server.log, request, status) {
        entry.error(text).write(request).await;
    }
    Verdict::Status(status)
}

pub(super) async fn respond<M: Kind>(bound: Bound<'_, M>, request: &mut Request) -> Verdict {
    add_common::<M>(request).await;
    add_cgi(request).await;
    let mut conversation = match begin(bound, request).await {
        Ok(conversation) => conversation,
        Err(status) => return Verdict::Status(status),
    };
    match conversation.send(request).await {
        Ok(is_sending) => request.response.reads_request = is_sending,
        Err(why) => return Verdict::Status(broken::<M>(request, &why, &mut conversation)),
    }
    if is_raw(request) {
        return raw(request, conversation).await;
    }
    let mut head = ScriptHead::new();
    let read = conversation.read_head(&mut head).await;
    put::<M>(request, &head, read.is_ok());
    if let Some(messages) = &conversation.messages {
        messages.status.set(request.response.status);
    }
    match read {
        Ok(()) => answer(request, &head, conversation).await,
        Err(why) => {
            drop_framing(request);
            if request.prev.is_none() {
                // Only the error document of a redirected request takes what the program set for an
                // earlier error (`ap_process_internal_redirect`).
                request.response.status = 200;
            }
            let status = broken::<M>(request, &why, &mut conversation);
            fail(bound, request, status, &why, conversation).await
        }
    }
}

/// Starts the program.
async fn begin<M: Kind>(bound: Bound<'_, M>, request: &mut Request) -> Result<Conversation, u16> {
    // `tamarack explain` starts nothing.
    let program = match spawner::of(request) {
        Some(spawner) => {
            let (order, executed) = order::of(request, spawner, M::ARGUMENTS_MAX).await;
            let has_input = !request.body_in.is_empty();
            let program = Program::start(request, &spawner.line, order, has_input).await;
            program.map(|program| (program, executed))
        }
        None => Err(io::Error::other("only a running server starts programs")),
    };
    let timeout = bound.dir.timeout.get().copied().filter(|timeout| !timeout.is_zero());
    match program {
        Ok((program, executed)) => {
            let file = &request.resource.filename;
            let lines = ErrorLines::new(request, M::FILE, ERROR_LINE, file);
            let timeout: Duration = timeout.unwrap_or_else(|| request.host.core.timeout());
            let keeps = bound.server.log.path.is_some()
                && matches!(request.head.method, Method::POST | Method::PUT);
            let kept_bytes = if keeps { bound.server.log.buffer } else { 0 };
            let upload = Upload::new(std::mem::take(&mut request.body_in), kept_bytes);
            let mut conversation = Conversation::new(upload, program, executed, lines, timeout);
            conversation.awaits_errors = M::LOGS_ERRORS;
            if M::LOGS_ERRORS
                && let Some(messages) = Messages::new(&bound.server.log, request)
            {
                conversation.copy_messages(messages);
            }
            Ok(conversation)
        }
        Err(error) => {
            let file = Verbatim::new(&request.resource.filename);
            let text = format_args!("couldn't spawn child process: {file}: {error}");
            request.log::<M>(Level::Error, M::NOT_STARTED, text);
            Err(if error.kind() == io::ErrorKind::WouldBlock { 503 } else { 500 })
        }
    }
}

/// A response without a head of ours.
async fn raw(request: &mut Request, conversation: Conversation) -> Verdict {
    request.response.filters.clear();
    request.response.is_raw = true;
    request.head.header_only = false;
    request.response.body = Output::body(conversation).await;
    Verdict::Ok
}

/// A response with a head.
async fn answer(
    request: &mut Request,
    head: &ScriptHead,
    mut conversation: Conversation,
) -> Verdict {
    if let Err(status) = finish(request, head) {
        conversation.end().await;
        if status == 304 {
            // Unlike an error it goes through the filters.
            request.response.status = status;
            return Verdict::Ok;
        }
        return Verdict::Status(status);
    }
    let location = request.response.headers_out.get(b"Location").map(<[u8]>::to_vec);
    let Some(location) = location.filter(|_| request.response.status == 200) else {
        request.response.end = BodyEnd::WithBody;
        request.response.body = match request.head.header_only {
            true => {
                // The program may do more than write. If it does not end, it is ended.
                let output = conversation.rest().await;
                if conversation.exchange.has_ended {
                    conversation.end().await;
                }
                let told = request.response.headers_out.get(b"Content-Length");
                match told.and_then(wire::chars::decimal) {
                    Some(length) => Body::Stream(Box::pin(Announced(length))),
                    None => Body::Stream(Box::pin(Unsent(output))),
                }
            }
            false => Output::body(conversation).await,
        };
        return Verdict::Ok;
    };
    conversation.end().await;
    if location.first() != Some(&b'/') {
        return Verdict::Status(302);
    }
    to_local(request, &location).await
}

/// Logs why there is no head; returns the status of the response.
fn broken<M: Kind>(request: &Request, why: &Broken, conversation: &mut Conversation) -> u16 {
    let exchange = &mut conversation.exchange;
    let outcome = if exchange.has_ended { exchange.program.outcome() } else { None };
    match (outcome, why) {
        (Some(Outcome::Busy), _) => {
            let file = Verbatim::new(&request.resource.filename);
            let text = format_args!("couldn't spawn child process: {file}: too many programs wait");
            request.log::<M>(Level::Error, M::NOT_STARTED, text);
            return 503;
        }
        _ => exchange.log_start(&conversation.executed),
    }
    match why {
        Broken::Fault(fault) => refuse::<M>(request, fault),
        Broken::Late if exchange.is_sending() => 504,
        Broken::Late => {
            log_late(exchange, &conversation.executed);
            log::<M>(request, "Script timed out before returning headers", None);
            504
        }
        Broken::Unreadable(error) => {
            let text = format!("the output is incomplete: {error}");
            exchange.lines.log_about(Level::Error, 574, text.as_bytes());
            500
        }
        Broken::Client(error) => {
            let status = error.status(request);
            let text = format_args!("Error reading request entity data");
            match error.cause() {
                Some(cause) => request.log_error::<M>(Level::Error, M::UNREAD, cause, text),
                None => request.log::<M>(Level::Error, M::UNREAD, text),
            }
            status
        }
    }
}

/// Ends a program without a head, and writes `ScriptLog`.
///
/// Source: `log_script`
async fn fail<M: Kind>(
    bound: Bound<'_, M>,
    request: &mut Request,
    status: u16,
    why: &Broken,
    mut conversation: Conversation,
) -> Verdict {
    let bad_line = match why {
        Broken::Fault(ScriptFault::Malformed(line)) => line.to_vec(),
        _ => Vec::new(),
    };
    // Such a program is ended with the conversation.
    let is_stuck = matches!(why, Broken::Late | Broken::Client(_));
    if let Some(entry) = Entry::new(&bound.server.log, request, status) {
        let entry = entry.head(request, conversation.kept(), &bad_line);
        // What the program reports from now on follows the entry.
        let messages = conversation.messages.clone();
        messages.iter().for_each(|messages| messages.hold());
        let output = if is_stuck { Vec::new() } else { conversation.rest().await };
        entry.output(&output).write(request).await;
        messages.iter().for_each(|messages| messages.release());
    }
    if !is_stuck {
        // As in Apache, what comes on standard error later does not hold up the response.
        conversation.awaits_errors = false;
        conversation.end().await;
    }
    Verdict::Status(status)
}
