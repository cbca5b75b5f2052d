//! Apache's expressions: `<If>`, `Require expr`, `expr=…`, and strings with `%{…}` in them.
//!
//! An [`Expr`] is parsed when the configuration is read; names that do not exist are refused then.
//! At request time it asks an [`Env`] for what belongs to the request and works out the rest
//! itself. Source: the manual's expr.html, `ap_expr_parse`, `ap_expr_exec`.

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

/// Where an expression stands, as far as it changes what it may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Functions that read files are refused (`AP_EXPR_FLAG_RESTRICTED`); operators that only look
    /// whether there is one are not.
    pub restricted: bool,
    /// Headers that are read are not reported for `Vary` (`AP_EXPR_FLAG_DONT_VARY`).
    pub dont_vary: bool,
    /// Comparisons are by length first, as `SSLRequire` compares (`AP_EXPR_FLAG_SSL_EXPR_COMPAT`).
    pub ssl_compat: bool,
    /// How patterns are compiled, beside their own `i`: what `RegexDefaultOptions` says.
    pub pattern: pcre::Flags,
}

/// An expression that Apache would refuse too.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What is wrong, in Apache's words where it has some.
    pub message: String,
    /// Byte offset in the text where it was noticed.
    pub offset: usize,
    /// How many bytes are meant; 0 for a place.
    pub length: usize,
}

/// A parsed expression, boolean or string.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    root: Root,
    flags: Flags,
}

impl Expr {
    /// Parses a condition, as in `<If "…">`. `names` tells what modules add to the core's names.
    ///
    /// # Errors
    /// [`Error`] for bad syntax, an unknown name, a bad pattern, or what `flags` forbid.
    pub fn parse_bool(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Expr, Error> {
        Ok(Expr { root: Root::Bool(parse::condition(text, flags, names)?), flags })
    }

    /// Parses a string with `%{…}` and `$0`–`$9` in it, as in `Header set X "expr=…"`.
    ///
    /// # Errors
    /// As [`Expr::parse_bool`].
    pub fn parse_string(text: &[u8], flags: Flags, names: &dyn Names) -> Result<Expr, Error> {
        Ok(Expr { root: Root::Text(parse::string(text, flags, names)?), flags })
    }

    /// Is the condition true? A string expression is true when it is not empty.
    ///
    /// `backrefs` holds what `$0`–`$9` mean before, and after a regex with groups has matched.
    ///
    /// # Errors
    /// [`EvalError`] when a limit is reached or a file can't be read.
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
    /// As [`Expr::eval_bool`]; what was appended before is left in `out`.
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

    /// Is the value the same for every request? Files count as changing.
    pub fn is_constant(&self) -> bool {
        match &self.root {
            Root::Text(word) => word.is_constant(),
            Root::Bool(condition) => condition.is_constant(),
        }
    }

    /// The flags it was parsed with.
    pub fn flags(&self) -> Flags {
        self.flags
    }
}

#[cfg(test)]
mod tests;
