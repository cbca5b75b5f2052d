//! A backend's end of a connection, with what was received and not yet understood.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;

use socket2::Socket;

use crate::stall::Deadline;

use super::descriptor;

const READ_CHUNK_BYTES: usize = 64 * 1024;
const SEND_LIMIT: Duration = Duration::from_secs(20);

/// A connection.
pub struct Wire {
    socket: Arc<Socket>,
    /// Received bytes, from the first of the current request.
    pub buffer: Vec<u8>,
    /// Whether the server has closed, or the connection is broken.
    pub is_closed: bool,
}

/// The result of a read.
#[derive(Debug, PartialEq)]
pub enum Fill {
    More,
    Closed,
    Timeout,
}

impl Wire {
    pub fn new(socket: Arc<Socket>) -> std::io::Result<Wire> {
        socket.set_write_timeout(Some(SEND_LIMIT))?;
        Ok(Wire { socket, buffer: Vec::new(), is_closed: false })
    }

    /// Reads once, until `deadline` if there is one.
    pub fn fill(&mut self, deadline: Option<Deadline>) -> Fill {
        let mut chunk = vec![0; READ_CHUNK_BYTES];
        while !self.is_closed {
            let left = match deadline.map(|deadline| deadline.left()) {
                None => None,
                Some(None) => return Fill::Timeout,
                Some(Some(left)) => Some(left.max(Duration::from_millis(1))),
            };
            let _ = self.socket.set_read_timeout(left);
            match (&*self.socket).read(&mut chunk) {
                Ok(0) => self.is_closed = true,
                Ok(count) => {
                    self.buffer.extend_from_slice(chunk.get(..count).unwrap_or_default());
                    return Fill::More;
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => self.is_closed = true,
                },
            }
        }
        Fill::Closed
    }

    /// The connection whose descriptor the server passes over this one. Its first received bytes
    /// are those of the message.
    pub fn client(&self) -> Option<Wire> {
        let (message, client) = descriptor::receive(&self.socket)?;
        let mut wire = Wire::new(Arc::new(client)).ok()?;
        wire.buffer = message;
        Some(wire)
    }

    /// Sends all bytes; that the server has closed is no error here.
    pub fn send(&self, bytes: &[u8]) {
        let _ = (&*self.socket).write_all(bytes);
    }

    /// Closes the sending side.
    pub fn half_close(&self) {
        let _ = self.socket.shutdown(Shutdown::Write);
    }

    /// Makes closing a reset.
    pub fn reset(&self) {
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }
}
