//! The head of a response, as places in the caller's buffer.

use super::body::Framing;
use super::fault::Fault;
use super::field::{Field, FieldName};
use crate::chars::{decimal, is_field_value};
use crate::status::{Status, is_header_only};
use crate::table::Table;
use std::borrow::Cow;

/// The head of a response. [`ResponseHead::clear`] keeps the memory for reuse, at most
/// [`super::ResponseRules::fields`] times the size of a [`Field`].
#[derive(Clone, Debug, Default)]
pub struct ResponseHead {
    /// The status, 000 to 999. 200 if there is no head.
    pub status: Status,
    /// The minor version: 1 of HTTP/1.1.
    pub minor: u8,
    /// Whether there is no head, but a body alone (HTTP/0.9).
    pub is_simple: bool,
    /// The fields in their order, with those that end at this hop.
    pub fields: Vec<Field>,
    /// The [`FieldName::bit`]s of the fields that were received.
    pub seen: u32,
    pub(super) reason: (u32, u32),
    pub(super) preread: (u32, u32),
    /// Whether the first `Transfer-Encoding` ends in chunked; `None` without the field.
    pub(super) is_chunked: Option<bool>,
    pub(super) closes: bool,
}

/// A part of the fields that go on to the client.
#[derive(Clone, Copy, Debug)]
pub enum Piece<'a> {
    /// Field lines that can be sent as they are.
    Lines(&'a [u8]),
    /// A field that has to be written out: [`Field::write`].
    Field(&'a Field),
}

impl ResponseHead {
    /// An empty head.
    pub fn new() -> Self {
        ResponseHead::default()
    }

    /// Clears the head and keeps the memory.
    pub fn clear(&mut self) {
        let mut fields = std::mem::take(&mut self.fields);
        fields.clear();
        *self = ResponseHead { fields, ..ResponseHead::default() };
    }

    /// The reason phrase as received, which may be empty or have control characters: see
    /// [`ResponseHead::has_valid_reason`].
    pub fn reason<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.reason.0 as usize..self.reason.1 as usize).unwrap_or_default()
    }

    /// Whether the reason goes on to the client. If not, the status's usual line is sent.
    pub fn has_valid_reason(&self, buf: &[u8]) -> bool {
        let before = self.reason.0.checked_sub(1).and_then(|at| buf.get(at as usize));
        let is_apart = self.reason.0 == self.reason.1 || before == Some(&b' ');
        is_apart && is_field_value(self.reason(buf))
    }

    /// The beginning of the body that was read as a line, without its line end (HTTP/0.9, and
    /// `ProxyBadHeader StartBody`).
    pub fn preread<'b>(&self, buf: &'b [u8]) -> &'b [u8] {
        buf.get(self.preread.0 as usize..self.preread.1 as usize).unwrap_or_default()
    }

    /// Whether a field of this name was received.
    pub const fn has(&self, name: FieldName) -> bool {
        self.seen & name.bit() != 0
    }

    /// The first field of this name, kept or not.
    pub fn first(&self, name: FieldName) -> Option<&Field> {
        if !self.has(name) {
            return None;
        }
        self.fields.iter().find(|field| field.name == name)
    }

    /// The value of the first kept field called `name`, ignoring case.
    pub fn get<'b>(&self, buf: &'b [u8], name: &[u8]) -> Option<Cow<'b, [u8]>> {
        let found = self.fields.iter().find(|field| {
            field.is_kept
                && field.name_len as usize == name.len()
                && field.name(buf).eq_ignore_ascii_case(name)
        });
        found.map(|field| field.value(buf))
    }

    /// Drops all fields called `name`, ignoring case.
    pub fn remove(&mut self, buf: &[u8], name: &[u8]) {
        for field in &mut self.fields {
            if field.name_len as usize == name.len() && field.name(buf).eq_ignore_ascii_case(name) {
                field.is_kept = false;
            }
        }
    }

    /// Checks the fields that are kept, as Apache does before it sends a response
    /// (`check_headers`).
    pub fn check(&self, buf: &[u8]) -> Result<(), Fault> {
        for field in self.fields.iter().filter(|field| field.is_kept) {
            if field.has_valid_name && field.has_valid_value {
                continue;
            }
            let name = field.name(buf);
            return Err(match (name.is_empty(), field.has_valid_name) {
                (true, _) => Fault::EmptyName,
                (false, false) => Fault::InvalidName(name.into()),
                (false, true) => Fault::InvalidValue {
                    name: name.into(),
                    value: field.value(buf).into_owned().into(),
                },
            });
        }
        Ok(())
    }

    /// How the end of the body is found (RFC 9112 section 6.3). `is_head` is whether the request
    /// was a HEAD.
    pub fn framing(&self, buf: &[u8], is_head: bool) -> Result<Framing, Fault> {
        if is_head || is_header_only(self.status) {
            return Ok(Framing::None);
        }
        match self.is_chunked {
            Some(true) => return Ok(Framing::Chunked),
            Some(false) => return Ok(Framing::UntilClose),
            None => {}
        }
        let length = self.first(FieldName::ContentLength).filter(|field| field.is_kept);
        let Some(length) = length else { return Ok(Framing::UntilClose) };
        decimal(&length.value(buf)).map(Framing::Length).ok_or(Fault::InvalidLength)
    }

    /// Whether the connection can serve another request once the body, framed so, has ended. It
    /// can't if bytes follow without a request.
    pub const fn is_persistent(&self, framing: Framing) -> bool {
        !self.closes && !matches!(framing, Framing::UntilClose)
    }

    /// The kept fields in their order: runs of lines that are as they should be, and single fields
    /// that are not (folded, or with other blanks or line ends).
    pub fn pieces<'a>(&'a self, buf: &'a [u8]) -> impl Iterator<Item = Piece<'a>> {
        let mut rest = self.fields.as_slice();
        std::iter::from_fn(move || {
            loop {
                let (first, mut after) = rest.split_first()?;
                rest = after;
                if !first.is_kept {
                    continue;
                }
                if !first.is_canonical {
                    return Some(Piece::Field(first));
                }
                let mut end = first.next;
                while let Some((field, later)) = after.split_first()
                    && field.is_kept
                    && field.is_canonical
                    && field.start == end
                {
                    end = field.next;
                    after = later;
                }
                rest = after;
                let lines = buf.get(first.start as usize..end as usize);
                return Some(Piece::Lines(lines.unwrap_or_default()));
            }
        })
    }

    /// Appends the kept fields, without the empty line: at most three bytes more per field than
    /// were received.
    pub fn write_fields(&self, buf: &[u8], out: &mut Vec<u8>) {
        for piece in self.pieces(buf) {
            match piece {
                Piece::Lines(lines) => out.extend_from_slice(lines),
                Piece::Field(field) => field.write(buf, out),
            }
        }
    }

    /// Adds the kept fields to a table.
    pub fn fill(&self, buf: &[u8], table: &mut Table) {
        for field in self.fields.iter().filter(|field| field.is_kept) {
            table.add(field.name(buf), &field.value(buf));
        }
    }
}
