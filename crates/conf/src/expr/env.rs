//! The inputs of an evaluation: the request's side of an expression, and `$0`–`$9`.

use std::net::IpAddr;

use pcre::{Captures, Later, Matched, Regex};

use super::names::{Subject, Table, Variable};

/// The request or connection for which an expression is evaluated.
///
/// Methods append to `out` and return whether there was a value; a missing value is an empty
/// string.
pub trait Env {
    /// Appends the value of a variable.
    fn variable(&mut self, variable: Variable, out: &mut Vec<u8>) -> bool;

    /// Appends a header, note or environment variable by name.
    ///
    /// Not called for [`Table::Env`] itself: the evaluator tries note, reqenv and osenv in turn.
    fn lookup(&mut self, table: Table, name: &[u8], out: &mut Vec<u8>) -> bool;

    /// The client's address, for `-R`, which is false on `None`.
    fn client_address(&mut self) -> Option<IpAddr>;

    /// `-F`, `-U`, `-A`: whether the client may access this file or URL. Apache uses a subrequest.
    ///
    /// # Errors
    /// The outcome depends on a match, as in [`Env::matches`].
    fn allowed(&mut self, subject: Subject, text: &[u8]) -> Result<bool, Later>;

    /// Notes that a request header was read, so that the response varies by it. Not called with
    /// [`Flags::dont_vary`](super::Flags), for `Host`, or by `req_novary`.
    fn vary(&mut self, header: &[u8]) {
        let _ = header;
    }

    /// Whether a pattern matches, and the positions of its groups. [`Later`] ends the evaluation,
    /// which starts again once the match is decided.
    ///
    /// # Errors
    /// The match takes longer than the caller can block.
    fn matches(
        &mut self,
        regex: &Regex,
        subject: &[u8],
        captures: Option<&mut Captures>,
    ) -> Result<Matched, Later> {
        Ok(regex.matches(subject, captures))
    }

    /// Whether the variable's value is unknown, because a match that sets it is undecided.
    fn is_undecided(&self, variable: &[u8]) -> bool {
        let _ = variable;
        false
    }

    /// Calls a module's string function, by the id from [`Names`](super::Names).
    fn module_function(&mut self, id: u32, argument: &[u8], out: &mut Vec<u8>) -> bool {
        let _ = (id, argument, out);
        false
    }

    /// Whether the list of a module's list function contains `needle`.
    fn module_list_contains(&mut self, id: u32, argument: &[u8], needle: &[u8]) -> bool {
        let _ = (id, argument, needle);
        false
    }

    /// Evaluates a module's operator with one argument.
    fn module_unary(&mut self, id: u32, argument: &[u8]) -> bool {
        let _ = (id, argument);
        false
    }

    /// Evaluates a module's operator with two arguments.
    fn module_binary(&mut self, id: u32, left: &[u8], right: &[u8]) -> bool {
        let _ = (id, left, right);
        false
    }
}

/// The values of `$0`–`$9`: the last successful match of a regex with groups, and its subject.
#[derive(Clone, Debug, Default)]
pub struct Backrefs {
    subject: Vec<u8>,
    captures: Captures,
}

impl Backrefs {
    /// Returns references that are all unset.
    pub fn new() -> Backrefs {
        Backrefs::default()
    }

    /// Returns the references of a match outside of the expression.
    pub fn from_match(subject: &[u8], captures: Captures) -> Backrefs {
        Backrefs { subject: subject.to_vec(), captures }
    }

    /// The text of `$index`; empty if it is unset.
    pub fn text(&self, index: usize) -> &[u8] {
        self.captures.text(index, &self.subject).unwrap_or(&[])
    }

    /// The subject, for [`pcre::substitute`].
    pub fn subject(&self) -> &[u8] {
        &self.subject
    }

    /// The positions of the groups in [`Backrefs::subject`].
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
