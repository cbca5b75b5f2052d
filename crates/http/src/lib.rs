//! Everything between the socket and the phases: connections, heads, framing, and cached responses.
//!
//! This crate has HTTP/1. A second protocol would be a neighbour of [`connection`]: it creates its
//! requests from a [`service::Service`], gives each a body source of its own, runs
//! [`server::process`], and frames the response itself. Nothing behind that call knows a socket.

mod broken_fields;
mod byterange;
pub mod cache;
pub mod connection;
pub mod respond;
pub mod service;
mod vary;
