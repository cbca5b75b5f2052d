//! The gzip file format (RFC 1952), processed in pieces.

use std::io;

use flate2::{Compress, Compression, Crc, Decompress, FlushCompress, FlushDecompress, Status};

use super::recode::Pack;

/// The gzip header that is written: no name, no time, created on Unix.
const HEAD: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];

/// Length of the fixed part of a header. [`TRAILER_BYTES`] is the length of checksum and size.
pub(super) const HEAD_BYTES: usize = HEAD.len();
/// See [`HEAD_BYTES`].
pub(super) const TRAILER_BYTES: usize = 8;

/// Where a header has its flags.
pub(super) const FLAGS_AT: usize = 3;

/// Most bytes of a header with all its optional parts.
const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes of output that are reserved at a time.
const STEP_BYTES: usize = 8 * 1024;

/// The smallest window size that raw deflate supports (RFC 1951 itself sets none).
pub(super) const WINDOW_BITS_MIN: u8 = 9;

/// Errors in compressed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Wrong {
    /// The data does not begin with a gzip header.
    #[error("not gzip data")]
    Head,
    /// The compressed data is invalid.
    #[error("invalid compressed data")]
    Data,
    /// Checksum or length do not match the output.
    #[error("checksum or length mismatch")]
    Trailer,
    /// The data ends too early.
    #[error("premature end of compressed data")]
    End,
}

/// Compresses to gzip.
pub(super) struct Packer {
    deflate: Compress,
    crc: Crc,
}

impl Packer {
    /// Returns a packer, and writes the header to `out`.
    pub(super) fn new(level: Option<u32>, window_bits: u8, out: &mut Vec<u8>) -> Packer {
        out.extend_from_slice(&HEAD);
        let level = level.map_or_else(Compression::default, Compression::new);
        let deflate = Compress::new_with_window_bits(level, false, window_bits);
        Packer { deflate, crc: Crc::new() }
    }

    fn run(&mut self, input: &[u8], out: &mut Vec<u8>, how: FlushCompress) -> Result<(), Wrong> {
        let before = self.deflate.total_in();
        loop {
            let taken = usize::try_from(self.deflate.total_in() - before).unwrap_or(usize::MAX);
            let rest = input.get(taken..).unwrap_or_default();
            out.reserve(STEP_BYTES);
            let status = self.deflate.compress_vec(rest, out, how).map_err(|_| Wrong::Data)?;
            let taken = usize::try_from(self.deflate.total_in() - before).unwrap_or(usize::MAX);
            let has_room = out.len() < out.capacity();
            let done = match how {
                FlushCompress::Finish => status == Status::StreamEnd,
                _ => taken >= input.len() && has_room,
            };
            if done || (status == Status::BufError && has_room) {
                return Ok(());
            }
        }
    }
}

impl Pack for Packer {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.crc.update(input);
        self.run(input, out, FlushCompress::None).map_err(io::Error::other)
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.run(&[], out, FlushCompress::Sync).map_err(io::Error::other)
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        self.run(&[], out, FlushCompress::Finish).map_err(io::Error::other)?;
        out.extend_from_slice(&self.crc.sum().to_le_bytes());
        out.extend_from_slice(&self.crc.amount().to_le_bytes());
        Ok(())
    }

    /// Without header and trailer.
    fn totals(&self) -> (u64, u64) {
        (self.deflate.total_in(), self.deflate.total_out())
    }
}

/// Decompresses gzip.
pub(crate) struct Unpacker {
    state: State,
    inflate: Decompress,
    crc: Crc,
}

enum State {
    Head(Vec<u8>),
    Data,
    Trailer(Vec<u8>),
    Done,
}

impl Unpacker {
    /// Returns an unpacker that has read nothing.
    pub(crate) fn new() -> Unpacker {
        Unpacker {
            state: State::Head(Vec::new()),
            inflate: Decompress::new_with_window_bits(false, 15),
            crc: Crc::new(),
        }
    }

