//! Strings with `%{…}`, as in `AuthName` and `Require user`.

use std::borrow::Cow;
use std::sync::Arc;

use conf::expr::Expr;
use server::directive::Target;
use server::expr;
use server::request::Request;

/// A string expression, parsed when the configuration is read.
#[derive(Clone)]
pub struct Expression(Arc<Expr>);

impl Expression {
    /// Parses `text` in the context of `target`.
    ///
    /// # Errors
    /// The parser's message.
    pub fn parse(target: &Target<'_>, text: &[u8]) -> Result<Expression, String> {
        let parsed = expr::parse_string(&target.build.registry, text, target.expr_flags());
        parsed.map(|expr| Expression(Arc::new(expr))).map_err(|why| why.message)
    }

    /// The value for a request. Without `%{…}` nothing is evaluated.
    ///
    /// # Errors
    /// Why the evaluation failed.
    pub fn value(&self, request: &mut Request) -> Result<Cow<'_, [u8]>, String> {
        match self.0.constant() {
            Some(text) => Ok(Cow::Borrowed(text)),
            None => {
                let value = expr::string(&self.0, request).map(Cow::Owned);
                value.map_err(|why| why.to_string())
            }
        }
    }
}
