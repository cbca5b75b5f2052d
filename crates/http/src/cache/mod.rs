//! The cache of responses.

mod fields;
mod given;
mod recent;
pub mod response;
mod shared;
mod store;
mod texts;
mod timed;
