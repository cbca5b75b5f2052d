//! Text to tree.
use super::ast::{Condition, Word};
use super::{Error, Flags, Names};
/// Longest literal.
pub const MAX_LITERAL_BYTES: usize = 8192;
/// Deepest nesting.
pub const MAX_NESTING: usize = 200;
pub(super) fn condition(_: &[u8], _: Flags, _: &dyn Names) -> Result<Condition, Error> {
    Err(Error { message: "expressions are not read yet".into(), offset: 0, length: 0 })
}
pub(super) fn string(_: &[u8], _: Flags, _: &dyn Names) -> Result<Word, Error> {
    Err(Error { message: "expressions are not read yet".into(), offset: 0, length: 0 })
}
