//! The arguments of an element, as elements read them.
//!
//! Source: `ap_ssi_get_tag_and_value`

use super::parse::Element;

impl Element {
    /// Names and values, up to the first argument without a value.
    pub fn values(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.arguments
            .iter()
            .map_while(|argument| Some((argument.name.as_slice(), argument.value.as_deref()?)))
    }
}
