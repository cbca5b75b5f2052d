//! The tree of an expression, with names resolved and patterns compiled.

use std::net::IpAddr;

use bstr::BString;
use pcre::Regex;

use super::names::{Table, Variable};
use crate::values::Subnet;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Root {
    Bool(Condition),
    Text(Word),
}

/// A boolean expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Condition {
    Constant(bool),
    Not(Box<Condition>),
    /// True if all are. At least two.
    All(Vec<Condition>),
    /// True if one is. At least two.
    Any(Vec<Condition>),
    Compare(Comparison, Word, Word),
    Matches {
        word: Word,
        regex: Regex,
        negated: bool,
    },
    In(Word, List),
    Unary(Unary, Word),
    ModuleUnary {
        id: u32,
        word: Word,
    },
    /// `-R`: whether the client's address is in the subnet.
    ClientIn(Subnet),
    AddressIn(Word, Subnet),
    Wildcard {
        word: Word,
        pattern: Word,
        kind: Wildcard,
    },
    ModuleBinary {
        id: u32,
        left: Word,
        right: Word,
    },
}

/// Order or equality, of numbers or strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) numeric: bool,
    pub(super) relation: Relation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The core's operators with one argument, as in the manual's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    NotEmpty,
    Empty,
    Truthy,
    Directory,
    Exists,
    RegularFile,
    FileNotEmpty,
    SymbolicLink,
    Executable,
    /// `-F`, `-U`, `-A`: a subrequest, by file or by URL.
    FileAllowed,
    UrlAllowed,
}

impl Unary {
    /// Whether it tests a file itself, not by a subrequest.
    pub fn reads_file_system(self) -> bool {
        use Unary::{Directory, Executable, Exists, FileNotEmpty, RegularFile, SymbolicLink};
        matches!(self, Directory | Exists | RegularFile | FileNotEmpty | SymbolicLink | Executable)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wildcard {
    /// `-strmatch`
    Any,
    /// `-strcmatch`
    IgnoringCase,
    /// `-fnmatch`
    PathName,
}

/// The right side of `-in`.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum List {
    Words(Vec<Word>),
    /// A module's list function.
    Module {
        id: u32,
        argument: Box<Word>,
    },
}

/// A string expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Literal(BString),
    Variable(Variable),
    Backref(usize),
    /// Concatenation of two or more.
    Concat(Vec<Word>),
    /// A header, note or environment variable whose name is computed.
    Lookup(Table, Box<Word>),
    Pure(Pure, Box<Word>),
    ModuleFunction {
        id: u32,
        argument: Box<Word>,
    },
}

/// Functions that depend only on their argument or on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pure {
    ToLower,
    ToUpper,
    Escape,
    Unescape,
    Base64,
    Unbase64,
    Md5,
    Sha1,
    File,
    FileSize,
    Ldap,
}

impl Condition {
    /// Whether the value is the same for every request.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Condition::Constant(_) => true,
            Condition::Not(inner) => inner.is_constant(),
            Condition::All(parts) | Condition::Any(parts) => {
                parts.iter().all(Condition::is_constant)
            }
            Condition::Compare(_, left, right) => left.is_constant() && right.is_constant(),
            Condition::Matches { word, .. } => word.is_constant(),
            Condition::In(word, List::Words(list)) => {
                word.is_constant() && list.iter().all(Word::is_constant)
            }
            Condition::Unary(Unary::NotEmpty | Unary::Empty | Unary::Truthy, word) => {
                word.is_constant()
            }
            Condition::Wildcard { word, pattern, .. } => {
                word.is_constant() && pattern.is_constant()
            }
            Condition::AddressIn(word, _) => word.is_constant(),
            Condition::In(_, List::Module { .. })
            | Condition::Unary(..)
            | Condition::ModuleUnary { .. }
            | Condition::ClientIn(_)
            | Condition::ModuleBinary { .. } => false,
        }
    }
}

impl Word {
    /// The value of a literal.
    pub(super) fn constant(&self) -> Option<&[u8]> {
        match self {
            Word::Literal(text) => Some(text),
            _ => None,
        }
    }

    /// Whether the value is the same for every request.
    pub(super) fn is_constant(&self) -> bool {
        match self {
            Word::Literal(_) => true,
            Word::Concat(parts) => parts.iter().all(Word::is_constant),
            Word::Pure(Pure::File | Pure::FileSize, _) => false,
            Word::Pure(_, argument) => argument.is_constant(),
            Word::Variable(_)
            | Word::Backref(_)
            | Word::Lookup(..)
            | Word::ModuleFunction { .. } => false,
        }
    }
}

/// Parses an address for the left side of `-ipmatch`. Apache resolves names, which could take
/// seconds for a name that a client chose; here a name is not an address.
pub(super) fn address(text: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(text).ok()?.parse().ok()
}
