//! Logs of their own: messages in phases of a request, and requests before and after them.

use super::Phase::Log;
use super::{GLOBAL, HOST, Row, SECTION, row};
use crate::choice::Choice;
use crate::site::MAIN_LOG;

pub const ROWS: &[Row] = &[
    row("log_debug", "LogMessage", Log, GLOBAL | HOST | SECTION, 2, message),
    row("log_forensic", "ForensicLog", Log, HOST, 1, |_| "logs/@HOST@.forensic".to_owned()),
    row("log_forensic", "ForensicLog", Log, GLOBAL, 2, |_| MAIN_LOG.to_owned()),
];

/// A message, its hook and its condition.
pub fn message(choice: &mut Choice) -> String {
    let hook = choice.one(&[
        "",
        "",
        " hook=all",
        " hook=*",
        " hook=pre_translate_name",
        " hook=translate_name",
        " hook=type_checker",
        " hook=quick_handler",
        " hook=map_to_storage",
        " hook=check_access",
        " hook=check_access_ex",
        " hook=insert_filter",
        " hook=check_authn",
        " hook=check_authz",
        " hook=fixups",
        " hook=handler",
        " hook=log_transaction",
        " hook=Fixups",
    ]);
    let condition = match choice.random.below(4) {
        0 => format!(" \"expr={}\"", choice.expression(1)),
        _ => String::new(),
    };
    format!("\"m {}\"{hook}{condition}", choice.template())
}
