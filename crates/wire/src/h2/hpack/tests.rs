//! The examples of RFC 7541 appendix C, invalid blocks, and round trips.

use proptest::prelude::*;

use super::{Decoder, Encoder, HpackError, Indexing, huffman};

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Pairs, HpackError> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        fields.push((name.to_vec(), value.to_vec()));
        true
    })?;
    Ok(fields)
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|byte| (byte as char).to_digit(16))
        .map(|digit| digit as u8)
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn pairs(fields: &[(&str, &str)]) -> Pairs {
    fields
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .collect()
}

#[test]
fn requests_of_appendix_c() {
    let first: &[(&str, &str)] = &[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "www.example.com"),
    ];
    let second = [first, &[("cache-control", "no-cache")]].concat();
    let third = [
        (":method", "GET"),
        (":scheme", "https"),
        (":path", "/index.html"),
        (":authority", "www.example.com"),
        ("custom-key", "custom-value"),
    ];
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::new();
        assert_eq!(decode(&mut decoder, &hex(blocks[0])).unwrap(), pairs(first));
        assert_eq!(decode(&mut decoder, &hex(blocks[1])).unwrap(), pairs(&second));
        assert_eq!(decode(&mut decoder, &hex(blocks[2])).unwrap(), pairs(&third));
    }
}

#[test]
fn responses_evict_from_a_table_of_256_bytes() {
    let blocks = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e \
         919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 \
         821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed \
         4ee5 b106 3d50 07",
    ];
    let mut decoder = Decoder::new();
    // 256 is announced first.
    assert_eq!(decode(&mut decoder, &hex("3fe101")).unwrap(), pairs(&[]));
    let first = decode(&mut decoder, &hex(blocks[0])).unwrap();
    assert_eq!(first[0], pairs(&[(":status", "302")])[0]);
    assert_eq!(first[3], pairs(&[("location", "https://www.example.com")])[0]);
    let second = decode(&mut decoder, &hex(blocks[1])).unwrap();
    assert_eq!(second[0], pairs(&[(":status", "307")])[0]);
    assert_eq!(second[1..], first[1..]);
    let third = decode(&mut decoder, &hex(blocks[2])).unwrap();
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    assert_eq!(third[4..], pairs(&[("content-encoding", "gzip"), ("set-cookie", cookie)]));
}

#[test]
fn invalid_blocks_are_refused() {
    for (block, error) in [
        ("80", HpackError::Index),
        ("be", HpackError::Index),
        ("c6", HpackError::Index),
        ("7f", HpackError::Truncated),
        ("ffffffffff7f", HpackError::Integer),
        ("ff8080808080", HpackError::Integer),
        ("41", HpackError::Truncated),
        ("4105 6162", HpackError::Truncated),
        // A size above the setting, and one behind a field.
        ("3fe21f", HpackError::TableSize),
        ("82 20", HpackError::TableSize),
        // Padding of eight ones, of zeros, and the code for the end.
        ("4182 07ff", HpackError::Huffman),
        ("4181 00", HpackError::Huffman),
        ("4184 ffff ffff", HpackError::Huffman),
    ] {
        assert_eq!(decode(&mut Decoder::new(), &hex(block)), Err(error), "{block}");
    }
}

#[test]
fn a_large_field_empties_the_table() {
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new();
    let mut block = Vec::new();
    encoder.field(b"a", b"1", Indexing::Table, &mut block);
    assert_eq!(decode(&mut decoder, &block).unwrap(), pairs(&[("a", "1")]));
    let mut large = vec![0x40, 1, b'b', 0x7f];
    large.extend_from_slice(&[0x81, 0x1f]);
    large.extend(std::iter::repeat_n(b'x', 4096));
    assert_eq!(decode(&mut decoder, &large).unwrap().len(), 1);
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(HpackError::Index));
}

#[test]
fn a_smaller_table_is_announced() {
    let mut encoder = Encoder::new();
    let mut decoder = Decoder::new();
    let mut block = Vec::new();
    encoder.field(b"name", b"value", Indexing::Table, &mut block);
    decode(&mut decoder, &block).unwrap();
    encoder.set_limit(0);
    encoder.set_limit(100_000);
    block.clear();
    encoder.begin(&mut block);
    assert_eq!(block, hex("20 3fe11f"));
    encoder.field(b"name", b"value", Indexing::Table, &mut block);
    assert_eq!(decode(&mut decoder, &block).unwrap(), pairs(&[("name", "value")]));
    block.clear();
    encoder.begin(&mut block);
    encoder.field(b"name", b"value", Indexing::Table, &mut block);
    assert_eq!(block, [0xbe]);
}

proptest! {
    #[test]
    fn any_string_survives_the_huffman_code(text: Vec<u8>) {
        let (mut coded, mut plain) = (Vec::new(), Vec::new());
        huffman::encode(&text, &mut coded);
        prop_assert_eq!(coded.len(), huffman::encoded_len(&text));
        huffman::decode(&coded, &mut plain).unwrap();
        prop_assert_eq!(plain, text);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(blocks: Vec<Vec<u8>>) {
        let mut decoder = Decoder::new();
        for block in blocks {
            let _ = decode(&mut decoder, &block);
        }
    }

    #[test]
    fn what_is_encoded_is_decoded(
        blocks in proptest::collection::vec(
            (
                100u16..600,
                proptest::option::of(0usize..5000),
                proptest::collection::vec(("[a-z-]{1,20}", "[ -~]{0,300}", 0usize..3), 0..12),
            ),
            0..30,
        )
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (status, limit, fields) in blocks {
            if let Some(limit) = limit {
                encoder.set_limit(limit);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block);
            encoder.status(status, &mut block);
            let mut expected = pairs(&[(":status", &status.to_string())]);
            for (name, value, indexing) in fields {
                let indexing = [Indexing::Table, Indexing::None, Indexing::Never][indexing];
                encoder.field(name.as_bytes(), value.as_bytes(), indexing, &mut block);
                expected.push((name.into_bytes(), value.into_bytes()));
            }
            prop_assert_eq!(decode(&mut decoder, &block).unwrap(), expected);
        }
    }

    #[test]
    fn fields_that_come_again_are_decoded(
        blocks in proptest::collection::vec(
            (
                proptest::option::weighted(0.1, 0usize..600),
                proptest::collection::vec((0usize..12, 0usize..6), 0..8),
            ),
            0..60,
        )
    ) {
        let (mut encoder, mut decoder) = (Encoder::new(), Decoder::new());
        for (limit, fields) in blocks {
            if let Some(limit) = limit {
                encoder.set_limit(limit);
            }
            let mut block = Vec::new();
            encoder.begin(&mut block);
            let mut expected = Pairs::new();
            for (name, value) in fields {
                // Fields of one name and length have one fingerprint.
                let (name, value) = (vec![b'n'; name], format!("{value} GMT").into_bytes());
                encoder.field(&name, &value, Indexing::Table, &mut block);
                expected.push((name, value));
            }
            prop_assert_eq!(decode(&mut decoder, &block).unwrap(), expected);
        }
    }
}
