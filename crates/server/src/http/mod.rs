//! Everything between the socket and the phases.

pub mod cache;
pub mod connection;
pub mod respond;
