//! Expressions on requests: `<If>`, `Require expr`, `expr=` arguments.

use conf::expr::{Error, Expr, Flags, NoNames};

use crate::request::Request;
use crate::slots::Registry;

/// Parses a condition with the names that the core and the active modules know.
///
/// # Errors
/// As [`Expr::parse_bool`].
pub fn parse_bool(registry: &Registry, text: &[u8], flags: Flags) -> Result<Expr, Error> {
    let _ = registry;
    Expr::parse_bool(text, flags, &NoNames)
}

/// Parses a string with `%{…}` in it.
///
/// # Errors
/// As [`Expr::parse_string`].
pub fn parse_string(registry: &Registry, text: &[u8], flags: Flags) -> Result<Expr, Error> {
    let _ = registry;
    Expr::parse_string(text, flags, &NoNames)
}

/// Whether a condition holds for a request; an error of evaluation is a 500.
pub fn holds(expr: &Expr, request: &mut Request) -> Result<bool, u16> {
    let _ = (expr, request);
    Err(500)
}
