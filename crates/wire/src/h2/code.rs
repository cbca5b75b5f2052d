//! Error codes (RFC 9113 section 7).

/// Why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub u32);

impl Code {
    /// No error: a graceful end.
    pub const NO_ERROR: Code = Code(0);
    /// The peer does not speak the protocol.
    pub const PROTOCOL_ERROR: Code = Code(1);
    /// A fault of this end.
    pub const INTERNAL_ERROR: Code = Code(2);
    /// More data than the window allows.
    pub const FLOW_CONTROL_ERROR: Code = Code(3);
    /// A frame for a stream that has ended.
    pub const STREAM_CLOSED: Code = Code(5);
    /// A frame of a wrong size.
    pub const FRAME_SIZE_ERROR: Code = Code(6);
    /// The request was not processed, and can be repeated.
    pub const REFUSED_STREAM: Code = Code(7);
    /// The stream is no longer needed.
    pub const CANCEL: Code = Code(8);
    /// The tables of both ends differ.
    pub const COMPRESSION_ERROR: Code = Code(9);
    /// The peer causes excessive work.
    pub const ENHANCE_YOUR_CALM: Code = Code(11);
    /// The request needs HTTP/1.1.
    pub const HTTP_1_1_REQUIRED: Code = Code(13);
}
