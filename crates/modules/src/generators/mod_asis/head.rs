//! The header fields at the beginning of a file.
//!
//! Source: `ap_scan_script_header_err_core_ex` (server/util_script.c). mod_asis continues after an
//! error: fields that were set stay set, and gathered ones are lost.

use server::request::Request;
use wire::field_lines::{self, FieldLine};
use wire::script_head::ScriptHead;

use super::Asis;
use crate::util_script::head::{log, put};

/// Copies the fields into the response, and returns the position at which the body begins.
pub(super) fn take(request: &mut Request, text: &[u8]) -> usize {
    let (mut rest, mut head) = (text, ScriptHead::new());
    let mut is_first = true;
    while let Some(line) = field_lines::take(&mut rest) {
        match line {
            FieldLine::Field(name, value) => head.add(name, value),
            FieldLine::End => {
                put::<Asis>(request, &head, true);
                return text.len() - rest.len();
            }
            FieldLine::Malformed(_) => {
                put::<Asis>(request, &head, false);
                // When Apache logs the line, it has already overwritten it.
                log::<Asis>(request, "malformed header from script", Some("Bad header: "));
                return text.len();
            }
        }
        is_first = false;
    }
    put::<Asis>(request, &head, false);
    let fault = "End of script output before headers";
    log::<Asis>(request, if is_first { fault } else { "Premature end of script headers" }, None);
    text.len()
}
