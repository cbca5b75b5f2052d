//! Conditions in the syntax of Apache 2.2 (`SSILegacyExprParser`).
//!
//! Source: `parse_expr`

mod evaluate;
mod pattern;
mod token;
mod tree;

use server::errorlog::Verbatim;
use server::log::Level;

use super::page::Page;

pub(super) use pattern::Patterns;
pub(super) use tree::{Node, parse};

/// Why a condition has no value: a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Invalid {
    number: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Expression,
    Unopened,
    Unclosed,
    NoUri,
}

impl Invalid {
    const fn expression(number: u32) -> Invalid {
        Invalid { number, kind: Kind::Expression }
    }

    fn log(self, page: &Page<'_>, condition: &[u8]) {
        let (condition, file) = (Verbatim::new(condition), page.file());
        let text = match self.kind {
            Kind::Expression => format!("Invalid expression \"{condition}\" in file {file}"),
            Kind::Unopened => format!("Unmatched ')' in \"{condition}\" in file {file}"),
            Kind::Unclosed => format!("Unmatched '(' in \"{condition}\" in file {file}"),
            Kind::NoUri => format!(
                "Invalid expression \"{condition}\" in file {file}: Token '-A' must be followed by \
                 a URI string."
            ),
        };
        page.log(Level::Error, self.number, format_args!("{text}"));
    }
}

/// Whether a condition holds, from its text and what that was parsed to; an error is logged.
pub(super) async fn holds(
    page: &mut Page<'_>,
    condition: &[u8],
    parsed: Result<&Option<Box<Node>>, &Invalid>,
) -> Option<bool> {
    let outcome = match parsed {
        Ok(None) => Ok(false),
        Ok(Some(tree)) => evaluate::holds(page, tree).await,
        Err(invalid) => Err(*invalid),
    };
    outcome.map_err(|invalid| invalid.log(page, condition)).ok()
}
