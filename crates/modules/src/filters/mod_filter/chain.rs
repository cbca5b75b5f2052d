//! `FilterChain`: the list that answers go through.

use server::merge::Merge;

/// A list of filters by name, with what it does to the outer list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// `!` or `=`: the outer list does not count.
    is_own: bool,
    names: Vec<Vec<u8>>,
}

impl Chain {
    /// The names in order.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Whether nothing is inserted.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// `name` or `+name`: at the end.
    pub fn append(&mut self, name: &[u8]) {
        self.names.push(name.to_vec());
    }

    /// One argument of `FilterChain`. Source: `filter_chain`.
    pub fn edit(&mut self, argument: &[u8]) {
        match argument.split_first() {
            Some((b'+', name)) => self.append(name),
            Some((b'@', name)) => self.names.insert(0, name.to_vec()),
            // Only what stands in the same section can be taken out, as in Apache.
            Some((b'-', name)) => self.names.retain(|known| !known.eq_ignore_ascii_case(name)),
            Some((b'!', _)) => *self = Chain { is_own: true, names: Vec::new() },
            Some((b'=', name)) => *self = Chain { is_own: true, names: vec![name.to_vec()] },
            _ => self.append(argument),
        }
    }
}

impl Merge for Chain {
    fn merge(outer: &Self, inner: &Self) -> Self {
        if inner.is_own {
            return inner.clone();
        }
        let names = outer.names.iter().chain(&inner.names).cloned().collect();
        Chain { is_own: outer.is_own, names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(arguments: &str) -> Chain {
        let mut chain = Chain::default();
        arguments.split(' ').for_each(|argument| chain.edit(argument.as_bytes()));
        chain
    }

    #[test]
    fn signs_edit_the_list_of_the_section() {
        assert_eq!(chain("a +b @c").names(), [b"c", b"a", b"b"]);
        assert_eq!(chain("a b -a").names(), [b"b"]);
        assert_eq!(chain("a b =c d").names(), [b"c", b"d"]);
        assert!(chain("a !").is_empty());
    }

    #[test]
    fn sections_append_unless_they_start_anew() {
        let outer = chain("a");
        assert_eq!(Chain::merge(&outer, &chain("b")).names(), [b"a", b"b"]);
        assert_eq!(Chain::merge(&outer, &chain("-a")).names(), [b"a"]);
        assert_eq!(Chain::merge(&outer, &chain("=b")).names(), [b"b"]);
        assert!(Chain::merge(&outer, &chain("!")).is_empty());
    }
}
