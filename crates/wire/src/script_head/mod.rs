//! The head of a program's output (RFC 3875 section 6): fields up to an empty line, of which some
//! are about the response itself. FastCGI, SCGI and CGI have it in common.
//!
//! A line is at most 8,189 bytes long; CRs do not count, and are left out wherever they are. It is
//! a C string: what follows NUL is lost. Names and values are not checked yet.
//!
//! Source: `ap_scan_script_header_err_core_ex` with `getsfunc_BRIGADE` (server/util_script.c).
//! `recorded.txt` has Apache's answers. Files are read with [`crate::field_lines`], whose CRs stay.

mod end;
mod head;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::seen;

pub use end::EndOfHead;
pub use head::{ScriptFault, ScriptHead, ScriptHeadParser, ScriptProgress};

/// Longest line without CRs and its LF, bytes (`MAX_STRING_LEN - 3`).
pub const LINE_BYTES: usize = 8189;

/// Most bytes of a head. Apache has no such limit.
pub const HEAD_BYTES: usize = 1 << 20;

/// Most fields of a head. Apache has no such limit.
pub const FIELDS: usize = 4096;
