//! The core's functions and operators by name.

use super::ast::{Pure, Unary, Wildcard};
use super::names::{Names, Table, Variable};

/// What a function's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Lookup(Table),
    Pure(Pure),
}

/// Name, meaning, and whether it is refused in restricted places.
const FUNCTIONS: &[(&str, Function, bool)] = &[
    ("req", Function::Lookup(Table::RequestHeader), false),
    ("http", Function::Lookup(Table::RequestHeader), false),
    ("req_novary", Function::Lookup(Table::RequestHeaderNoVary), false),
    ("resp", Function::Lookup(Table::ResponseHeader), false),
    ("reqenv", Function::Lookup(Table::RequestEnv), false),
    ("osenv", Function::Lookup(Table::OsEnv), false),
    ("note", Function::Lookup(Table::Note), false),
    ("env", Function::Lookup(Table::Env), false),
    ("tolower", Function::Pure(Pure::ToLower), false),
    ("toupper", Function::Pure(Pure::ToUpper), false),
    ("escape", Function::Pure(Pure::Escape), false),
    ("unescape", Function::Pure(Pure::Unescape), false),
    ("base64", Function::Pure(Pure::Base64), false),
    ("unbase64", Function::Pure(Pure::Unbase64), false),
    ("md5", Function::Pure(Pure::Md5), false),
    ("sha1", Function::Pure(Pure::Sha1), false),
    ("ldap", Function::Pure(Pure::Ldap), false),
    ("file", Function::Pure(Pure::File), true),
    ("filesize", Function::Pure(Pure::FileSize), true),
];

const UNARY: &[(&str, Unary, bool)] = &[
    ("n", Unary::NotEmpty, false),
    ("z", Unary::Empty, false),
    ("T", Unary::Truthy, false),
    ("d", Unary::Directory, true),
    ("e", Unary::Exists, true),
    ("f", Unary::RegularFile, true),
    ("s", Unary::FileNotEmpty, true),
    ("L", Unary::SymbolicLink, true),
    ("h", Unary::SymbolicLink, true),
    ("x", Unary::Executable, true),
    ("F", Unary::FileAllowed, false),
    ("U", Unary::UrlAllowed, false),
    ("A", Unary::UrlAllowed, false),
];

pub(super) fn function(name: &str) -> Option<(Function, bool)> {
    let found = FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    found.map(|(_, function, restricted)| (*function, *restricted))
}

/// Case counts here.
pub(super) fn unary(name: &str) -> Option<(Unary, bool)> {
    let found = UNARY.iter().find(|(known, ..)| *known == name);
    found.map(|(_, operator, restricted)| (*operator, *restricted))
}

pub(super) fn wildcard(name: &str) -> Option<Wildcard> {
    let table = [
        ("strmatch", Wildcard::Any),
        ("strcmatch", Wildcard::IgnoringCase),
        ("fnmatch", Wildcard::PathName),
    ];
    let found = table.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, kind)| *kind)
}

pub(super) fn variable(name: &str, names: &dyn Names) -> Option<Variable> {
    Variable::by_name(name).or_else(|| names.variable(name).map(Variable::Module))
}
