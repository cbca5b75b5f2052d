//! A line of `Header` or `RequestHeader`.

use std::sync::Arc;

use conf::Span;
use conf::expr::Expr;
use pcre::Regex;

use super::format::Format;

/// A change to fields, and its condition.
#[derive(Clone)]
pub(super) struct Entry {
    /// Its position.
    pub span: Span,
    /// The action.
    pub action: Action,
    /// The field's name; for `echo` a pattern of names.
    pub name: Vec<u8>,
    /// The condition.
    pub condition: Condition,
}

impl Entry {
    /// Whether the change is applied as soon as the request is read.
    pub fn is_early(&self) -> bool {
        matches!(self.condition, Condition::Early)
    }

    /// Whether its effect on a response is the same for every request.
    pub fn is_pure(&self) -> bool {
        let free = match &self.condition {
            Condition::Always | Condition::Early => true,
            Condition::Variable(..) => false,
            Condition::Expression(expr) => expr.is_constant(),
        };
        free && match &self.action {
            Action::Unset => true,
            // A note is for the log, not a part of the response.
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

/// The condition of a change.
#[derive(Clone)]
pub(super) enum Condition {
    /// None.
    Always,
    /// None; the change is applied as soon as the request is read.
    Early,
    /// `env=NAME`, `env=!NAME`: the variable, and whether it must be set.
    Variable(Vec<u8>, bool),
    /// `expr=`
    Expression(Arc<Expr>),
}

/// The action on a field.
#[derive(Clone)]
pub(super) enum Action {
    /// `add`: add a field.
    Add(Value),
    /// `append`: append to the existing value.
    Append(Value),
    /// `merge`: append, unless it is already an element.
    Merge(Value),
    /// `set`: replace all fields of this name.
    Set(Value),
    /// `setifempty`: set if there is no such field.
    SetIfEmpty(Value),
    /// `unset`
    Unset,
    /// `echo`: copy the request's fields with matching names to the response.
    Echo(Regex),
    /// `edit`: replace the first match.
    Edit(Regex, Value),
    /// `edit*`: replace all matches.
    EditAll(Regex, Value),
    /// `note`: set a note.
    Note(Value),
}

/// The value of a field.
#[derive(Clone)]
pub(super) enum Value {
    /// Text with `%{…}e` and so on.
    Format(Arc<Format>),
    /// `expr=`
    Expression(Arc<Expr>),
}

impl Value {
    /// Whether the value is the same for every request.
    fn is_constant(&self) -> bool {
        match self {
            Value::Format(format) => format.is_constant(),
            Value::Expression(expr) => expr.is_constant(),
        }
    }
}
