//! The encoder.

use std::io::{self, Write};

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;

use super::Settings;
use crate::filters::mod_deflate::recode::Pack;

/// Bytes that the encoder writes at a time.
const STEP_BYTES: usize = 8 * 1024;

/// Compresses to Brotli.
pub(super) struct Encoder {
    /// `None` at the end.
    writer: Option<CompressorWriter<Vec<u8>>>,
    bytes_in: u64,
    bytes_out: u64,
}

impl Encoder {
    /// Returns an encoder.
    pub fn new(settings: &Settings) -> Encoder {
        let params = BrotliEncoderParams {
            quality: i32::from(settings.quality),
            lgwin: i32::from(settings.window),
            lgblock: i32::from(settings.block),
            ..BrotliEncoderParams::default()
        };
        let writer = CompressorWriter::with_params(Vec::new(), STEP_BYTES, &params);
        Encoder { writer: Some(writer), bytes_in: 0, bytes_out: 0 }
    }

    fn take(&mut self, out: &mut Vec<u8>) {
        if let Some(writer) = &mut self.writer {
            self.bytes_out += writer.get_ref().len() as u64;
            out.append(writer.get_mut());
        }
    }
}

impl Pack for Encoder {
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.bytes_in += input.len() as u64;
        if let Some(writer) = &mut self.writer {
            writer.write_all(input)?;
        }
        self.take(out);
        Ok(())
    }

    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(writer) = &mut self.writer {
            writer.flush()?;
        }
        self.take(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            let rest = writer.into_inner();
            self.bytes_out += rest.len() as u64;
            out.extend_from_slice(&rest);
        }
        Ok(())
    }

    fn totals(&self) -> (u64, u64) {
        (self.bytes_in, self.bytes_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
            let text = text.repeat(times);
            let settings = Settings { quality, window, ..Settings::default() };
            let (mut encoder, mut out) = (Encoder::new(&settings), Vec::new());
            for piece in text.chunks(size) {
                encoder.push(piece, &mut out).unwrap();
                if flushes {
                    encoder.flush(&mut out).unwrap();
                }
            }
            encoder.finish(&mut out).unwrap();
            prop_assert_eq!(encoder.totals(), (text.len() as u64, out.len() as u64));
            prop_assert_eq!(unpack(&out), text);
        }
    }
}
