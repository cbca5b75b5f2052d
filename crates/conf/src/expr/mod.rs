//! Apache's expressions: `<If>`, `Require expr`, `expr=…`, and strings with `%{…}`.
//!
//! An [`Expr`] is parsed when the configuration is read, and unknown names are refused then. At
//! request time an [`Env`] supplies the request's values; the expression computes the rest. Source:
//! the manual's expr.html, `ap_expr_parse`, `ap_expr_exec`.

mod ast;
mod env;
mod eval;
mod lexer;
mod lookup;
mod names;
mod parse;
mod pure;

pub use env::{Backrefs, Env};
pub use eval::{EvalError, MAX_RECURSION, MAX_STRING_BYTES};
pub use names::{Names, NoNames, Subject, Table, Variable};
pub use parse::{MAX_LITERAL_BYTES, MAX_NESTING};

use ast::Root;

/// How the place of an expression restricts it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Refuse functions that read files (`AP_EXPR_FLAG_RESTRICTED`), but not operators that only
    /// test for their existence.
    pub restricted: bool,
    /// Refuse these operators as well, as in pages of mod_include. Without effect unless
    /// `restricted` is set.
    pub without_files: bool,
    /// Do not report headers for `Vary` (`AP_EXPR_FLAG_DONT_VARY`).
    pub dont_vary: bool,
    /// Compare strings by length first, as `SSLRequire` does (`AP_EXPR_FLAG_SSL_EXPR_COMPAT`).
    pub ssl_compat: bool,
    /// Options of patterns in addition to their own `i`: the effect of `RegexDefaultOptions`.
    pub pattern: pcre::Flags,
}

/// An invalid expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The message, in Apache's words if Apache has one.
    pub message: String,
    /// Byte offset of the error in the text.
    pub offset: usize,
    /// Length of the erroneous part in bytes; 0 for a position.
    pub length: usize,
}

/// A parsed expression, boolean or string.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    root: Root,
    flags: Flags,
}

impl Expr {
    /// Parses a condition, as in `<If "…">`. `names` supplies the names that modules add.
    ///
    /// # Errors
    /// [`Error`] for a syntax error, an unknown name, a bad pattern, or a violation of `flags`.
    pub fn parse_bool(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Expr, Error> {
        Ok(Expr { root: Root::Bool(parse::condition(text, flags, names)?), flags })
    }

    /// Parses a string with `%{…}` and `$0`–`$9`, as in `Header set X "expr=…"`.
    ///
    /// # Errors
    /// As [`Expr::parse_bool`].
    pub fn parse_string(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Expr, Error> {
        Ok(Expr { root: Root::Text(parse::string(text, flags, names)?), flags })
    }

    /// Whether the condition is true. A string expression is true if it is not empty.
    ///
    /// `backrefs` holds the values of `$0`–`$9`. A successful match of a regex with groups replaces
    /// them.
    ///
    /// # Errors
    /// [`EvalError`] if a limit is reached or a file can't be read.
    pub fn eval_bool(&self, env: &mut dyn Env, backrefs: &mut Backrefs) -> Result<bool, EvalError> {
        let mut machine = eval::Machine::new(env, backrefs, self.flags);
        match &self.root {
            Root::Bool(condition) => machine.holds(condition),
            Root::Text(word) => {
                let mut out = Vec::new();
                machine.word(word, &mut out)?;
                Ok(!out.is_empty())
            }
        }
    }

    /// Appends the string's value to `out`. A condition gives `true` or `false`.
    ///
    /// # Errors
    /// As [`Expr::eval_bool`]; text already appended is left in `out`.
    pub fn eval_string(
        &self,
        env: &mut dyn Env,
        backrefs: &mut Backrefs,
        out: &mut Vec<u8>,
    ) -> Result<(), EvalError> {
        let mut machine = eval::Machine::new(env, backrefs, self.flags);
        match &self.root {
            Root::Text(word) => machine.word(word, out),
            Root::Bool(condition) => {
                let value = machine.holds(condition)?;
                out.extend_from_slice(if value { b"true" } else { b"false" });
                Ok(())
            }
        }
    }

    /// The value of a string expression without variables, functions and references.
    pub fn constant(&self) -> Option<&[u8]> {
        match &self.root {
            Root::Text(word) => word.constant(),
            Root::Bool(_) => None,
        }
    }

    /// Whether the value is the same for every request. Files count as variable.
    pub fn is_constant(&self) -> bool {
        match &self.root {
            Root::Text(word) => word.is_constant(),
            Root::Bool(condition) => condition.is_constant(),
        }
    }

    /// The flags that the expression was parsed with.
    pub fn flags(&self) -> Flags {
        self.flags
    }
}

#[cfg(test)]
mod tests;
