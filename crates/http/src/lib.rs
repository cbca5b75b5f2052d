//! Everything between the socket and the phases: connections, heads, framing, and the responses
//! that are remembered.
//!
//! HTTP/1 stands here. A second protocol lives beside [`connection`]: it makes its requests from a
//! [`service::Service`], hands each a body source of its own, runs [`server::process`], and frames
//! the response in its own way. Nothing behind that call knows a socket.

pub mod cache;
pub mod connection;
pub mod respond;
pub mod service;
