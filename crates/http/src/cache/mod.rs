//! The cache of responses.

mod fields;
mod given;
mod key;
pub(crate) mod prepared;
mod recent;
mod redirected;
pub mod response;
mod shared;
mod store;
mod texts;
mod timed;
