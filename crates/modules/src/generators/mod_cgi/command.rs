//! Shell commands in pages (`<!--#exec cmd="…" -->`).
//!
//! Source: `include_cmd`

use std::io;
use std::time::Duration;

use server::body::Body;
use server::module::Module;
use server::request::Request;
use server::request_body::BodyIn;

use super::conversation::{Conversation, Upload};
use super::output::Output;
use super::respond::ERROR_LINE;
use super::{Cgi, Cgid, order};
use crate::arch::mod_unixd::spawner;
use crate::util_script::error_lines::ErrorLines;
use crate::util_script::program::Program;

/// Whether a module runs programs for a request.
pub(crate) fn is_available(request: &Request) -> bool {
    settings(request).is_some()
}

/// The module's settings for a request, and its file.
fn settings(request: &Request) -> Option<(Option<Duration>, &'static str)> {
    let (dir, file) = match request.dir_of::<Cgid>() {
        Some(dir) => (dir, Cgid::FILE),
        None => (request.dir_of::<Cgi>()?, Cgi::FILE),
    };
    Some((dir.timeout.get().copied().filter(|timeout| !timeout.is_zero()), file))
}

/// Starts a shell with `command` in the folder of the request's file, with the request's variables,
/// no input, and no arguments from the query. Returns what it writes.
///
/// # Errors
/// It can't be started.
pub(crate) async fn run(request: &Request, command: &[u8]) -> io::Result<Body> {
    let Some((timeout, module)) = settings(request) else {
        return Err(io::Error::other("no module runs programs"));
    };
    if command.is_empty() && module == Cgid::FILE {
        // The daemon of Apache takes no empty argument.
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // `tamarack explain` starts nothing.
    let spawner = spawner::of(request)
        .ok_or_else(|| io::Error::other("only a running server starts programs"))?;
    let (order, _) = order::of_command(request, spawner, command).await;
    let program = Program::start(request, &spawner.line, order, false).await?;
    let lines = ErrorLines::new(request, module, ERROR_LINE, &request.resource.filename);
    let timeout = timeout.unwrap_or_else(|| request.host.core.timeout());
    let upload = Upload::new(BodyIn::default(), 0);
    let command = command.to_vec();
    let mut conversation = Conversation::new(upload, program, command, lines, timeout);
    conversation.awaits_errors = module == Cgi::FILE;
    Ok(Output::body(conversation).await)
}
