//! Properties of a request that a response may depend on, besides configuration, path and files.

use std::cell::Cell;

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

/// The facets that responses of one path depend on.
#[derive(Clone, Default)]
pub struct Facets {
    list: Vec<&'static Facet>,
    inputs: Cell<Inputs>,
}

/// Parts of a request that few responses depend on: a response that does is reused less often.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inputs(u8);

impl Inputs {
    /// The query, or that there is none.
    pub const QUERY: Inputs = Inputs(1);
    /// The host name and port that the client asked for.
    pub const AUTHORITY: Inputs = Inputs(2);
    /// The `Range` field, before the body is cut.
    pub const RANGE: Inputs = Inputs(4);
    /// Something that happens for each request: a line in the error log, a look-up of a name.
    pub const ONCE: Inputs = Inputs(8);

    /// Whether any of `others` is among these.
    pub const fn any(self, others: Inputs) -> bool {
        self.0 & others.0 != 0
    }

    /// Those of both.
    pub const fn with(self, others: Inputs) -> Inputs {
        Inputs(self.0 | others.0)
    }
}

impl Facets {
    /// Adds a facet; returns false if there is no room for it.
    fn add(&mut self, facet: &'static Facet) -> bool {
        if self.list.iter().any(|known| std::ptr::eq(*known, facet)) {
            return true;
        }
        let has_room = self.list.len() < FACETS_MAX;
        if has_room {
            self.list.push(facet);
        }
        has_room
    }

    /// Adds those of another response, and returns whether that changed these. `None` means that
    /// there are too many.
    pub fn join(&mut self, others: &Facets) -> Option<bool> {
        let before = self.list.len();
        self.note(others.inputs());
        let fit = others.list.iter().all(|facet| self.add(facet));
        fit.then_some(self.list.len() != before)
    }

    /// The values of all of them in a request, as one number.
    pub fn of(&self, request: &Request) -> u64 {
        let values = self.list.iter().map(|facet| u64::from((facet.of)(request)));
        values.fold(0, |all, value| all << u16::BITS | value)
    }

    /// The noted parts of the request.
    pub fn inputs(&self) -> Inputs {
        self.inputs.get()
    }

    /// Adds parts of the request that a hook has read.
    pub fn note(&self, inputs: Inputs) {
        self.inputs.set(self.inputs.get().with(inputs));
    }

    /// Returns the set of one facet.
    pub fn one(facet: &'static Facet) -> Facets {
        Facets { list: vec![facet], ..Facets::default() }
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        self.list.clear();
        self.inputs.set(Inputs::default());
    }
}

impl Request {
    /// Declares that the response depends on a facet of the request, and returns its value.
    pub fn depends_on(&mut self, facet: &'static Facet) -> u16 {
        self.pure &= self.facets.add(facet);
        (facet.of)(self)
    }

    /// The query, without the question mark. A response that was made with it is reused only for
    /// requests without a query.
    pub fn query(&self) -> Option<&[u8]> {
        self.facets.note(Inputs::QUERY);
        self.args.as_deref()
    }

    /// The query, for a caller whose response depends on it only through [`Request::query`].
    pub fn own_query(&self) -> Option<&[u8]> {
        self.args.as_deref()
    }

    /// Replaces the query. The response is then reused only for requests without a query.
    pub fn set_query(&mut self, query: Option<Vec<u8>>) {
        self.facets.note(Inputs::QUERY);
        self.args = query;
    }

    /// `path` with the request's query, for a look-up: the response depends on the query only if
    /// the look-up does.
    pub fn with_query(&self, mut path: Vec<u8>) -> Vec<u8> {
        if let Some(args) = &self.args {
            path.push(b'?');
            path.extend_from_slice(args);
        }
        path
    }

    /// Takes the query of `other`, if it has none.
    pub fn inherit_query(&mut self, other: &Request) {
        if self.args.is_none() {
            self.args.clone_from(&other.args);
        }
    }

    /// Notes that the response depends on parts of the request.
    pub(crate) fn looks_at(&self, inputs: Inputs) {
        self.facets.note(inputs);
    }

    /// Notes that a hook changes or hides the `Range` field: ranges are then not cut from a cached
    /// response.
    pub fn interferes_with_range(&self) {
        self.looks_at(Inputs::RANGE);
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
        let one = Facets::one(first);
        let mut all = one.clone();
        assert_eq!(all.join(&one), Some(false));
        let three = Facets { list: others[..3].iter().collect(), ..Facets::default() };
        assert_eq!(all.join(&three), Some(true));
        assert_eq!(all.join(&one), Some(false));
        assert_eq!(all.join(&Facets::one(&others[3])), None);
    }

    #[test]
    fn what_another_request_looked_at_counts() {
        let (mut one, other) = (Facets::default(), Facets::default());
        other.note(Inputs::QUERY);
        other.note(Inputs::ONCE);
        assert_eq!(one.join(&other), Some(false));
        assert!(one.inputs().any(Inputs::QUERY) && !one.inputs().any(Inputs::RANGE));
        one.clear();
        assert_eq!(one.inputs(), Inputs::default());
    }
}
