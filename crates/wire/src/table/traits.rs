//! Standard library traits for `Table`.

use std::fmt;

use super::Table;

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pairs = self.iter().map(|(key, value)| (bstr::BStr::new(key), bstr::BStr::new(value)));
        f.debug_map().entries(pairs).finish()
    }
}

impl PartialEq for Table {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Table {}

impl<'a> FromIterator<(&'a [u8], &'a [u8])> for Table {
    fn from_iter<T: IntoIterator<Item = (&'a [u8], &'a [u8])>>(pairs: T) -> Self {
        let mut table = Table::new();
        for (key, value) in pairs {
            table.add(key, value);
        }
        table
    }
}
