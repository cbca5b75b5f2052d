//! Properties of a request that a response may depend on, besides configuration, path and files.

use std::cell::Cell;

use crate::request::Request;

/// Most variant keys of a response that is cached.
const VARIANT_KEYS_MAX: usize = 4;

/// A property of a request, such as whether its client accepts gzip.
///
/// A hook or a filter that reads only variant keys of the request, and declares them by
/// [`Request::depends_on`], is still pure ([`crate::api::hooks::HookDef::pure`]): its responses are
/// cached separately by the values of their variant keys. Variant keys are `static`s, since their
/// address identifies them.
pub struct VariantKey {
    /// The name, for people.
    pub name: &'static str,
    /// The value, one of few. It must not change after `post_read_request`.
    pub of: fn(&Request) -> u16,
}

/// The variant keys that responses of one path depend on.
#[derive(Clone, Default)]
pub struct VariantKeys {
    list: Vec<&'static VariantKey>,
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
    /// The server's address on the connection.
    pub const OWN_ADDRESS: Inputs = Inputs(16);

    /// As bits, for other processes.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Those of [`bits`](Inputs::bits).
    pub const fn of_bits(bits: u8) -> Inputs {
        Inputs(bits)
    }

    /// Whether any of `others` is among these.
    pub const fn any(self, others: Inputs) -> bool {
        self.0 & others.0 != 0
    }

    /// Those of both.
    pub const fn with(self, others: Inputs) -> Inputs {
        Inputs(self.0 | others.0)
    }
}

impl VariantKeys {
    /// Adds a variant key; returns false if there is no room for it.
    fn add(&mut self, key: &'static VariantKey) -> bool {
        if self.list.iter().any(|known| std::ptr::eq(*known, key)) {
            return true;
        }
        let has_room = self.list.len() < VARIANT_KEYS_MAX;
        if has_room {
            self.list.push(key);
        }
        has_room
    }

    /// Adds those of another response, and returns whether that changed these. `None` means that
    /// there are too many.
    pub fn join(&mut self, others: &VariantKeys) -> Option<bool> {
        let before = self.list.len();
        self.note(others.inputs());
        let fit = others.list.iter().all(|key| self.add(key));
        fit.then_some(self.list.len() != before)
    }

    /// The values of all of them in a request, as one number.
    pub fn of(&self, request: &Request) -> u64 {
        let values = self.list.iter().map(|key| u64::from((key.of)(request)));
        values.fold(0, |all, value| all << u16::BITS | value)
    }

    /// The address of each, by which the processes of a generation know it: they were forked from
    /// one.
    pub fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        self.list.iter().map(|key| address(key))
    }

    /// The variant keys with these addresses, in their order. `None` if one of them is not among
    /// these.
    pub fn with_addresses(&self, addresses: impl Iterator<Item = u64>) -> Option<VariantKeys> {
        let find = |wanted| self.list.iter().copied().find(|key| address(key) == wanted);
        let list = addresses.map(find).collect::<Option<Vec<_>>>()?;
        Some(VariantKeys { list, ..VariantKeys::default() })
    }

    /// Whether there are none: every request gets the same.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The noted parts of the request.
    pub fn inputs(&self) -> Inputs {
        self.inputs.get()
    }

    /// Adds parts of the request that a hook has read.
    pub fn note(&self, inputs: Inputs) {
        self.inputs.set(self.inputs.get().with(inputs));
    }

    /// Returns the set of one variant key.
    pub fn one(key: &'static VariantKey) -> VariantKeys {
        VariantKeys { list: vec![key], ..VariantKeys::default() }
    }

    /// Removes all of them.
    pub fn clear(&mut self) {
        self.list.clear();
        self.inputs.set(Inputs::default());
    }
}

fn address(key: &VariantKey) -> u64 {
    std::ptr::from_ref(key).addr() as u64
}

impl Request {
    /// Declares that the response depends on a variant key of the request, and returns its value.
    pub fn depends_on(&mut self, key: &'static VariantKey) -> u16 {
        self.depends.pure &= self.depends.variant_keys.add(key);
        (key.of)(self)
    }

