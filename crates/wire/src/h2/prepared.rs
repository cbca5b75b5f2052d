//! Fields that are sent many times, encoded as far as the tables of connections have no say in it.

use super::fields::OF_CONNECTION;
use super::hpack::{Indexing, encode_literal, mark};
use super::send::indexing;

/// The fields of a response, in their order, for any number of connections.
#[derive(Debug, Default)]
pub struct Prepared {
    /// The texts of all parts, one behind the other.
    text: Vec<u8>,
    parts: Vec<Part>,
}

/// Where a part is in the text.
#[derive(Clone, Copy, Debug)]
enum Part {
    Encoded { length: usize },
    Field { name: usize, value: usize, mark: u32 },
}

/// A part of prepared fields.
pub(super) enum Piece<'p> {
    /// Fields that enter no table.
    Encoded(&'p [u8]),
    /// A field that a table may have, and its fingerprint there.
    Field { name: &'p [u8], value: &'p [u8], mark: u32 },
}

impl Prepared {
    /// Prepares fields. Those that belong to a connection of HTTP/1 are left out.
    pub fn new<'f>(fields: impl IntoIterator<Item = (&'f [u8], &'f [u8])>) -> Prepared {
        let mut prepared = Prepared::default();
        for (name, value) in fields {
            let name = name.to_ascii_lowercase();
            if !OF_CONNECTION.contains(&&*name) {
                prepared.add(&name, value);
            }
        }
        prepared.text.shrink_to_fit();
        prepared.parts.shrink_to_fit();
        prepared
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        let indexing = indexing(name);
        if indexing == Indexing::Table {
            self.text.extend_from_slice(name);
            self.text.extend_from_slice(value);
            let mark = mark(name, value);
            self.parts.push(Part::Field { name: name.len(), value: value.len(), mark });
            return;
        }
        let before = self.text.len();
        encode_literal(name, value, indexing, &mut self.text);
        let added = self.text.len() - before;
        match self.parts.last_mut() {
            Some(Part::Encoded { length }) => *length += added,
            _ => self.parts.push(Part::Encoded { length: added }),
        }
    }

    /// Its parts, in their order.
    pub(super) fn pieces(&self) -> impl Iterator<Item = Piece<'_>> {
        let mut rest = &*self.text;
        self.parts.iter().map(move |part| match *part {
            Part::Encoded { length } => Piece::Encoded(cut(&mut rest, length)),
            Part::Field { name, value, mark } => {
                Piece::Field { name: cut(&mut rest, name), value: cut(&mut rest, value), mark }
            }
        })
    }
}

/// Takes so many bytes from the front.
fn cut<'t>(rest: &mut &'t [u8], length: usize) -> &'t [u8] {
    let (front, after) = rest.split_at_checked(length).unwrap_or_default();
    *rest = after;
    front
}
