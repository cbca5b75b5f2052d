//! Encoding a block of fields.

use super::table::{Table, mark};
use super::{DEFAULT_TABLE_BYTES, huffman, integer, static_table};

/// Whether a field enters the dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// It does: its value comes again.
    Table,
    /// It does not: its value is another one in most responses.
    None,
    /// No table may have it, not even that of a proxy (RFC 7541 section 7.1.3).
    Never,
}

/// Places for entries that were found: a prime, since fingerprints differ by lengths.
const FOUND: usize = 17;

/// Encodes the blocks of a connection, in their order.
#[derive(Debug)]
pub struct Encoder {
    table: Table,
    /// The numbers of the entries where fields were found, by fingerprint: responses of a
    /// connection are alike.
    found: [u32; FOUND],
    /// Sizes of the table that the next block announces: the smallest one, and the last.
    announce: Option<(usize, usize)>,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// Returns an encoder with an empty table of 4,096 bytes.
    pub fn new() -> Encoder {
        Encoder { table: Table::new(), found: [0; FOUND], announce: None }
    }

    /// Takes over the receiver's limit of the table, bytes. No more than 4,096 are used.
    pub fn set_limit(&mut self, limit_bytes: usize) {
        let limit_bytes = limit_bytes.min(DEFAULT_TABLE_BYTES);
        if limit_bytes == self.table.limit_bytes() {
            return;
        }
        let smallest = self.announce.map_or(limit_bytes, |(smallest, _)| smallest.min(limit_bytes));
        self.announce = Some((smallest, limit_bytes));
        self.table.set_limit(limit_bytes);
    }

    /// Begins a block.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        let Some((smallest, last)) = self.announce.take() else { return };
        if smallest < last {
            integer::encode(smallest, 5, 0x20, out);
        }
        integer::encode(last, 5, 0x20, out);
    }

    /// Appends the status.
    pub fn status(&mut self, status: u16, out: &mut Vec<u8>) {
        let indexed = match status {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [100, 10, 1].map(|unit| b'0' + (status / unit % 10) as u8);
                return self.field(b":status", &digits, Indexing::Table, out);
            }
        };
        out.push(0x80 | indexed);
    }

    /// Appends a field, whose name is in lower case.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        match indexing {
            Indexing::Table => self.shared(name, value, mark(name, value), out),
            Indexing::None | Indexing::Never => encode_literal(name, value, indexing, out),
        }
    }

    /// Appends a field that the table has or gets, whose fingerprint is `mark`.
    pub fn shared(&mut self, name: &[u8], value: &[u8], mark: u32, out: &mut Vec<u8>) {
        let number = &mut self.found[mark as usize % FOUND];
        if let Some(index) = self.table.find(name, value, mark, number) {
            return integer::encode(index, 7, 0x80, out);
        }
        // A large field would evict all others.
        if name.len() + value.len() > self.table.limit_bytes() / 4 {
            return encode_literal(name, value, Indexing::None, out);
        }
        encode_literal(name, value, Indexing::Table, out);
        self.table.insert(name, value, false);
    }
}

/// Appends a field, whose name is in lower case, without the index of an equal one.
pub fn encode_literal(name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
    let (bits, flags) = match indexing {
        Indexing::Table => (6, 0x40),
        Indexing::None => (4, 0),
        Indexing::Never => (4, 0x10),
    };
    match static_table::index_of(name) {
        Some(index) => integer::encode(index, bits, flags, out),
        None => {
            out.push(flags);
            string(name, out);
        }
    }
    string(value, out);
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    let short = huffman::encoded_len(text);
    if short < text.len() {
        integer::encode(short, 7, 0x80, out);
        huffman::encode(text, out);
    } else {
        integer::encode(text.len(), 7, 0, out);
        out.extend_from_slice(text);
    }
}
