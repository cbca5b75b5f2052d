//! What lines of the error log say of a request that is no longer at hand.

use super::item;
use super::line::message_format;
use crate::request::Request;

/// The values of those items of a host's format that need the request, with their places in it.
pub struct Facts(Vec<(usize, Vec<u8>)>);

impl Facts {
    /// Those of a request.
    pub fn of(request: &Request) -> Facts {
        let format = message_format(&request.host);
        let mut facts = Vec::new();
        for (at, item) in format.items.iter().enumerate() {
            let mut value = Vec::new();
            item::append_of_request(&item.what, request, &mut value);
            if !value.is_empty() {
                facts.push((at, value));
            }
        }
        Facts(facts)
    }

    /// The value of the item at this place of the format.
    pub(super) fn at(&self, at: usize) -> Option<&[u8]> {
        let found = self.0.iter().find(|(of, _)| *of == at);
        found.map(|(_, value)| value.as_slice())
    }
}
