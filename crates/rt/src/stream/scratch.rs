//! Buffers shared by all connections of a loop: none of them is in use across a wait.

use crate::tls::ENCRYPT_BYTES_MAX;

/// Bytes read from a socket at once if the caller supplies no buffer.
const RECEIVE_BYTES: usize = 64 * 1024;

/// The shared buffers of a loop, each allocated on first use.
#[derive(Default)]
pub(crate) struct Scratch {
    receive: Vec<u8>,
    records: Vec<u8>,
    piece: Vec<u8>,
    copied: Vec<u8>,
}

impl Scratch {
    /// An empty buffer of 64 KiB to receive into.
    pub fn receive(&mut self) -> &mut Vec<u8> {
        self.receive.clear();
        self.receive.reserve(RECEIVE_BYTES);
        &mut self.receive
    }

    /// The buffer for encrypted records; its content is arbitrary.
    pub fn records(&mut self) -> &mut Vec<u8> {
        &mut self.records
    }

    /// Takes a buffer for one piece of plaintext; return it by [`put_piece`](Self::put_piece).
    pub fn take_piece(&mut self) -> Vec<u8> {
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(ENCRYPT_BYTES_MAX, 0);
        piece
    }

    /// Returns the buffer for the next caller.
    pub fn put_piece(&mut self, piece: Vec<u8>) {
        self.piece = piece;
    }

    /// Takes an empty buffer of 64 KiB for bytes on their way from one connection to another;
    /// return it by [`put_copied`](Self::put_copied).
    pub fn take_copied(&mut self) -> Vec<u8> {
        let mut copied = std::mem::take(&mut self.copied);
        copied.clear();
        copied.reserve(RECEIVE_BYTES);
        copied
    }

    /// Returns the buffer for the next caller.
    pub fn put_copied(&mut self, copied: Vec<u8>) {
        self.copied = copied;
    }
}
