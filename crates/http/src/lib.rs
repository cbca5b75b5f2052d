//! Everything between the socket and the phases: connections, heads, framing, and cached responses.
//!
//! A connection speaks HTTP/1 or HTTP/2. Both create requests from a [`service::Service`], give
//! each a body source of its own, run [`server::process`], and frame the response. Nothing behind
//! that call knows a socket.

mod broken_fields;
mod byterange;
pub mod cache;
pub mod connection;
mod head_text;
mod persistence;
pub mod respond;
pub mod service;
mod vary;
