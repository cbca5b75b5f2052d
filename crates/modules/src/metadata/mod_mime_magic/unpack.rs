//! The beginning of compressed files.
//!
//! Source: `zmagic` (modules/metadata/mod_mime_magic.c), where gzip(1) decompresses.

mod lzw;

use crate::filters::mod_deflate::gzip::{Unpacker, Wrong};

/// Most bytes of a compressed file that are read.
pub(super) const PACKED_BYTES_MAX: usize = 64 * 1024;

/// Bytes that gzip(1) writes at once: if the data is wrong before that many, it writes none.
const WINDOW_BYTES: usize = 32 * 1024;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Gzip,
    /// LZW, of compress(1).
    Compress,
}

impl Packing {
    /// The packing of a file, by its first bytes.
    pub fn of(content: &[u8]) -> Option<Packing> {
        match content {
            [0x1f, 0x8b, ..] => Some(Packing::Gzip),
            [0x1f, 0x9d, ..] => Some(Packing::Compress),
            _ => None,
        }
    }

    /// The content coding.
    pub fn encoding(self) -> &'static [u8] {
        match self {
            Packing::Gzip => b"x-gzip",
            Packing::Compress => b"x-compress",
        }
    }

    /// Decompresses the beginning, as far as gzip(1) writes it if the data is wrong.
    pub fn unpack(self, packed: &[u8]) -> Vec<u8> {
        match self {
            Packing::Gzip => gunzip(packed),
            Packing::Compress => lzw::unpack(packed, super::magic::SAMPLE_BYTES),
        }
    }
}

fn gunzip(mut packed: &[u8]) -> Vec<u8> {
    let (mut unpacker, mut out) = (Unpacker::new(), Vec::new());
    while out.len() < WINDOW_BYTES && !unpacker.is_done() {
        let before = out.len();
        match unpacker.step(packed, &mut out) {
            Ok(0) if out.len() == before => break,
            Ok(taken) => packed = packed.get(taken..).unwrap_or_default(),
            // The content has been written before its checksum is compared.
            Err(Wrong::Trailer) => break,
            Err(_) => return Vec::new(),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_unpacked() {
        let packed = b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0";
        assert_eq!(Packing::of(packed), Some(Packing::Gzip));
        assert_eq!(gunzip(packed), b"abc");
        // Without its end, and with a wrong checksum.
        assert_eq!(gunzip(&packed[..15]), b"abc");
        assert_eq!(gunzip(&[&packed[..16], &[0; 8]].concat()), b"abc");
        assert_eq!(gunzip(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xff\xff"), b"");
        assert_eq!(gunzip(b"\x1f\x8b"), b"");
    }
}