    /// Consumes some of `input` and produces at most [`STEP_BYTES`] of output; returns the number
    /// of bytes consumed. There may be more output until nothing is consumed and nothing produced.
    pub(crate) fn step(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Wrong> {
        match &mut self.state {
            State::Head(head) => {
                let had = head.len();
                head.extend_from_slice(input);
                let Some(length) = head_length(head)? else {
                    let too_long = head.len() > HEAD_BYTES_MAX;
                    return if too_long { Err(Wrong::Head) } else { Ok(input.len()) };
                };
                self.state = State::Data;
                Ok(length.saturating_sub(had))
            }
            State::Data => self.inflate_some(input, out),
            State::Trailer(trailer) => {
                let count = (TRAILER_BYTES - trailer.len()).min(input.len());
                trailer.extend_from_slice(input.get(..count).unwrap_or_default());
                if trailer.len() < TRAILER_BYTES {
                    return Ok(count);
                }
                let wanted = [self.crc.sum().to_le_bytes(), self.crc.amount().to_le_bytes()];
                if trailer.as_slice() != wanted.concat() {
                    return Err(Wrong::Trailer);
                }
                self.state = State::Done;
                Ok(count)
            }
            // Data after the trailer is dropped, as in Apache.
            State::Done => Ok(input.len()),
        }
    }

    fn inflate_some(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<usize, Wrong> {
        let mut piece = Vec::with_capacity(STEP_BYTES);
        let before = self.inflate.total_in();
        let status = self.inflate.decompress_vec(input, &mut piece, FlushDecompress::None);
        let status = status.map_err(|_| Wrong::Data)?;
        self.crc.update(&piece);
        out.extend_from_slice(&piece);
        if status == Status::StreamEnd {
            self.state = State::Trailer(Vec::new());
        }
        let taken = self.inflate.total_in() - before;
        Ok(usize::try_from(taken).unwrap_or(usize::MAX))
    }

    /// The ratio of output to input.
    pub(super) fn ratio(&self) -> u64 {
        self.inflate.total_out().checked_div(self.inflate.total_in()).unwrap_or(0)
    }

    /// Whether the data is complete.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }
}

/// Whether data begins as gzip does, with the only method that there is.
pub(super) fn has_magic(data: &[u8]) -> bool {
    data.get(..FLAGS_AT) == HEAD.get(..FLAGS_AT)
}

/// The length of a header with all its parts; `None` while it is incomplete.
fn head_length(head: &[u8]) -> Result<Option<usize>, Wrong> {
    const CHECKSUM: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const RESERVED: u8 = 0xe0;
    let start = head.len().min(3);
    if head.get(..start) != HEAD.get(..start) {
        return Err(Wrong::Head);
    }
    let Some(flags) = head.get(FLAGS_AT).filter(|_| head.len() >= HEAD_BYTES) else {
        return Ok(None);
    };
    if flags & RESERVED != 0 {
        return Err(Wrong::Head);
    }
    let mut at = HEAD_BYTES;
    if flags & EXTRA != 0 {
        let Some([low, high]) = head.get(at..at + 2) else { return Ok(None) };
        at += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    for part in [NAME, COMMENT] {
        if flags & part != 0 {
            let rest = head.get(at..).unwrap_or_default();
            let Some(end) = rest.iter().position(|byte| *byte == 0) else { return Ok(None) };
            at += end + 1;
        }
    }
    if flags & CHECKSUM != 0 {
        at += 2;
    }
    Ok((head.len() >= at).then_some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pack(text: &[u8], level: u32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut packer = Packer::new(Some(level), 15, &mut out);
        packer.push(text, &mut out).unwrap();
        packer.finish(&mut out).unwrap();
        out
    }

    /// Unpacks in pieces of `size`.
    fn unpack(packed: &[u8], size: usize) -> Result<Vec<u8>, Wrong> {
        let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
        for mut piece in packed.chunks(size) {
            loop {
                let before = out.len();
                let taken = unpacker.step(piece, &mut out)?;
                piece = &piece[taken..];
                if piece.is_empty() && out.len() == before {
                    break;
                }
            }
        }
        if unpacker.is_done() { Ok(out) } else { Err(Wrong::End) }
    }

    proptest! {
        #[test]
        fn what_was_packed_unpacks(
            text in proptest::collection::vec(any::<u8>(), 0..3000),
            times in 1usize..40, level in 1u32..10, size in 1usize..5000,
        ) {
            let text = text.repeat(times);
            prop_assert_eq!(unpack(&pack(&text, level), size).unwrap(), text);
        }

        #[test]
        fn nonsense_is_told_and_never_panics(
            mut packed in proptest::collection::vec(any::<u8>(), 0..200), size in 1usize..50,
        ) {
            let _ = unpack(&packed, size);
            packed.splice(0..0, [0x1f, 0x8b, 8]);
            let _ = unpack(&packed, size);
        }
    }

    #[test]
    fn a_flush_brings_out_what_was_taken() {
        let mut out = Vec::new();
        let mut packer = Packer::new(None, 15, &mut out);
        packer.push(b"hello", &mut out).unwrap();
        packer.flush(&mut out).unwrap();
        let (mut unpacker, mut plain) = (Unpacker::new(), Vec::new());
        let head = unpacker.step(&out, &mut plain).unwrap();
        unpacker.step(&out[head..], &mut plain).unwrap();
        assert_eq!(plain, b"hello");
        assert!(!unpacker.is_done());
    }

    #[test]
    fn wrong_data_is_told_apart() {
        let packed = pack(b"hello", 6);
        assert_eq!(unpack(b"not gzip at all", 99), Err(Wrong::Head));
        assert_eq!(unpack(&packed[..packed.len() - 1], 99), Err(Wrong::End));
        let mut wrong = packed.clone();
        let last = wrong.len() - 1;
        wrong[last] ^= 1;
        assert_eq!(unpack(&wrong, 99), Err(Wrong::Trailer));
        let mut named = packed;
        named[3] = 8 | 4;
        named.splice(10..10, *b"\x02\x00xxname\x00");
        assert_eq!(unpack(&named, 1).unwrap(), b"hello");
    }
}
