//! The cache of responses.

mod given;
pub mod response;
mod store;
mod timed;
