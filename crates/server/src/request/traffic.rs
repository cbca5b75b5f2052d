//! The sizes of a request and its response on the wire.

/// Bytes on the wire, which mod_logio writes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Bytes received for the request, before decryption (`%I`).
    pub bytes_in: u64,
    /// Bytes sent for the response, after encryption (`%O`).
    pub bytes_out: u64,
    /// When the first byte of the response was sent, in microseconds since the epoch, or 0.
    pub first_byte_us: u64,
}
