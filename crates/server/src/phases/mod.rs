//! The phases of a request in Apache's order; [`process`] is the entry point.

mod changes;
mod derived;
pub mod discard;
pub mod errors;
pub mod expr;
pub mod handler;
pub mod hostname;
mod lookup;
pub mod matching;
pub mod other_method;
pub mod process;
pub mod redirect;
pub mod request_uri;
pub mod subrequest;
pub mod twin;
mod uri_of_file;
pub mod walk;
