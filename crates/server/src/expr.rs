//! Expressions on requests: `<If>`, `Require expr`, `expr=` arguments.

use conf::expr::Expr;

use crate::request::Request;

/// Whether a condition holds for a request; an error of evaluation is a 500.
pub fn holds(expr: &Expr, request: &mut Request) -> Result<bool, u16> {
    let _ = (expr, request);
    Err(500)
}
