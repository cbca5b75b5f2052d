//! Decoding a block of fields.

use super::table::Table;
use super::{DEFAULT_TABLE_BYTES, huffman, integer};

/// Why a block can't be decoded. The connection ends with COMPRESSION_ERROR: both tables are no
/// longer the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// The block ends in the middle of a field.
    #[error("truncated header block")]
    Truncated,
    /// An integer is too large.
    #[error("integer too large in header block")]
    Integer,
    /// A string is not a valid Huffman code.
    #[error("invalid Huffman code in header block")]
    Huffman,
    /// No field has this index.
    #[error("invalid index in header block")]
    Index,
    /// A change of the table's size is too large, or follows a field.
    #[error("invalid change of the table size in header block")]
    TableSize,
    /// The receiver of the fields refused to take more of them.
    #[error("too many header fields")]
    Refused,
}

/// Decodes the blocks of a connection, in their order.
#[derive(Debug)]
pub struct Decoder {
    table: Table,
    /// The largest table that the peer may use, bytes.
    limit_bytes: usize,
    /// Name and value of the current field, if they are not taken from a table.
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// Returns a decoder with an empty table of 4,096 bytes.
    pub fn new() -> Decoder {
        Decoder::with_limit(DEFAULT_TABLE_BYTES)
    }

    /// Returns a decoder with an empty table, which the peer was allowed to enlarge to
    /// `limit_bytes`, at most 65,535.
    pub fn with_limit(limit_bytes: usize) -> Decoder {
        Decoder { table: Table::new(), limit_bytes, name: Vec::new(), value: Vec::new() }
    }

    /// Decodes a whole block. `take` gets each field; if it returns false, decoding ends.
    ///
    /// Errors: those of [`HpackError`]; the decoder can't be used any more.
    pub fn decode(
        &mut self,
        block: &[u8],
        mut take: impl FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), HpackError> {
        self.decode_noted(block, |name, value, _| take(name, value))
    }

    /// The same, where `take` may note something of a field, which is false at first. If the field
    /// comes from the table again, so does the note.
    ///
    /// Errors: as those of [`Decoder::decode`].
    pub fn decode_noted(
        &mut self,
        mut block: &[u8],
        mut take: impl FnMut(&[u8], &[u8], &mut bool) -> bool,
    ) -> Result<(), HpackError> {
        let input = &mut block;
        let mut is_first = true;
        while let Some(first) = input.first().copied() {
            if first & 0xe0 == 0x20 {
                let size = integer::decode(input, 5)?;
                if !is_first || size > self.limit_bytes {
                    return Err(HpackError::TableSize);
                }
                self.table.set_limit(size);
                continue;
            }
            is_first = false;
            let mut note = false;
            let goes_on = if first & 0x80 != 0 {
                let index = integer::decode(input, 7)?;
                let found = self.table.get(index).ok_or(HpackError::Index)?;
                note = found.note;
                take(found.name, found.value, &mut note)
            } else {
                let is_kept = first & 0x40 != 0;
                self.literal(input, if is_kept { 6 } else { 4 })?;
                let goes_on = take(&self.name, &self.value, &mut note);
                if is_kept {
                    self.table.insert(&self.name, &self.value, note);
                }
                goes_on
            };
            if !goes_on {
                return Err(HpackError::Refused);
            }
        }
        Ok(())
    }

    /// Decodes a literal field, whose index of a name has a prefix of `bits`.
    fn literal(&mut self, input: &mut &[u8], bits: u32) -> Result<(), HpackError> {
        let index = integer::decode(input, bits)?;
        self.name.clear();
        self.value.clear();
        if index == 0 {
            string(input, &mut self.name)?;
        } else {
            let found = self.table.get(index).ok_or(HpackError::Index)?;
            self.name.extend_from_slice(found.name);
        }
        string(input, &mut self.value)
    }

    /// Frees memory that only a long field needed.
    pub fn shrink(&mut self) {
        for text in [&mut self.name, &mut self.value] {
            text.clear();
            text.shrink_to(0);
        }
    }
}

fn string(input: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = input.first().is_some_and(|first| first & 0x80 != 0);
    let length = integer::decode(input, 7)?;
    let (text, rest) = input.split_at_checked(length).ok_or(HpackError::Truncated)?;
    *input = rest;
    if is_huffman {
        return huffman::decode(text, out);
    }
    out.extend_from_slice(text);
    Ok(())
}
