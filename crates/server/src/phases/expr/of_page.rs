//! Conditions of pages (mod_include).

use conf::expr::{Backrefs, Error, EvalError, Expr, Flags};
use pcre::Later;

use super::env::RequestEnv;
use super::extension::{Extensions, PageNames};
use super::note_names;
use crate::config::registry::Registry;
use crate::request::Request;

/// Parses a condition of a page, in which `v(name)` is the same as `reqenv(name)`.
///
/// # Errors
/// As [`Expr::parse_bool`].
pub fn parse_of_page(registry: &Registry, text: &[u8], flags: Flags) -> Result<Expr, Error> {
    note_names(registry, text);
    Expr::parse_bool(text, flags, &PageNames(Extensions::of(registry)))
}

/// The same as [`super::condition`] for a page, which knows what its variables depend on: the names
/// of those that were read are added to `read`. If the condition has read something else, the
/// response is not pure.
///
/// # Errors
/// [`Later`] if a match has to be made first.
pub fn condition_of_page(
    expr: &Expr,
    request: &mut Request,
    backrefs: &mut Backrefs,
    read: &mut Vec<Vec<u8>>,
) -> Result<Result<bool, EvalError>, Later> {
    let mut env = RequestEnv::new(request);
    env.variables_read = Some(std::mem::take(read));
    let value = expr.eval_bool(&mut env, backrefs);
    *read = env.variables_read.take().unwrap_or_default();
    env.finish(!expr.flags().dont_vary);
    match value {
        Err(EvalError::Later) => Err(Later),
        value => Ok(value),
    }
}
