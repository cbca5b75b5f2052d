//! HPACK: any blocks are decoded or refused, and what is decoded survives the encoder.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::h2::hpack::{Decoder, Encoder, Indexing};

/// Most bytes that are decoded of one block.
const DECODED_BYTES: usize = 256 * 1024;

fuzz_target!(|blocks: Vec<Vec<u8>>| {
    let mut decoder = Decoder::new();
    let (mut encoder, mut second) = (Encoder::new(), Decoder::new());
    for block in blocks {
        let (mut fields, mut bytes) = (Vec::new(), 0);
        let outcome = decoder.decode(&block, |name, value| {
            fields.push((name.to_ascii_lowercase(), value.to_vec()));
            bytes += name.len() + value.len() + 1;
            bytes < DECODED_BYTES
        });
        if let Some(limit) = block.first() {
            encoder.set_limit(usize::from(*limit) * 16);
        }
        let mut out = Vec::new();
        encoder.begin(&mut out);
        for (name, value) in &fields {
            let choices = [Indexing::Table, Indexing::None, Indexing::Never];
            encoder.field(name, value, choices[value.len() % 3], &mut out);
        }
        let mut again = Vec::new();
        let told = second.decode(&out, |name, value| {
            again.push((name.to_vec(), value.to_vec()));
            true
        });
        assert_eq!(told, Ok(()));
        assert_eq!(again, fields);
        if outcome.is_err() {
            return;
        }
    }
});
