//! One line of `Header` or `RequestHeader`.

use std::sync::Arc;

use conf::expr::Expr;
use pcre::Regex;

use super::format::Format;

/// A change of fields, and when it is made.
#[derive(Clone)]
pub(super) struct Entry {
    /// What is done.
    pub action: Action,
    /// The field's name; a pattern of names for `echo`.
    pub name: Vec<u8>,
    /// On what it depends.
    pub condition: Condition,
}

impl Entry {
    /// Whether the change is made before anything else is known.
    pub fn is_early(&self) -> bool {
        matches!(self.condition, Condition::Early)
    }

    /// Whether what it does to an answer is the same for every request.
    pub fn is_pure(&self) -> bool {
        let free = match &self.condition {
            Condition::Always | Condition::Early => true,
            Condition::Variable(..) => false,
            Condition::Expression(expr) => expr.is_constant(),
        };
        free && match &self.action {
            Action::Unset => true,
            // A note is for the log, and no part of the answer.
            Action::Echo(_) | Action::Note(_) => false,
            Action::Add(value)
            | Action::Append(value)
            | Action::Merge(value)
            | Action::Set(value)
            | Action::SetIfEmpty(value)
            | Action::Edit(_, value)
            | Action::EditAll(_, value) => value.is_constant(),
        }
    }
}

/// On what a change depends.
#[derive(Clone)]
pub(super) enum Condition {
    /// Nothing.
    Always,
    /// Nothing, but it is made as soon as the request was read.
    Early,
    /// `env=NAME`, `env=!NAME`: the variable, and whether it must be there.
    Variable(Vec<u8>, bool),
    /// `expr=`
    Expression(Arc<Expr>),
}

/// What is done to a field.
#[derive(Clone)]
pub(super) enum Action {
    /// `add`: one more field.
    Add(Value),
    /// `append`: joined to the value that is there.
    Append(Value),
    /// `merge`: joined, unless it is an element already.
    Merge(Value),
    /// `set`: instead of all that are there.
    Set(Value),
    /// `setifempty`: where there is none.
    SetIfEmpty(Value),
    /// `unset`
    Unset,
    /// `echo`: the request's fields of these names are sent back.
    Echo(Regex),
    /// `edit`: the first match is replaced.
    Edit(Regex, Value),
    /// `edit*`: all matches are replaced.
    EditAll(Regex, Value),
    /// `note`: the value becomes a note.
    Note(Value),
}

/// The value of a field.
#[derive(Clone)]
pub(super) enum Value {
    /// Text with `%{…}e` and the like.
    Format(Arc<Format>),
    /// `expr=`
    Expression(Arc<Expr>),
}

impl Value {
    /// Whether it is the same for every request.
    fn is_constant(&self) -> bool {
        match self {
            Value::Format(format) => format.is_constant(),
            Value::Expression(expr) => expr.is_constant(),
        }
    }
}
