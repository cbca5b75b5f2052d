//! Responses that are kept.

mod given;
pub mod resource;
