//! The cache of responses.

mod fields;
mod given;
mod key;
mod recent;
mod redirected;
pub mod response;
mod shared;
mod store;
mod texts;
mod timed;
