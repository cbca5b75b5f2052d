//! The elements of HTML 4, and which start tags end which open elements, as libxml2's parser knows
//! them. Source: `html40ElementTable`, `htmlStartClose`, `htmlEndPriority`.

use std::fmt;

use super::table::{ELEMENTS, ENDED_BY};

/// Attributes that most elements have.
const COMMON: &str = "id class style title lang dir onclick ondblclick onmousedown onmouseup \
    onmouseover onmouseout onkeypress onkeydown onkeyup";

/// An element of HTML 4.
#[derive(Debug)]
pub struct Element {
    /// The name in lower case.
    pub(super) name: &'static str,
    /// Whether it has neither content nor an end tag.
    pub is_empty: bool,
    /// Whether HTML 4.01 Strict does not have it.
    pub is_deprecated: bool,
    has_common: bool,
    has_common_deprecated: bool,
    optional: &'static str,
    deprecated: &'static str,
    required: &'static str,
}

/// What an attribute is to an element. Source: `htmlAttrAllowed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The element does not have it.
    Invalid,
    /// It is allowed in HTML 4.01 Transitional only.
    Deprecated,
    /// It is allowed.
    Valid,
    /// The element needs it.
    Required,
}

impl Element {
    /// What an attribute is to the element; deprecated ones are only known if `legacy`.
    pub fn standing(&self, attribute: &[u8], legacy: bool) -> Standing {
        let is_of =
            |names: &str| names.split_ascii_whitespace().any(|name| name.as_bytes() == attribute);
        if is_of(self.required) {
            Standing::Required
        } else if is_of(self.optional) || (self.has_common && is_of(COMMON)) {
            Standing::Valid
        } else if legacy
            && (is_of(self.deprecated) || (self.has_common_deprecated && is_of(COMMON)))
        {
            Standing::Deprecated
        } else {
            Standing::Invalid
        }
    }

    /// The number of attributes it needs.
    pub fn required_count(&self) -> usize {
        self.required.split_ascii_whitespace().count()
    }

    pub(super) const fn empty(mut self) -> Element {
        self.is_empty = true;
        self
    }

    pub(super) const fn deprecated(mut self) -> Element {
        self.is_deprecated = true;
        self
    }

    pub(super) const fn common(mut self) -> Element {
        self.has_common = true;
        self
    }

    pub(super) const fn common_deprecated(mut self) -> Element {
        self.has_common_deprecated = true;
        self
    }

    pub(super) const fn optional(mut self, names: &'static str) -> Element {
        self.optional = names;
        self
    }

    pub(super) const fn old(mut self, names: &'static str) -> Element {
        self.deprecated = names;
        self
    }

    pub(super) const fn required(mut self, names: &'static str) -> Element {
        self.required = names;
        self
    }
}

/// The name of an element.
#[derive(Clone)]
pub enum Name {
    /// One of HTML 4.
    Known(&'static Element),
    /// Any other, in lower case.
    Other(Box<[u8]>),
}

impl Name {
    /// The name of the element that `bytes` names in lower case.
    pub fn of(bytes: &[u8]) -> Name {
        match ELEMENTS.binary_search_by(|element| element.name.as_bytes().cmp(bytes)) {
            Ok(index) => ELEMENTS.get(index).map_or_else(|| Name::Other(bytes.into()), Name::Known),
            Err(_) => Name::Other(bytes.into()),
        }
    }

    /// The name.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Name::Known(element) => element.name.as_bytes(),
            Name::Other(bytes) => bytes,
        }
    }

    /// The element, if it is one of HTML 4.
    pub fn element(&self) -> Option<&'static Element> {
        match self {
            Name::Known(element) => Some(element),
            Name::Other(_) => None,
        }
    }

    /// Whether it is `name`.
    pub fn is(&self, name: &str) -> bool {
        self.as_bytes() == name.as_bytes()
    }

    /// Whether it is one of these.
    pub fn is_one(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.is(name))
    }

    /// Whether a start tag of `new` ends it.
    pub fn ends_before(&self, new: &Name) -> bool {
        let own = self.as_bytes();
        let found = ENDED_BY.binary_search_by(|(old, _)| old.as_bytes().cmp(own));
        let names = found.ok().and_then(|index| ENDED_BY.get(index));
        names.is_some_and(|(_, news)| news.split_ascii_whitespace().any(|name| new.is(name)))
    }

    /// An end tag ends open elements of this priority or a lower one.
    pub fn end_priority(&self) -> u8 {
        match self.as_bytes() {
            b"div" => 150,
            b"td" | b"th" => 160,
            b"tr" => 170,
            b"thead" | b"tbody" | b"tfoot" => 180,
            b"table" => 190,
            b"head" | b"body" => 200,
            b"html" => 220,
            _ => 100,
        }
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(self.as_bytes()))
    }
}

pub(super) const fn element(name: &'static str) -> Element {
    Element {
        name,
        is_empty: false,
        is_deprecated: false,
        has_common: false,
        has_common_deprecated: false,
        optional: "",
        deprecated: "",
        required: "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted() {
        assert!(ELEMENTS.is_sorted_by_key(|element| element.name));
        assert!(ENDED_BY.is_sorted_by_key(|(old, _)| old));
    }

    #[test]
    fn attributes_have_a_standing() {
        let Some(image) = Name::of(b"img").element() else { panic!("no img") };
        assert_eq!(image.standing(b"src", false), Standing::Required);
        assert_eq!(image.standing(b"onclick", false), Standing::Valid);
        assert_eq!(image.standing(b"align", false), Standing::Invalid);
        assert_eq!(image.standing(b"align", true), Standing::Deprecated);
    }
}
