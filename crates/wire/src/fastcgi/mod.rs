//! FastCGI as the web server speaks it: a request is written as records, the records of the
//! response are decoded as bytes arrive.
//!
//! A record is a header of 8 bytes (version 1, type, id of 2 bytes, length of 2 bytes, length of
//! the padding, reserved), up to 65,535 bytes of content, and up to 255 of padding. As in Apache, a
//! connection carries one request at a time, whose id is 1.
//!
//! Specification: <https://fastcgi-archives.github.io/FastCGI_Specification.html>, sections 3 to 5.
//! Source: `dispatch` (mod_proxy_fcgi) and server/util_fcgi.c. `recorded.txt` has Apache's answers.

mod decode;
mod encode;
mod pairs;
#[cfg(test)]
mod tests;

pub use decode::{EndRequest, Event, Fault, RecordDecoder};
pub use encode::{
    ABORT, END_OF_STDIN, ParamsError, Skipped, begin_request, stdin_header, write_get_values,
    write_params,
};
pub use pairs::{Pairs, write_pair};

/// The id of the request; Apache's, too.
pub const REQUEST_ID: u16 = 1;

/// The largest content of a record of parameters, bytes. A longer pair is left out (`AH02536`).
pub const PARAMS_RECORD_BYTES: usize = 16 * 1024;

/// Most bytes of all parameters of a request. Apache has no such limit.
pub const PARAMS_BYTES: usize = 1 << 20;

/// The largest content of a record of the body, bytes.
pub const STDIN_RECORD_BYTES: usize = 65_535;

/// Length of a record's header, bytes.
pub const HEADER_BYTES: usize = 8;

const VERSION: u8 = 1;

/// Types of records.
mod kind {
    pub const BEGIN_REQUEST: u8 = 1;
    pub const ABORT_REQUEST: u8 = 2;
    pub const END_REQUEST: u8 = 3;
    pub const PARAMS: u8 = 4;
    pub const STDIN: u8 = 5;
    pub const STDOUT: u8 = 6;
    pub const STDERR: u8 = 7;
    pub const GET_VALUES: u8 = 9;
    pub const GET_VALUES_RESULT: u8 = 10;
    pub const UNKNOWN_TYPE: u8 = 11;
}

/// What the backend is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// It produces the response.
    Responder = 1,
    /// It decides on access (mod_authnz_fcgi).
    Authorizer = 2,
}
