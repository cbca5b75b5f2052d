//! Buffers that all connections of a loop share, because none of them is in use across a wait.

/// Bytes read from a socket at once where nobody brings a buffer.
const RECEIVE_BYTES: usize = 64 * 1024;

/// The shared buffers of a loop; each is made when it is first needed.
#[derive(Default)]
pub(crate) struct Scratch {
    receive: Vec<u8>,
}

impl Scratch {
    /// An empty buffer of 64 KiB to receive into.
    pub fn receive(&mut self) -> &mut Vec<u8> {
        self.receive.clear();
        self.receive.reserve(RECEIVE_BYTES);
        &mut self.receive
    }
}
