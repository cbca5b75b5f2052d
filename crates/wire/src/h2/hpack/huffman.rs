//! The Huffman code of strings (RFC 7541 section 5.2 and appendix B).
//!
//! The code is canonical: the lengths of the codes determine all of them. Among codes of one length
//! the order is that of the symbols, and the next length continues where the last one ended.

use super::HpackError;

/// The length of each byte's code in bits; the last one is that of the end of a string.
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The length of the longest code.
const LONGEST: usize = 30;

/// Bits that one look-up decodes: all usual characters have codes of at most so many.
const FAST_BITS: u32 = 8;

/// The symbol for the end of a string.
const END: u16 = 256;

/// What decodes and encodes.
struct Code {
    /// The code of each symbol.
    codes: [u32; 257],
    /// Symbols in the order of their codes.
    symbols: [u16; 257],
    /// For each length: the first code of that length.
    first: [u32; LONGEST + 1],
    /// For each length: how many codes are shorter.
    before: [u16; LONGEST + 1],
    /// For each length: how many codes have it.
    count: [u16; LONGEST + 1],
    /// By the next bits: symbol and length of its code, if that is short; else length 0.
    fast: [(u8, u8); 1 << FAST_BITS],
}

static CODE: Code = build();

const fn build() -> Code {
    let mut code = Code {
        codes: [0; 257],
        symbols: [0; 257],
        first: [0; LONGEST + 1],
        before: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        fast: [(0, 0); 1 << FAST_BITS],
    };
    let (mut next, mut placed, mut length) = (0u32, 0u16, 1);
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = next;
        code.before[length] = placed;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                code.codes[symbol] = next;
                code.symbols[placed as usize] = symbol as u16;
                if length <= FAST_BITS as usize {
                    let spare = FAST_BITS - length as u32;
                    let mut rest = 0;
                    while rest < 1 << spare {
                        let at = (next << spare) as usize + rest;
                        code.fast[at] = (symbol as u8, length as u8);
                        rest += 1;
                    }
                }
                next += 1;
                placed += 1;
            }
            symbol += 1;
        }
        code.count[length] = placed - code.before[length];
        length += 1;
    }
    code
}

/// Appends the decoded string. The last code may be followed by up to seven ones.
pub(super) fn decode(mut input: &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let mut end = out.len();
    // The shortest codes have five bits.
    out.resize(end + input.len() * 8 / 5, 0);
    let (mut bits, mut held) = (0, 0);
    let outcome = loop {
        fill(&mut bits, &mut held, &mut input);
        while held >= FAST_BITS {
            let (symbol, length) = CODE.fast[(bits >> (u64::BITS - FAST_BITS)) as usize];
            let Some(place) = out.get_mut(end).filter(|_| length > 0) else { break };
            *place = symbol;
            end += 1;
            bits <<= length;
            held -= u32::from(length);
        }
        if held < LONGEST as u32 && !input.is_empty() {
            continue;
        }
        if held == 0 {
            break Ok(());
        }
        let Some((symbol, length)) = symbol(bits, held) else { break padding(bits, held) };
        let Some(place) = out.get_mut(end) else { break Err(HpackError::Huffman) };
        *place = symbol;
        end += 1;
        bits <<= length;
        held -= length;
    };
    out.truncate(end);
    outcome
}

/// Takes as many whole bytes as there is room for; those bits of `bits` that are not held are 0.
fn fill(bits: &mut u64, held: &mut u32, input: &mut &[u8]) {
    if let Some((chunk, _)) = input.split_first_chunk::<8>() {
        let count = (u64::BITS - *held) / 8;
        let kept = u64::MAX.checked_shl(u64::BITS - count * 8).unwrap_or(0);
        *bits |= (u64::from_be_bytes(*chunk) & kept).checked_shr(*held).unwrap_or(0);
        *held += count * 8;
        *input = input.get(count as usize..).unwrap_or_default();
        return;
    }
    while *held <= u64::BITS - 8
        && let Some((byte, rest)) = input.split_first()
    {
        *bits |= u64::from(*byte) << (u64::BITS - 8 - *held);
        *held += 8;
        *input = rest;
    }
}

