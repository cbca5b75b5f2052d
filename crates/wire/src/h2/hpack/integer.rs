//! Integers with a prefix of some bits (RFC 7541 section 5.1).

use super::HpackError;

/// The largest integer that is accepted: lengths and indexes are far below.
const LARGEST: u32 = 1 << 28;

/// Takes an integer from the front of `input`. Its prefix is the low `bits` bits of the first byte.
pub(super) fn decode(input: &mut &[u8], bits: u32) -> Result<usize, HpackError> {
    let (first, mut rest) = input.split_first().ok_or(HpackError::Truncated)?;
    let full = (1u32 << bits) - 1;
    let mut value = u32::from(*first) & full;
    if value == full {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(HpackError::Truncated)?;
            rest = after;
            // Four bytes suffice for the largest integer, and a fifth would overflow.
            if shift > 21 {
                return Err(HpackError::Integer);
            }
            value += u32::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        if value > LARGEST {
            return Err(HpackError::Integer);
        }
    }
    *input = rest;
    Ok(value as usize)
}

/// Appends an integer whose first byte has `flags` above the prefix.
pub(super) fn encode(mut value: usize, bits: u32, flags: u8, out: &mut Vec<u8>) {
    let full = (1usize << bits) - 1;
    if value < full {
        out.push(flags | value as u8);
        return;
    }
    out.push(flags | full as u8);
    value -= full;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
