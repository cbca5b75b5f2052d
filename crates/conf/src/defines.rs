//! The names that `Define` and `-D` set.

use bstr::{BStr, BString, ByteSlice};

/// Defined names, each with an optional value, in Apache's order: the order of definition, except
/// that removing a name moves the last one to its position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defines {
    all: Vec<(BString, Option<BString>)>,
}

impl Defines {
    /// Returns an empty set.
    pub fn new() -> Defines {
        Defines::default()
    }

    /// Defines `name`, as `${name}` if there is a value. A known name gets the new value, or keeps
    /// the old one if there is no new one. As in Apache, an empty value is no value.
    pub fn set(&mut self, name: &[u8], value: Option<&[u8]>) {
        let value = value.filter(|value| !value.is_empty()).map(BString::from);
        match self.all.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.or(old.take()),
            None => self.all.push((name.into(), value)),
        }
    }

    /// Removes `name`. As in Apache, the last name takes its position.
    pub fn unset(&mut self, name: &[u8]) {
        if let Some(index) = self.all.iter().position(|(known, _)| known == name) {
            self.all.swap_remove(index);
        }
    }

    /// Whether `name` is defined, with or without a value.
    pub fn contains(&self, name: &[u8]) -> bool {
        self.all.iter().any(|(known, _)| known == name)
    }

    /// The value of `name`; `None` if it is undefined or has no value.
    pub fn value(&self, name: &[u8]) -> Option<&BStr> {
        let (_, value) = self.all.iter().find(|(known, _)| known == name)?;
        value.as_ref().map(|value| value.as_bstr())
    }

    /// All names with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&BStr, Option<&BStr>)> {
        self.all.iter().map(|(name, value)| (name.as_bstr(), value.as_ref().map(|v| v.as_bstr())))
    }
}
