//! From printed pieces to a media type and a content coding.
//!
//! Source: `magic_rsl_to_request`, `rsl_strdup` (modules/metadata/mod_mime_magic.c).

use super::is_space;

/// The media type and the content coding of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The media type.
    pub media_type: Vec<u8>,
    /// The content coding, if there is one.
    pub encoding: Option<Vec<u8>>,
}

/// A word in the pieces.
#[derive(Clone, Copy)]
struct Word {
    piece: usize,
    start: usize,
    length: usize,
}

impl Outcome {
    /// Returns the first word, which must have a slash, and the second one. `None` if there is no
    /// media type.
    pub fn of(pieces: &[Vec<u8>]) -> Option<Outcome> {
        let [first, second] = words(pieces);
        let media_type = copied(pieces, first?);
        let bare = media_type.iter().position(|byte| *byte == b';').unwrap_or(media_type.len());
        let (bare, parameters) = media_type.split_at(bare);
        // A slash in a blank's place, behind the word, is none of its own.
        let has_slash = first.is_some_and(|word| own(pieces, word).skip(1).any(|b| b == b'/'));
        has_slash.then(|| Outcome {
            media_type: [&bare.to_ascii_lowercase(), parameters].concat(),
            encoding: second.map(|word| copied(pieces, word).to_ascii_lowercase()),
        })
    }
}

/// The first two words. A word goes on in the next piece.
fn words(pieces: &[Vec<u8>]) -> [Option<Word>; 2] {
    let (mut found, mut count, mut is_inside) = ([None::<Word>; 2], 0, false);
    for (piece, text) in pieces.iter().enumerate() {
        for (start, byte) in text.iter().enumerate() {
            if is_space(*byte) {
                count += usize::from(is_inside);
                is_inside = false;
                continue;
            }
            let Some(word) = found.get_mut(count) else { return found };
            is_inside = true;
            word.get_or_insert(Word { piece, start, length: 0 }).length += 1;
        }
    }
    found
}

/// The bytes of a word.
fn own(pieces: &[Vec<u8>], word: Word) -> impl Iterator<Item = u8> {
    let from = pieces.iter().skip(word.piece).flatten().skip(word.start);
    from.take(word.length).copied()
}

/// The word as Apache copies it: with the byte behind it, and without the beginning of each further
/// piece, as long as what is in front of the word in its own.
fn copied(pieces: &[Vec<u8>], word: Word) -> Vec<u8> {
    let pieces = pieces.iter().skip(word.piece);
    let bytes = pieces.flat_map(|piece| piece.get(word.start..).unwrap_or_default());
    bytes.take(word.length + 1).copied().collect()
}
