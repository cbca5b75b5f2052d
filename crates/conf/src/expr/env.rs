//! What an evaluation is given: the request's side of an expression, and `$0`–`$9`.

use std::net::IpAddr;

use pcre::{Captures, Later, Matched, Regex};

use super::names::{Subject, Table, Variable};

/// The request (or connection) that an expression is evaluated for.
///
/// Every method appends to `out` and says whether there was a value; no value is an empty string.
pub trait Env {
    /// The value of a variable.
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool;

    /// A header, note or environment variable by name.
    ///
    /// Not called for [`Table::Env`] as such: the evaluator asks for note, then reqenv, then osenv.
    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool;

    /// The client's address, for `-R`; `None` makes it false.
    fn client_address(&mut self) -> Option<IpAddr>;

    /// `-F`, `-U`, `-A`: may the client have this file or URL? Apache asks by a subrequest.
    ///
    /// # Errors
    /// That hangs on a match, as [`Env::matches`].
    fn allowed(&mut self, subject: Subject, text: &[u8]) -> Result<bool, Later>;

    /// A request header was read, so the answer varies by it. Not called with
    /// [`Flags::dont_vary`](super::Flags), for `Host`, or by `req_novary`.
    fn vary(&mut self, header: &[u8]) {
        let _ = header;
    }

    /// Whether a pattern matches, and where its groups lie. [`Later`] ends the evaluation: once the
    /// match is decided it is evaluated again.
    ///
    /// # Errors
    /// The match takes longer than the caller can wait.
    fn matches(
        &mut self,
        regex: &Regex,
        subject: &[u8],
        captures: Option<&mut Captures>,
    ) -> Result<Matched, Later> {
        Ok(regex.matches(subject, captures))
    }

    /// Whether nothing can be said of a variable, because a match that sets it is undecided.
    fn is_undecided(&self, variable: &[u8]) -> bool {
        let _ = variable;
        false
    }

    /// A module's string function, by the id that [`Names`](super::Names) gave.
    fn module_function(&mut self, id: u32, argument: &[u8], out: &mut Vec<u8>) -> bool {
        let _ = (id, argument, out);
        false
    }

    /// A module's list function: does its list contain `needle`?
    fn module_list_contains(&mut self, id: u32, argument: &[u8], needle: &[u8]) -> bool {
        let _ = (id, argument, needle);
        false
    }

    /// A module's operator with one argument.
    fn module_unary(&mut self, id: u32, argument: &[u8]) -> bool {
        let _ = (id, argument);
        false
    }

    /// A module's operator with two arguments.
    fn module_binary(&mut self, id: u32, left: &[u8], right: &[u8]) -> bool {
        let _ = (id, left, right);
        false
    }
}

/// What `$0`–`$9` mean: the last regex with groups that matched, and the text it matched.
#[derive(Clone, Debug, Default)]
pub struct Backrefs {
    subject: Vec<u8>,
    captures: Captures,
}

impl Backrefs {
    /// No reference means anything.
    pub fn new() -> Backrefs {
        Backrefs::default()
    }

    /// The references that a match outside the expression has left.
    pub fn from_match(subject: &[u8], captures: Captures) -> Backrefs {
        Backrefs { subject: subject.to_vec(), captures }
    }

    /// The text of `$index`; empty when it is not set.
    pub fn text(&self, index: usize) -> &[u8] {
        self.captures.text(index, &self.subject).unwrap_or(&[])
    }

    /// The text that was matched, as [`pcre::substitute`] wants it.
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// Where the groups lie in [`Backrefs::subject`].
    pub fn captures(&self) -> &Captures {
        &self.captures
    }

    pub(super) fn set(&mut self, subject: &[u8], captures: Captures) {
        self.subject.clear();
        self.subject.extend_from_slice(subject);
        self.captures = captures;
    }

    pub(super) fn clear(&mut self) {
        self.subject.clear();
        self.captures = Captures::new();
    }
}
