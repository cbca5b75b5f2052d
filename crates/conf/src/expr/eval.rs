//! Evaluates an expression for one request.

use std::ops::RangeInclusive;

use pcre::{Captures, Matched};

use super::ast::{Comparison, Condition, List, Relation, Unary, Wildcard, Word, address};
use super::env::{Backrefs, Env};
use super::names::{Subject, Table, Variable};
use super::{Flags, pure};
use crate::fnmatch::{self, fnmatch};

/// Deepest nesting of an evaluation; Apache's `AP_EXPR_MAX_RECURSION`.
pub const MAX_RECURSION: usize = 20;
/// Most bytes of an intermediate string.
pub const MAX_STRING_BYTES: usize = 16 * 1024 * 1024;

/// Why an evaluation has no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The nesting exceeds [`MAX_RECURSION`].
    #[error("Recursion limit reached")]
    Recursion,
    /// A string exceeds [`MAX_STRING_BYTES`].
    #[error("String too long")]
    TooLong,
    /// The value depends on a match that is undecided.
    #[error("undecided regular expression")]
    Undecided,
    /// A match takes longer than the caller can block; evaluate again once it is decided.
    #[error("match not finished")]
    Later,
    /// `file()` can't open the file.
    #[error("Cannot open file {0}")]
    CannotOpen(String),
    /// `file()` can't read the file.
    #[error("Cannot read from file {0}")]
    CannotRead(String),
    /// The file exceeds the limit of `file()`.
    #[error("File {0} too large")]
    FileTooLarge(String),
}

/// A condition's value: true, false, or open if a match is undecided. An open part leaves the whole
/// open, unless the other parts decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    No,
    Yes,
    Open,
}

impl From<bool> for Truth {
    fn from(holds: bool) -> Truth {
        if holds { Truth::Yes } else { Truth::No }
    }
}

impl std::ops::Not for Truth {
    type Output = Truth;

    fn not(self) -> Truth {
        match self {
            Truth::No => Truth::Yes,
            Truth::Yes => Truth::No,
            Truth::Open => Truth::Open,
        }
    }
}

/// One evaluation.
pub(super) struct Machine<'e> {
    env: &'e mut dyn Env,
    backrefs: &'e mut Backrefs,
    flags: Flags,
    depth: usize,
    /// Whether a variable with an unknown value was read.
    read_undecided: bool,
}

