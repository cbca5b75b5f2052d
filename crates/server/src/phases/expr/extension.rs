//! The names that modules add to expressions.
//!
//! A module registers an [`Extension`] as a provider of the group [`GROUP`]. The parser's ids
//! combine the extension's index and the extension's own number.

use std::sync::Arc;

use conf::expr::Names;

use crate::config::registry::Registry;
use crate::request::Request;

/// The provider group of extensions.
pub const GROUP: &str = "expr";

/// Names of a module and their values. By default there are none.
#[derive(Clone, Copy)]
pub struct Extension {
    /// The module's number of the function that computes a variable `%{NAME}`. The name is the
    /// function's argument, since an `.htaccess` can use any number of names.
    pub variable: fn(&str) -> Option<u16>,
    /// The module's number of a function, `name(word)`.
    pub function: fn(&str) -> Option<u16>,
    /// The function's value; false if there is none.
    pub function_value: fn(&mut Request, u16, &[u8], &mut Vec<u8>) -> bool,
    /// The module's number of a list function, `word -in name(word)`.
    pub list: fn(&str) -> Option<u16>,
    /// Whether its list contains the last argument.
    pub list_contains: fn(&mut Request, u16, &[u8], &[u8]) -> bool,
    /// The module's number of an operator with one argument, `-x word`.
    pub unary: fn(&str) -> Option<u16>,
    /// The operator's value.
    pub unary_value: fn(&mut Request, u16, &[u8]) -> bool,
    /// The module's number of an operator with two arguments, `word -xyz word`.
    pub binary: fn(&str) -> Option<u16>,
    /// The operator's value.
    pub binary_value: fn(&mut Request, u16, &[u8], &[u8]) -> bool,
}

impl Extension {
    /// An extension without names.
    pub const NOTHING: Extension = Extension {
        variable: |_| None,
        function: |_| None,
        function_value: |_, _, _, _| false,
        list: |_| None,
        list_contains: |_, _, _, _| false,
        unary: |_| None,
        unary_value: |_, _, _| false,
        binary: |_| None,
        binary_value: |_, _, _, _| false,
    };
}

/// The extensions of the active modules, in the order of their names.
pub struct Extensions(Vec<Arc<Extension>>);

impl Extensions {
    /// The registered extensions.
    pub fn of(registry: &Registry) -> Extensions {
        let mut all = registry.hooks.providers::<Extension>(GROUP);
        all.sort_by_key(|(name, _)| *name);
        Extensions(all.into_iter().map(|(_, extension)| extension).collect())
    }

    /// The extension of an id, and its own number.
    pub(super) fn find(&self, id: u32) -> Option<(Arc<Extension>, u16)> {
        let place = usize::try_from(id >> 16).ok()?;
        let own = u16::try_from(id & 0xffff).ok()?;
        Some((self.0.get(place)?.clone(), own))
    }

    fn search(&self, ask: impl Fn(&Extension) -> Option<u16>) -> Option<u32> {
        self.0
            .iter()
            .zip(0u32..)
            .find_map(|(extension, place)| ask(extension).map(|own| place << 16 | u32::from(own)))
    }
}

impl Names for Extensions {
    fn variable(&self, name: &str) -> Option<u32> {
        self.search(|extension| (extension.variable)(name))
    }
    fn function(&self, name: &str) -> Option<u32> {
        self.search(|extension| (extension.function)(name))
    }
    fn list_function(&self, name: &str) -> Option<u32> {
        self.search(|extension| (extension.list)(name))
    }
    fn unary(&self, name: &str) -> Option<u32> {
        self.search(|extension| (extension.unary)(name))
    }
    fn binary(&self, name: &str) -> Option<u32> {
        self.search(|extension| (extension.binary)(name))
    }
}

/// The id of the function `v` of pages.
pub(super) const PAGE_VARIABLE: u32 = u32::MAX;

/// The names in conditions of pages.
pub(super) struct PageNames(pub Extensions);

impl Names for PageNames {
    fn variable(&self, name: &str) -> Option<u32> {
        self.0.variable(name)
    }
    fn function(&self, name: &str) -> Option<u32> {
        let is_own = name.eq_ignore_ascii_case("v");
        if is_own { Some(PAGE_VARIABLE) } else { self.0.function(name) }
    }
    fn list_function(&self, name: &str) -> Option<u32> {
        self.0.list_function(name)
    }
    fn unary(&self, name: &str) -> Option<u32> {
        self.0.unary(name)
    }
    fn binary(&self, name: &str) -> Option<u32> {
        self.0.binary(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_hold_the_place_and_the_own_number() {
        let ssl =
            Extension { variable: |name| (name == "SSL_X").then_some(7), ..Extension::NOTHING };
        let all = Extensions(vec![Arc::new(Extension::NOTHING), Arc::new(ssl)]);
        let id = all.variable("SSL_X").unwrap();
        assert_eq!(all.find(id).unwrap().1, 7);
        assert_eq!(id >> 16, 1);
        assert!(all.variable("OTHER").is_none() && all.find(5 << 16).is_none());
    }
}
