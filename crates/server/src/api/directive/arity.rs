//! The number of a directive's arguments, and the error if it is wrong.
//!
//! Source: `invoke_cmd` (server/config.c).

use conf::Arg;

use super::{Fault, Row, Takes};
use crate::api::module::Module;

/// The significant arguments: Apache treats an empty one (`""`) as missing, and in a list as its
/// end.
pub(super) fn counted<M: Module>(takes: Takes<M>, args: &[Arg]) -> &[Arg] {
    let empty = args.iter().position(|arg| arg.text.is_empty()).unwrap_or(args.len());
    let upto_empty = args.get(..empty).unwrap_or_default();
    match takes {
        Takes::Each(_) | Takes::EachOf(_) => upto_empty,
        Takes::One(_) | Takes::Two(_) if empty < args.len() => &[],
        Takes::Some { least, most: ..=3, .. } if empty < least => &[],
        Takes::Some { least: 1, most: 2, .. } if args.len() == 2 => upto_empty,
        _ => args,
    }
}

pub(super) fn flag(name: &str, arg: &Arg) -> Result<bool, Fault> {
    if arg.text.eq_ignore_ascii_case(b"on") {
        Ok(true)
    } else if arg.text.eq_ignore_ascii_case(b"off") {
        Ok(false)
    } else {
        Err(Fault::new(format!("{name} must be On or Off")).at(arg))
    }
}

/// Apache's error for a wrong number of arguments, which ends with the usage.
pub(super) fn arity<M: Module>(row: &Row<M>, wants: &str) -> Fault {
    Fault::new(format!("{} {wants}, {}", row.name, row.doc))
        .help(format!("usage: {} {}", row.name, row.syntax))
}

pub(super) fn how_many(least: usize, most: usize) -> String {
    const WORDS: [&str; 5] = ["zero", "one", "two", "three", "four"];
    let word = |n: usize| WORDS.get(n).map_or_else(|| n.to_string(), |w| (*w).to_owned());
    match (least, most) {
        (0, 1) => "takes zero or one argument".to_owned(),
        (1, 2) => "takes 1-2 arguments".to_owned(),
        (1, 3) => "takes one, two or three arguments".to_owned(),
        (1, usize::MAX) => "requires at least one argument".to_owned(),
        (n, usize::MAX) => format!("requires at least {} arguments", word(n)),
        (a, b) if b == a + 1 => format!("takes {} or {} arguments", word(a), word(b)),
        (a, b) if a == b => format!("takes {} arguments", word(a)),
        (a, b) => format!("takes {} to {} arguments", word(a), word(b)),
    }
}
