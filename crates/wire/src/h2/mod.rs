//! HTTP/2 (RFC 9113), of a server and of a client: bytes in, events out.
//!
//! A [`Connection`] takes what has been received ([`Connection::receive`], or of a client
//! [`Connection::receive_responses`]), and returns events: a request or a response, a piece of its
//! body, its end. What is to be sent gathers in [`Connection::output`]:
//! frames that the protocol itself needs, heads, and as much of bodies as the peer's windows allow.
//! Everything that a peer can make grow has a limit ([`Limits`]); frames
//! that bring no progress use up a budget ([`ledger::Ledger`]).

mod client;
mod code;
mod connection;
mod control;
mod fields;
mod frame;
pub mod hpack;
mod ledger;
mod prepared;
mod pseudo;
mod push;
mod receive;
mod response_fields;
mod send;
mod settings;
mod spare;
mod stream;
#[cfg(test)]
mod tests;
mod upgrade;
mod window;

pub use client::Pseudo;
pub use code::Code;
pub use connection::{Connection, Event, Failure, Limits};
pub use frame::{HEAD_BYTES as FRAME_HEAD_BYTES, PAYLOAD_BYTES as FRAME_PAYLOAD_BYTES, PREFACE};
pub use ledger::Ledger;
pub use prepared::Prepared;
pub use push::Promise;
pub use send::is_of_connection;
pub use spare::Spare;

/// The number of a stream; the client's are odd.
pub type StreamId = u32;
