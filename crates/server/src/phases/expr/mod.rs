//! Expressions on requests: `<If>`, `Require expr`, `expr=` arguments.
//!
//! Source: the manual's expr.html, server/util_expr_eval.c.

mod env;
mod extension;
mod of_page;

pub use env::value_of;
pub use extension::{Extension, Extensions, GROUP};
pub use of_page::{condition_of_page, parse_of_page};

use conf::expr::{Backrefs, Error, EvalError, Expr, Flags};
use pcre::Later;

use crate::config::registry::Registry;
use crate::log::Level;
use crate::phases::matching::Stop;
use crate::request::Request;

use env::RequestEnv;

/// Parses a condition with the names that the core and the active modules know.
///
/// # Errors
/// As [`Expr::parse_bool`].
pub fn parse_bool(registry: &Registry, text: &[u8], flags: Flags) -> Result<Expr, Error> {
    note_names(registry, text);
    Expr::parse_bool(text, flags, &Extensions::of(registry))
}

/// Parses a string with `%{…}`.
///
/// # Errors
/// As [`Expr::parse_string`].
pub fn parse_string(registry: &Registry, text: &[u8], flags: Flags) -> Result<Expr, Error> {
    note_names(registry, text);
    Expr::parse_string(text, flags, &Extensions::of(registry))
}

/// Notes names that must be looked up before an expression is evaluated.
fn note_names(registry: &Registry, text: &[u8]) {
    let has = |name: &[u8]| text.windows(name.len()).any(|part| part.eq_ignore_ascii_case(name));
    if has(b"REMOTE_HOST") {
        registry.names_client.set();
    }
    if has(b"REMOTE_IDENT") {
        registry.names_user_of_host.set();
    }
}

/// Whether a condition holds for a request.
///
/// # Errors
/// As [`holds_at`].
pub fn holds(expr: &Expr, request: &mut Request) -> Result<bool, Stop> {
    holds_at(expr, "", request)
}

/// Whether the condition of a section holds for a request. One that can't be evaluated does not
/// (`ap_if_walk`); beyond a limit that Apache does not have, the client could choose that, and it
/// is a 500.
///
/// # Errors
/// That status, or [`Stop::Later`] if a match has to be made first.
pub fn holds_at(expr: &Expr, place: &str, request: &mut Request) -> Result<bool, Stop> {
    let why = match condition(expr, request, &mut Backrefs::new())? {
        Ok(holds) => return Ok(holds),
        // Such matches are already logged.
        Err(EvalError::Undecided) => return Err(Stop::Status(500)),
        Err(why) => why,
    };
    if !place.is_empty() {
        let text = format_args!("Evaluation of expression from {place} failed: {why}");
        request.log_as("core.c", Level::Error, 0, text);
    }
    let text = format_args!("Failed to evaluate <If > condition: {why}");
    request.log_as("core.c", Level::Error, 39, text);
    if why == EvalError::TooLong { Err(Stop::Status(500)) } else { Ok(false) }
}

/// Whether a condition holds, or why it can't be evaluated ([`Expr::eval_bool`]); `backrefs` holds
/// `$0`–`$9` before and after.
///
/// # Errors
/// [`Later`] if a match has to be made first.
pub fn condition(
    expr: &Expr,
    request: &mut Request,
    backrefs: &mut Backrefs,
) -> Result<Result<bool, EvalError>, Later> {
    request.depends.pure &= expr.is_constant();
    let vary = !expr.flags().dont_vary;
    let mut env = RequestEnv::new(request);
    let value = expr.eval_bool(&mut env, backrefs);
    env.finish(vary);
    match value {
        Err(EvalError::Later) => Err(Later),
        value => Ok(value),
    }
}

/// The value of a string expression.
///
/// # Errors
/// As [`Expr::eval_string`].
pub fn string(expr: &Expr, request: &mut Request) -> Result<Vec<u8>, EvalError> {
    if let Some(constant) = expr.constant() {
        return Ok(constant.to_vec());
    }
    string_with(expr, request, &mut Backrefs::new())
}

/// The value of a string expression; `backrefs` holds `$0`–`$9`.
///
/// # Errors
/// As [`Expr::eval_string`].
pub fn string_with(
    expr: &Expr,
    request: &mut Request,
    backrefs: &mut Backrefs,
) -> Result<Vec<u8>, EvalError> {
    request.depends.pure &= expr.is_constant();
    let mut out = Vec::new();
    let mut env = RequestEnv::new(request);
    let value = expr.eval_string(&mut env, backrefs, &mut out);
    // A string never adds to `Vary` (`ap_expr_exec_ctx`).
    env.finish(false);
    value.map(|()| out)
}
