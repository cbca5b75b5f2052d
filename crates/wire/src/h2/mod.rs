//! HTTP/2 (RFC 9113), the server's side: bytes in, events out.
//!
//! A [`Connection`] takes what has been received ([`Connection::receive`]), and returns events: a
//! request, a piece of its body, its end. What is to be sent gathers in [`Connection::output`]:
//! frames that the protocol itself needs, heads of responses, and as much of their bodies as the
//! client's windows allow. Everything that a client can make grow has a limit ([`Limits`]); frames
//! that bring no progress use up a budget ([`ledger::Ledger`]).

mod code;
mod connection;
mod control;
mod fields;
mod frame;
pub mod hpack;
mod ledger;
mod receive;
mod send;
mod settings;
mod stream;
#[cfg(test)]
mod tests;
mod upgrade;
mod window;

pub use code::Code;
pub use connection::{Connection, Event, Failure, Limits};
pub use frame::PREFACE;
pub use ledger::Ledger;

/// The number of a stream; the client's are odd.
pub type StreamId = u32;
