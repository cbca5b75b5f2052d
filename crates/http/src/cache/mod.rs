//! Responses that are kept, and heads that are known by their bytes.

mod given;
pub(crate) mod repeat;
pub mod resource;
