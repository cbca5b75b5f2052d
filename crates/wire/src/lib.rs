//! HTTP without I/O: bytes in, events out. The behaviour is that of Apache httpd 2.4.71.
//!
//! Nothing here reads a socket, a file or a clock, so byte strings suffice to test and fuzz all of
//! it. Values that a connection reuses (`RequestHead`, `Table`, decoders) keep their memory when
//! they are cleared.
#![forbid(unsafe_code)]

pub mod accept;
pub mod address;
pub mod ajp;
pub mod backend_request;
pub mod chars;
pub mod chunked;
pub mod conditional;
pub mod date;
pub mod escape;
pub mod etag;
pub mod fastcgi;
pub mod field_lines;
pub mod ftp;
pub mod h2;
pub mod host;
pub mod link;
pub mod list;
pub mod memcache;
pub mod method;
pub mod priority;
pub mod proxy_protocol;
pub mod range;
#[cfg(test)]
mod recorded_tests;
pub mod redis;
pub mod request;
pub mod response;
mod scan;
pub mod scgi;
pub mod script_head;
pub mod status;
pub mod table;
pub mod uri;
pub mod uwsgi;
pub mod variable;
mod words;
pub mod wsgi;

pub use host::RequestHost;
pub use method::{Method, MethodRegistry, MethodSet};
pub use request::{
    Body, HeadError, HeadFlags, HeadLimits, HeadOptions, HeadParser, LogLevel, Progress,
    RequestHead, Version,
};
pub use status::Status;
pub use table::{Overlap, Table};
