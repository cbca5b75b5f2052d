//! Evaluation: an expression's value for one request.

use std::ops::RangeInclusive;

use pcre::Captures;

use super::ast::{Comparison, Condition, List, Relation, Unary, Wildcard, Word, address};
use super::env::{Backrefs, Env};
use super::names::{Subject, Table, Variable};
use super::{Flags, pure};
use crate::fnmatch::{self, fnmatch};

/// How deep an evaluation may nest; Apache's `AP_EXPR_MAX_RECURSION`.
pub const MAX_RECURSION: usize = 20;
/// How long a string may become while it is put together, in bytes.
pub const MAX_STRING_BYTES: usize = 16 * 1024 * 1024;

/// Why there is no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// Nested deeper than [`MAX_RECURSION`].
    #[error("Recursion limit reached")]
    Recursion,
    /// A string grew over [`MAX_STRING_BYTES`].
    #[error("String too long")]
    TooLong,
    /// `file()` can't open it.
    #[error("Cannot open file {0}")]
    CannotOpen(String),
    /// `file()` can't read it.
    #[error("Cannot read from file {0}")]
    CannotRead(String),
    /// `file()` found more than it reads.
    #[error("File {0} too large")]
    FileTooLarge(String),
}

/// One evaluation.
pub(super) struct Machine<'e> {
    env: &'e mut dyn Env,
    backrefs: &'e mut Backrefs,
    flags: Flags,
    depth: usize,
}

