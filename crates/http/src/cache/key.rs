//! The keys of the cached responses of a loop.

use hashbrown::Equivalent;

/// A path of a host.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub host: u32,
    pub path: Box<[u8]>,
}

/// A borrowed [`Key`] for look-ups.
#[derive(Hash)]
pub(super) struct Sought<'t> {
    pub host: u32,
    pub path: &'t [u8],
}

impl Equivalent<Key> for Sought<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.host == key.host && *self.path == *key.path
    }
}
