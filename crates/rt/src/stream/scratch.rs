//! Buffers that all connections of a loop share, because none of them is in use across a wait.

use crate::tls::ENCRYPT_BYTES_MAX;

/// Bytes read from a socket at once where nobody brings a buffer.
const RECEIVE_BYTES: usize = 64 * 1024;

/// The shared buffers of a loop; each is made when it is first needed.
#[derive(Default)]
pub(crate) struct Scratch {
    receive: Vec<u8>,
    records: Vec<u8>,
    piece: Vec<u8>,
}

impl Scratch {
    /// An empty buffer of 64 KiB to receive into.
    pub fn receive(&mut self) -> &mut Vec<u8> {
        self.receive.clear();
        self.receive.reserve(RECEIVE_BYTES);
        &mut self.receive
    }

    /// Where records are encrypted; its content is anything.
    pub fn records(&mut self) -> &mut Vec<u8> {
        &mut self.records
    }

    /// A buffer of one piece of plaintext, to be given back by [`put_piece`](Self::put_piece).
    pub fn take_piece(&mut self) -> Vec<u8> {
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(ENCRYPT_BYTES_MAX, 0);
        piece
    }

    /// Keeps the buffer for the next who takes one.
    pub fn put_piece(&mut self, piece: Vec<u8>) {
        self.piece = piece;
    }
}
