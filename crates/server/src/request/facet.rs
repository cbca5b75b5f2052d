//! What of a request an answer may depend on, beside configuration, path and files.

use crate::request::Request;

/// The most facets that one answer may depend on and still be kept.
const FACETS_MAX: usize = 4;

/// One thing about a request: whether its client takes gzip, say.
///
/// A hook or a filter that looks at nothing of the request but facets, and tells so by
/// [`Request::depends_on`], is still pure ([`crate::api::hooks::HookDef::pure`]): its answers are
/// kept apart by what their facets were. Made as a `static`, since it is known by its place.
pub struct Facet {
    /// What it is called, for people.
    pub name: &'static str,
    /// What the request's head says, as one of few values. It has to be the same at any time from
    /// the end of `post_read_request` on.
    pub of: fn(&Request) -> u16,
}

/// Facets that answers of one target depend on.
#[derive(Clone, Default)]
pub struct Facets(Vec<&'static Facet>);

impl Facets {
    /// Adds one; whether there was room, or it was there.
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

    /// Adds those of another answer; whether these are others now. `None`: there are too many.
    pub fn join(&mut self, others: &Facets) -> Option<bool> {
        let before = self.0.len();
        let fit = others.0.iter().all(|facet| self.add(facet));
        fit.then_some(self.0.len() != before)
    }

    /// What they all are in a request, as one number.
    pub fn of(&self, request: &Request) -> u64 {
        let values = self.0.iter().map(|facet| u64::from((facet.of)(request)));
        values.fold(0, |all, value| all << u16::BITS | value)
    }

    /// One.
    pub fn one(facet: &'static Facet) -> Facets {
        Facets(vec![facet])
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

impl Request {
    /// Tells that the answer depends on a facet of the request; gives back what that is here.
    pub fn depends_on(&mut self, facet: &'static Facet) -> u16 {
        self.pure &= self.facets.add(facet);
        (facet.of)(self)
    }

    /// The answer also depends on what another request's does (a subrequest).
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
