//! The encoder.

use std::io;

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;

use super::Quality;
use crate::filters::compressed::{Effort, Encode, Packer};

/// Bytes that the encoder writes at a time.
const STEP_BYTES: usize = 8 * 1024;

/// Compresses to Brotli.
pub(super) fn packer(effort: Quality) -> Packer<CompressorWriter<Vec<u8>>> {
    let params = BrotliEncoderParams {
        quality: i32::from(effort.quality),
        lgwin: i32::from(effort.window),
        lgblock: i32::from(effort.block),
        ..BrotliEncoderParams::default()
    };
    let encoder = CompressorWriter::with_params(Vec::new(), STEP_BYTES, &params);
    Packer::new(encoder, effort.is_slow())
}

impl Encode for CompressorWriter<Vec<u8>> {
    fn out(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn end(self) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::compressed::assert_unpacks;
    use proptest::prelude::*;
    use std::io::Read;

    fn unpack(packed: &[u8]) -> Vec<u8> {
        let mut text = Vec::new();
        brotli::Decompressor::new(packed, 4096).read_to_end(&mut text).unwrap();
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_was_packed_unpacks_however_it_was_cut(
            text in proptest::collection::vec(any::<u8>(), 0..300), times in 1usize..20,
            size in 1usize..700, quality in 0u8..12, window in 10u8..25, flushes: bool,
        ) {
            let effort = Quality { quality, window, ..Quality::default() };
            assert_unpacks(packer(effort), &text.repeat(times), (size, flushes), unpack);
        }
    }
}