impl<'e> Machine<'e> {
    pub(super) fn new(
        env: &'e mut dyn Env,
        backrefs: &'e mut Backrefs,
        flags: Flags,
    ) -> Machine<'e> {
        Machine { env, backrefs, flags, depth: 0 }
    }

    pub(super) fn condition(&mut self, condition: &Condition) -> Result<bool, EvalError> {
        self.enter()?;
        let value = self.condition_value(condition);
        self.depth -= 1;
        value
    }

    fn condition_value(&mut self, condition: &Condition) -> Result<bool, EvalError> {
        match condition {
            Condition::Constant(value) => Ok(*value),
            Condition::Not(inner) => Ok(!self.condition(inner)?),
            Condition::All(parts) => self.all_are(parts, true),
            Condition::Any(parts) => Ok(!self.all_are(parts, false)?),
            Condition::Compare(how, left, right) => self.compare(*how, left, right),
            Condition::Matches { word, regex, negated } => {
                Ok(self.matches(word, regex)? != *negated)
            }
            Condition::In(word, list) => self.contains(word, list),
            Condition::Unary(operator, word) => self.unary(*operator, word),
            Condition::ModuleUnary { id, word } => {
                let argument = self.text(word)?;
                Ok(self.env.module_unary(*id, &argument))
            }
            Condition::ClientIn(subnet) => {
                Ok(self.env.client_address().is_some_and(|address| subnet.contains(address)))
            }
            Condition::AddressIn(word, subnet) => {
                let text = self.text(word)?;
                Ok(address(&text).is_some_and(|address| subnet.contains(address)))
            }
            Condition::Wildcard { word, pattern, kind } => self.wildcard(word, pattern, *kind),
            Condition::ModuleBinary { id, left, right } => {
                let (left, right) = (self.text(left)?, self.text(right)?);
                Ok(self.env.module_binary(*id, &left, &right))
            }
        }
    }

    /// Are all parts of this value? Stops at the first that is not.
    fn all_are(&mut self, parts: &[Condition], wanted: bool) -> Result<bool, EvalError> {
        for part in parts {
            if self.condition(part)? != wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn compare(&mut self, how: Comparison, left: &Word, right: &Word) -> Result<bool, EvalError> {
        let (left, right) = (self.text(left)?, self.text(right)?);
        let order = if self.flags.ssl_compat {
            left.len().cmp(&right.len()).then_with(|| left.cmp(&right))
        } else if how.numeric {
            leading_integer(&left).cmp(&leading_integer(&right))
        } else {
            left.cmp(&right)
        };
        Ok(match how.relation {
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
        })
    }

    /// Only a regex with groups changes what `$0`–`$9` mean; one that fails unsets them.
    fn matches(&mut self, word: &Word, regex: &pcre::Regex) -> Result<bool, EvalError> {
        let text = self.text(word)?;
        if regex.group_count() == 0 {
            return Ok(regex.is_match(&text));
        }
        let mut captures = Captures::new();
        let matched = regex.captures(&text, &mut captures);
        if matched {
            self.backrefs.set(&text, captures);
        } else {
            self.backrefs.clear();
        }
        Ok(matched)
    }

    fn contains(&mut self, word: &Word, list: &List) -> Result<bool, EvalError> {
        let needle = self.text(word)?;
        match list {
            List::Words(words) => {
                for candidate in words {
                    if self.text(candidate)? == needle {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            List::Module { id, argument } => {
                let argument = self.text(argument)?;
                Ok(self.env.module_list_contains(*id, &argument, &needle))
            }
        }
    }

    fn unary(&mut self, operator: Unary, word: &Word) -> Result<bool, EvalError> {
        let text = self.text(word)?;
        Ok(match operator {
            Unary::NotEmpty => !text.is_empty(),
            Unary::Empty => text.is_empty(),
            Unary::Truthy => pure::is_truthy(&text),
            Unary::FileAllowed => self.env.allowed(Subject::File, &text),
            Unary::UrlAllowed => self.env.allowed(Subject::Url, &text),
            Unary::Directory
            | Unary::Exists
            | Unary::RegularFile
            | Unary::FileNotEmpty
            | Unary::SymbolicLink
            | Unary::Executable => pure::file_test(operator, &text),
        })
    }

    fn wildcard(&mut self, word: &Word, pattern: &Word, kind: Wildcard) -> Result<bool, EvalError> {
        let (text, pattern) = (self.text(word)?, self.text(pattern)?);
        let flags = fnmatch::Flags {
            ignoring_case: kind == Wildcard::IgnoringCase,
            pathname: kind == Wildcard::PathName,
            ..fnmatch::Flags::default()
        };
        Ok(fnmatch(&pattern, &text, flags))
    }

    fn text(&mut self, word: &Word) -> Result<Vec<u8>, EvalError> {
        let mut out = Vec::new();
        self.word(word, &mut out)?;
        Ok(out)
    }

    pub(super) fn word(&mut self, word: &Word, out: &mut Vec<u8>) -> Result<(), EvalError> {
        self.enter()?;
        let done = self.word_value(word, out);
        self.depth -= 1;
        done?;
        if out.len() > MAX_STRING_BYTES {
            return Err(EvalError::TooLong);
        }
        Ok(())
    }

    fn word_value(&mut self, word: &Word, out: &mut Vec<u8>) -> Result<(), EvalError> {
        match word {
            Word::Literal(text) => out.extend_from_slice(text),
            Word::Variable(variable) => self.variable(*variable, out),
            Word::Backref(index) => out.extend_from_slice(self.backrefs.text(*index)),
            Word::Concat(parts) => {
                for part in parts {
                    self.word(part, out)?;
                }
            }
            Word::Lookup(table, name) => {
                let name = self.text(name)?;
                self.lookup(*table, &name, out);
            }
            Word::Pure(function, argument) => {
                let argument = self.text(argument)?;
                pure::apply(*function, &argument, out)?;
            }
            Word::ModuleFunction { id, argument } => {
                let argument = self.text(argument)?;
                self.env.module_function(*id, &argument, out);
            }
        }
        Ok(())
    }

    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) {
        if let Some(header) = variable.header() {
            self.vary(header.as_bytes());
        }
        self.env.variable(variable, out);
    }

    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) {
        match table {
            Table::Env => {
                let order = [Table::Note, Table::RequestEnv, Table::OsEnv];
                let _ = order.iter().any(|table| self.env.lookup(*table, name, out));
            }
            Table::RequestHeader => {
                self.vary(name);
                self.env.lookup(table, name, out);
            }
            _ => {
                self.env.lookup(table, name, out);
            }
        }
    }

    /// `Host` is never part of Vary (RFC 9110, 12.5.5 names what is selected by).
    fn vary(&mut self, header: &[u8]) {
        if !self.flags.dont_vary && !header.eq_ignore_ascii_case(b"Host") {
            self.env.vary(header);
        }
    }

    fn enter(&mut self) -> Result<(), EvalError> {
        if self.depth >= MAX_RECURSION {
            return Err(EvalError::Recursion);
        }
        self.depth += 1;
        Ok(())
    }
}

/// The number that `text` starts with, as C's `strtoll`: blanks, sign, digits; 0 when there is
/// none.
fn leading_integer(text: &[u8]) -> i64 {
    const BOUNDS: RangeInclusive<i64> = i64::MIN..=i64::MAX;
    let text = text.trim_ascii_start();
    let (negative, digits) = match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    };
    let mut value: i64 = 0;
    for digit in digits.iter().take_while(|byte| byte.is_ascii_digit()) {
        let step = i64::from(digit - b'0');
        let step = if negative { -step } else { step };
        value = match value.checked_mul(10).and_then(|tens| tens.checked_add(step)) {
            Some(value) => value,
            None => return if negative { *BOUNDS.start() } else { *BOUNDS.end() },
        };
    }
    value
}