    /// The query, without the question mark. A response that was made with it is reused only for
    /// requests without a query.
    pub fn query(&self) -> Option<&[u8]> {
        self.depends.variant_keys.note(Inputs::QUERY);
        self.resource.args.as_deref()
    }

    /// The query, for a caller whose response depends on it only through [`Request::query`].
    pub fn own_query(&self) -> Option<&[u8]> {
        self.resource.args.as_deref()
    }

    /// Replaces the query. The response is then reused only for requests without a query.
    pub fn set_query(&mut self, query: Option<Vec<u8>>) {
        self.depends.variant_keys.note(Inputs::QUERY);
        self.resource.args = query;
    }

    /// `path` with the request's query, for a look-up: the response depends on the query only if
    /// the look-up does.
    pub fn with_query(&self, mut path: Vec<u8>) -> Vec<u8> {
        if let Some(args) = &self.resource.args {
            path.push(b'?');
            path.extend_from_slice(args);
        }
        path
    }

    /// Takes the query of `other`, if it has none.
    pub fn inherit_query(&mut self, other: &Request) {
        if self.resource.args.is_none() {
            self.resource.args.clone_from(&other.resource.args);
        }
    }

    /// Notes that the response depends on parts of the request.
    pub fn looks_at(&self, inputs: Inputs) {
        self.depends.variant_keys.note(inputs);
    }

    /// Reads the request by `read` without a note of its parts, except for lines in the error log:
    /// the caller notes what it uses.
    pub async fn reads_unnoted<T>(&mut self, read: impl AsyncFnOnce(&mut Request) -> T) -> T {
        let before = self.depends.variant_keys.inputs();
        let value = read(self).await;
        let Inputs(now) = self.depends.variant_keys.inputs();
        let Inputs(once) = Inputs::ONCE;
        self.depends.variant_keys.inputs.set(before.with(Inputs(now & once)));
        value
    }

    /// Notes that a hook changes or hides the `Range` field: ranges are then not cut from a cached
    /// response.
    pub fn interferes_with_range(&self) {
        self.looks_at(Inputs::RANGE);
    }

    /// Notes that no ranges are cut of the response: in Apache, its end does not come with what
    /// precedes it.
    pub fn refuse_ranges(&mut self) {
        self.interferes_with_range();
        self.keep(NoRanges);
    }

    /// Notes that a filter has gathered all of the body, so that its end comes with it.
    pub fn allow_ranges(&mut self) {
        self.forget::<NoRanges>();
        self.keep(Gathered);
    }

    /// Whether a filter has gathered all of the body.
    pub fn is_gathered(&self) -> bool {
        self.kept::<Gathered>().is_some()
    }

    /// Whether ranges are cut of the response.
    pub fn allows_ranges(&self) -> bool {
        self.kept::<NoRanges>().is_none()
    }

    /// Declares that the response also depends on what another request, whose files are traced,
    /// has looked at.
    pub fn depends_as(&mut self, other: &Request) {
        let fit = self.depends.variant_keys.join(&other.depends.variant_keys).is_some();
        self.depends.pure &= fit && other.depends.pure;
    }
}

/// See [`Request::refuse_ranges`].
struct NoRanges;

/// See [`Request::is_gathered`].
struct Gathered;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variant_keys_are_joined_once_each_and_not_without_end() {
        static MANY: [VariantKey; 5] = [const { VariantKey { name: "", of: |_| 0 } }; 5];
        let [first, others @ ..] = &MANY;
        let one = VariantKeys::one(first);
        let mut all = one.clone();
        assert_eq!(all.join(&one), Some(false));
        let three = VariantKeys { list: others[..3].iter().collect(), ..VariantKeys::default() };
        assert_eq!(all.join(&three), Some(true));
        assert_eq!(all.join(&one), Some(false));
        assert_eq!(all.join(&VariantKeys::one(&others[3])), None);
    }

    #[test]
    fn what_another_request_looked_at_counts() {
        let (mut one, other) = (VariantKeys::default(), VariantKeys::default());
        other.note(Inputs::QUERY);
        other.note(Inputs::ONCE);
        assert_eq!(one.join(&other), Some(false));
        assert!(one.inputs().any(Inputs::QUERY) && !one.inputs().any(Inputs::RANGE));
        one.clear();
        assert_eq!(one.inputs(), Inputs::default());
    }
}