impl<'e> Machine<'e> {
    pub(super) fn new(
        env: &'e mut dyn Env,
        backrefs: &'e mut Backrefs,
        flags: Flags,
    ) -> Machine<'e> {
        Machine { env, backrefs, flags, depth: 0, read_undecided: false }
    }

    pub(super) fn holds(&mut self, condition: &Condition) -> Result<bool, EvalError> {
        match self.condition(condition)? {
            Truth::No => Ok(false),
            Truth::Yes => Ok(true),
            Truth::Open => Err(EvalError::Undecided),
        }
    }

    fn condition(&mut self, condition: &Condition) -> Result<Truth, EvalError> {
        self.enter()?;
        let value = self.condition_value(condition);
        self.depth -= 1;
        // Each part takes its own flag, so this is what the present condition has read.
        let is_open = std::mem::take(&mut self.read_undecided);
        if is_open { value.map(|_| Truth::Open) } else { value }
    }

    fn condition_value(&mut self, condition: &Condition) -> Result<Truth, EvalError> {
        let value = match condition {
            Condition::Not(inner) => return Ok(!self.condition(inner)?),
            Condition::All(parts) => return self.all_are(parts, Truth::Yes),
            Condition::Any(parts) => return Ok(!self.all_are(parts, Truth::No)?),
            Condition::Matches { word, regex, negated } => {
                let matched = self.matches(word, regex)?;
                return Ok(if *negated { !matched } else { matched });
            }
            Condition::Constant(value) => *value,
            Condition::Compare(how, left, right) => self.compare(*how, left, right)?,
            Condition::In(word, list) => self.contains(word, list)?,
            Condition::Unary(operator, word) => self.unary(*operator, word)?,
            Condition::ModuleUnary { id, word } => {
                let argument = self.text(word)?;
                self.env.module_unary(*id, &argument)
            }
            Condition::ClientIn(subnet) => {
                self.env.client_address().is_some_and(|address| subnet.contains(address))
            }
            Condition::AddressIn(word, subnet) => {
                let text = self.text(word)?;
                address(&text).is_some_and(|address| subnet.contains(address))
            }
            Condition::Wildcard { word, pattern, kind } => self.wildcard(word, pattern, *kind)?,
            Condition::ModuleBinary { id, left, right } => {
                let (left, right) = self.both(left, right)?;
                self.env.module_binary(*id, &left, &right)
            }
        };
        Ok(value.into())
    }

    /// Whether all parts have this value. Stops at the first that does not.
    fn all_are(&mut self, parts: &[Condition], wanted: Truth) -> Result<Truth, EvalError> {
        let mut all = Truth::Yes;
        for part in parts {
            match self.condition(part)? {
                Truth::Open => all = Truth::Open,
                value if value == wanted => {}
                _ => return Ok(Truth::No),
            }
        }
        Ok(all)
    }

    /// Evaluates both sides of an operator. The right one comes first, as in Apache: the order is
    /// visible in `Vary`.
    fn both(&mut self, left: &Word, right: &Word) -> Result<(Vec<u8>, Vec<u8>), EvalError> {
        let right = self.text(right)?;
        Ok((self.text(left)?, right))
    }

    fn compare(&mut self, how: Comparison, left: &Word, right: &Word) -> Result<bool, EvalError> {
        let (left, right) = self.both(left, right)?;
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

    /// Matches. Only a regex with groups sets `$0`–`$9`; if it fails, they are unset.
    fn matches(&mut self, word: &Word, regex: &pcre::Regex) -> Result<Truth, EvalError> {
        let text = self.text(word)?;
        let mut captures = Captures::new();
        let groups = (regex.group_count() > 0).then_some(&mut captures);
        let has_groups = groups.is_some();
        let matched =
            self.env.matches(regex, &text, groups).map_err(|pcre::Later| EvalError::Later)?;
        match matched {
            Matched::Yes if has_groups => self.backrefs.set(&text, captures),
            Matched::No | Matched::Undecided(_) if has_groups => self.backrefs.clear(),
            _ => {}
        }
        Ok(match matched {
            Matched::Yes => Truth::Yes,
            Matched::No => Truth::No,
            Matched::Undecided(_) => Truth::Open,
        })
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
            Unary::FileAllowed => self.allowed(Subject::File, &text)?,
            Unary::UrlAllowed => self.allowed(Subject::Url, &text)?,
            Unary::Directory
            | Unary::Exists
            | Unary::RegularFile
            | Unary::FileNotEmpty
            | Unary::SymbolicLink
            | Unary::Executable => pure::file_test(operator, &text),
        })
    }

    fn allowed(&mut self, subject: Subject, text: &[u8]) -> Result<bool, EvalError> {
        self.env.allowed(subject, text).map_err(|pcre::Later| EvalError::Later)
    }

    fn wildcard(&mut self, word: &Word, pattern: &Word, kind: Wildcard) -> Result<bool, EvalError> {
        let (text, pattern) = self.both(word, pattern)?;
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
                let _ = order.into_iter().any(|table| self.look_in(table, name, out));
            }
            Table::RequestHeader => {
                self.vary(name);
                self.env.lookup(table, name, out);
            }
            _ => {
                self.look_in(table, name, out);
            }
        }
    }

    fn look_in(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool {
        self.read_undecided |= table == Table::RequestEnv && self.env.is_undecided(name);
        self.env.lookup(table, name, out)
    }

    /// `Host` is never part of Vary (RFC 9110, 12.5.5: it selects the resource itself).
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

/// The number at the start of `text`, as in C's `strtoll`: blanks, sign, digits; 0 if there is
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
