//! A connection that carries another protocol after a response's head.

use std::any::Any;
use std::time::Duration;

use rt::Stream;

/// What a connection becomes after CONNECT or `101 Switching Protocols` (RFC 9110 sections 9.3.6
/// and 15.2.2): bytes are copied both ways. It serves no further request.
pub struct Tunnel {
    /// The head of the response, as it is sent.
    pub head: Vec<u8>,
    /// The other end.
    pub far: Stream,
    /// What the other end has sent already.
    pub received: Vec<u8>,
    /// The time without any byte after which the tunnel ends.
    pub idle: Duration,
    /// What is logged then.
    pub timed_out: Option<&'static Message>,
    /// The status in the log if the other end sends nothing.
    pub unanswered: Option<u16>,
    /// What is to be dropped with the tunnel, such as counters.
    pub guard: Box<dyn Any>,
}

/// An error of a module.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// The module's file.
    pub module: &'static str,
    /// Its number.
    pub number: u32,
    /// Its text.
    pub text: &'static str,
}
