//! Header compression (RFC 7541).

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod static_table;
mod table;
#[cfg(test)]
mod tests;

pub use decoder::{Decoder, HpackError};
pub use encoder::{Encoder, Indexing, encode_literal};
pub use table::mark;

/// The size of a dynamic table until a setting changes it, bytes.
pub const DEFAULT_TABLE_BYTES: usize = 4096;

/// The bytes of an entry beyond its name and value (RFC 7541 section 4.1). Limits of a list of
/// fields count them too.
pub const ENTRY_OVERHEAD_BYTES: usize = 32;
