//! The fields of a response (RFC 9113 section 8), for a client.

use super::fields::{OF_CONNECTION, REFUSED_TIMES, is_lower_token, list_bytes};
use super::hpack::ENTRY_OVERHEAD_BYTES;
use crate::chars::{decimal, is_field_value, trim_blanks};
use crate::request::HeadLimits;
use crate::table::Table;

/// The fields of a response, or those behind its body, while they are decoded.
pub(super) struct ResponseFields {
    limits: HeadLimits,
    table: Table,
    status: Option<u16>,
    bytes: usize,
    count: usize,
    has_regular: bool,
    is_malformed: bool,
}

/// A response whose fields are valid.
pub(super) struct Found {
    /// 0 of trailer fields.
    pub status: u16,
    pub fields: Table,
    /// The length that it announces, bytes.
    pub announced: Option<u64>,
}

impl ResponseFields {
    pub fn new(limits: HeadLimits) -> ResponseFields {
        ResponseFields {
            limits,
            table: Table::new(),
            status: None,
            bytes: 0,
            count: 0,
            has_regular: false,
            is_malformed: false,
        }
    }

    /// Takes a field; false if it is time to give up. Beyond a limit nothing is kept.
    pub fn take(&mut self, name: &[u8], value: &[u8]) -> bool {
        self.bytes += name.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        self.count += 1;
        let limit = list_bytes(&self.limits);
        let is_too_many = self.limits.fields != 0 && self.count > self.limits.fields;
        if self.bytes > limit || is_too_many {
            (self.table, self.is_malformed) = (Table::new(), true);
            return self.bytes <= limit * REFUSED_TIMES;
        }
        if name.starts_with(b":") {
            let status = decimal(value).and_then(|status| u16::try_from(status).ok());
            let status = status.filter(|status| (100..=999).contains(status) && value.len() == 3);
            let is_status = name == b":status" && status.is_some() && self.status.is_none();
            self.is_malformed |= !is_status || self.has_regular;
            self.status = status;
            return true;
        }
        self.has_regular = true;
        let value = trim_blanks(value);
        let is_valid = is_lower_token(name) && is_field_value(value);
        if !is_valid || OF_CONNECTION.contains(&name) {
            self.is_malformed = true;
            return true;
        }
        self.table.add_lower(name, value);
        true
    }

    /// The response, or trailer fields; `None` if it is malformed (RFC 9113 section 8.1.1).
    pub fn finish(self, is_trailers: bool) -> Option<Found> {
        if self.is_malformed || self.status.is_some() == is_trailers {
            return None;
        }
        let mut lengths = self.table.get_all(b"Content-Length");
        let announced = match (lengths.next(), lengths.next()) {
            (None, _) => None,
            (Some(length), None) => Some(decimal(length)?),
            (Some(_), Some(_)) => return None,
        };
        drop(lengths);
        Some(Found { status: self.status.unwrap_or(0), fields: self.table, announced })
    }
}
