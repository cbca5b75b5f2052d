//! The cache of responses.

mod given;
pub mod response;
mod shared;
mod store;
mod timed;
