//! Properties of a request that a response may depend on, besides configuration, path and files.

use crate::request::Request;

/// Most facets of a response that is cached.
const FACETS_MAX: usize = 4;

/// A property of a request, such as whether its client accepts gzip.
///
/// A hook or a filter that reads only facets of the request, and declares them by
/// [`Request::depends_on`], is still pure ([`crate::api::hooks::HookDef::pure`]): its responses are
/// cached separately by the values of their facets. Facets are `static`s, since their address
/// identifies them.
pub struct Facet {
    /// The name, for people.
    pub name: &'static str,
    /// The value, one of few. It must not change after `post_read_request`.
    pub of: fn(&Request) -> u16,
}

/// The facets that responses of one target depend on.
#[derive(Clone, Default)]
pub struct Facets(Vec<&'static Facet>);

impl Facets {
    /// Adds a facet; returns false if there is no room for it.
    fn add(&mut self, facet: &'static Facet) -> bool {
        if self.0.iter().any(|known| std::ptr::eq(*known, facet)) {
            return true;
        }
        let has_room = self.0.len() < FACETS_MAX;
        if has_room {
            self.0.push(facet);
        }
        has_room
    }

    /// Adds those of another response, and returns whether that changed these. `None` means that
    /// there are too many.
    pub fn join(&mut self, others: &Facets) -> Option<bool> {
        let before = self.0.len();
        let fit = others.0.iter().all(|facet| self.add(facet));
        fit.then_some(self.0.len() != before)
    }

    /// The values of all of them in a request, as one number.
    pub fn of(&self, request: &Request) -> u64 {
        let values = self.0.iter().map(|facet| u64::from((facet.of)(request)));
        values.fold(0, |all, value| all << u16::BITS | value)
    }

    /// Returns the set of one facet.
    pub fn one(facet: &'static Facet) -> Facets {
        Facets(vec![facet])
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Request {
    /// Declares that the response depends on a facet of the request, and returns its value.
    pub fn depends_on(&mut self, facet: &'static Facet) -> u16 {
        self.pure &= self.facets.add(facet);
        (facet.of)(self)
    }

    /// Declares that the response also depends on the facets of another request (a subrequest).
    pub(crate) fn depends_as(&mut self, other: &Facets) {
        self.pure &= self.facets.join(other).is_some();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facets_are_joined_once_each_and_not_without_end() {
        static MANY: [Facet; 5] = [const { Facet { name: "", of: |_| 0 } }; 5];
        let [first, others @ ..] = &MANY;
        let one = Facets(vec![first]);
        let mut all = one.clone();
        assert_eq!(all.join(&one), Some(false));
        assert_eq!(all.join(&Facets(others[..3].iter().collect())), Some(true));
        assert_eq!(all.join(&one), Some(false));
        assert_eq!(all.join(&Facets(vec![&others[3]])), None);
    }
}
