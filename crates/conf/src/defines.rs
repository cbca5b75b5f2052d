//! The names that `Define` and `-D` set.

use bstr::{BStr, BString, ByteSlice};

/// Names that are defined, each with its value if it has one, in Apache's order: that of
/// definition, save that the last one moves to where one was forgotten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defines {
    all: Vec<(BString, Option<BString>)>,
}

impl Defines {
    /// Nothing defined.
    pub fn new() -> Defines {
        Defines::default()
    }

    /// Defines `name`, for `${name}` with a value. A name that is known gets the new value, or
    /// keeps its old one when there is no new one. An empty value is none, as in Apache.
    pub fn set(&mut self, name: &[u8], value: Option<&[u8]>) {
        let value = value.filter(|value| !value.is_empty()).map(BString::from);
        match self.all.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value.or(old.take()),
            None => self.all.push((name.into(), value)),
        }
    }

    /// Forgets `name`. The last one takes its place in the order, as in Apache.
    pub fn unset(&mut self, name: &[u8]) {
        if let Some(index) = self.all.iter().position(|(known, _)| known == name) {
            self.all.swap_remove(index);
        }
    }

    /// Is `name` defined, with a value or without?
    pub fn contains(&self, name: &[u8]) -> bool {
        self.all.iter().any(|(known, _)| known == name)
    }

    /// The value of `name`; `None` when it is not defined or has none.
    pub fn value(&self, name: &[u8]) -> Option<&BStr> {
        let (_, value) = self.all.iter().find(|(known, _)| known == name)?;
        value.as_ref().map(|value| value.as_bstr())
    }

    /// All names with their values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&BStr, Option<&BStr>)> {
        self.all.iter().map(|(name, value)| (name.as_bstr(), value.as_ref().map(|v| v.as_bstr())))
    }
}