/// The next symbol, and the length of its code.
fn symbol(bits: u64, held: u32) -> Option<(u8, u32)> {
    let (symbol, length) = CODE.fast[(bits >> (u64::BITS - FAST_BITS)) as usize];
    if length > 0 && u32::from(length) <= held {
        return Some((symbol, length.into()));
    }
    long_symbol(bits, held)
}

/// A symbol whose code is longer than [`FAST_BITS`], and the length of the code.
fn long_symbol(bits: u64, held: u32) -> Option<(u8, u32)> {
    for length in FAST_BITS + 1..=(LONGEST as u32).min(held) {
        let value = (bits >> (64 - length)) as u32;
        let at = value.wrapping_sub(CODE.first[length as usize]);
        if at < u32::from(CODE.count[length as usize]) {
            let symbol = CODE.symbols[CODE.before[length as usize] as usize + at as usize];
            return (symbol != END).then_some((symbol as u8, length));
        }
    }
    None
}

/// What is left is the beginning of the code for the end: fewer than eight ones.
fn padding(bits: u64, held: u32) -> Result<(), HpackError> {
    let is_ones = held < 8 && bits >> (64 - held) == (1 << held) - 1;
    if is_ones { Ok(()) } else { Err(HpackError::Huffman) }
}

/// The length of the encoded string in bytes.
pub(super) fn encoded_len(text: &[u8]) -> usize {
    text.iter().map(|byte| usize::from(LENGTHS[usize::from(*byte)])).sum::<usize>().div_ceil(8)
}

/// Appends the encoded string.
pub(super) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut held) = (0u64, 0u32);
    for byte in text {
        let length = u32::from(LENGTHS[usize::from(*byte)]);
        bits = bits << length | u64::from(CODE.codes[usize::from(*byte)]);
        held += length;
        if held >= u32::BITS {
            held -= u32::BITS;
            out.extend_from_slice(&((bits >> held) as u32).to_be_bytes());
        }
    }
    // The last code is followed by ones.
    let spare = held.next_multiple_of(8) - held;
    bits = bits << spare | ((1 << spare) - 1);
    held += spare;
    out.extend((0..held / 8).rev().map(|byte| (bits >> (8 * byte)) as u8));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit, as the RFC has it.
    fn decode_slowly(input: &[u8]) -> Option<Vec<u8>> {
        let (mut out, mut value, mut length) = (Vec::new(), 0u32, 0u8);
        for bit in input.iter().flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1)) {
            (value, length) = (value << 1 | u32::from(bit), length + 1);
            let is_it = |symbol: &usize| LENGTHS[*symbol] == length && CODE.codes[*symbol] == value;
            match (0..LENGTHS.len()).find(is_it) {
                Some(symbol) => out.push(u8::try_from(symbol).ok()?),
                None if length < 30 => continue,
                None => return None,
            }
            (value, length) = (0, 0);
        }
        (length < 8 && value == (1 << length) - 1).then_some(out)
    }

    fn assert_same(input: &[u8]) {
        let mut out = b"before".to_vec();
        let outcome = decode(input, &mut out).ok().map(|()| out[6..].to_vec());
        assert_eq!(outcome, decode_slowly(input), "{input:02x?}");
    }

    proptest! {
        #[test]
        fn strings_are_decoded_as_bit_by_bit(
            input in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            assert_same(&input);
        }

        #[test]
        fn valid_strings_are_too(
            text in proptest::collection::vec(
                prop_oneof![8 => 0x20..0x7fu8, 1 => any::<u8>()],
                0..60,
            ),
            change in proptest::option::of((any::<proptest::sample::Index>(), any::<u8>())),
        ) {
            let mut coded = Vec::new();
            encode(&text, &mut coded);
            if let Some((at, byte)) = change.filter(|_| !coded.is_empty()) {
                let at = at.index(coded.len());
                coded[at] = byte;
            }
            assert_same(&coded);
        }
    }
}
