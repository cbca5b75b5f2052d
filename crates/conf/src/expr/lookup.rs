//! The core's functions and operators by name.

use super::ast::{Pure, Unary, Wildcard};
use super::names::Table;

/// The meaning of a function's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Lookup(Table),
    Pure(Pure),
}

/// Name, meaning, and whether the function is restricted.
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

const UNARY: &[(&str, Unary)] = &[
    ("n", Unary::NotEmpty),
    ("z", Unary::Empty),
    ("T", Unary::Truthy),
    ("d", Unary::Directory),
    ("e", Unary::Exists),
    ("f", Unary::RegularFile),
    ("s", Unary::FileNotEmpty),
    ("L", Unary::SymbolicLink),
    ("h", Unary::SymbolicLink),
    ("x", Unary::Executable),
    ("F", Unary::FileAllowed),
    ("U", Unary::UrlAllowed),
    ("A", Unary::UrlAllowed),
];

pub(super) fn function(name: &str) -> Option<(Function, bool)> {
    let found = FUNCTIONS.iter().find(|(known, ..)| known.eq_ignore_ascii_case(name));
    found.map(|(_, function, restricted)| (*function, *restricted))
}

/// Names are case-sensitive here.
pub(super) fn unary(name: &str) -> Option<Unary> {
    let found = UNARY.iter().find(|(known, _)| *known == name);
    found.map(|(_, operator)| *operator)
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
