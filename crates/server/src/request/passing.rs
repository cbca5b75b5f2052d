//! A connection that another process takes over after a response's head.

use rt::Stream;

/// Passes the client's descriptor to another process, which sends the response's body. This server
/// serves no further request on the connection, and does not close it for the client.
pub struct Passing {
    /// The UNIX socket of the process.
    pub to: Stream,
    /// The module's file, for messages.
    pub module: &'static str,
}
