//! `FilterChain`: the filters that responses pass through.

use server::merge::Merge;

/// A list of filters by name, and how it changes the outer list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Whether `!` or `=` discards the outer list.
    is_own: bool,
    names: Vec<Vec<u8>>,
}

impl Chain {
    /// The names in order.
    pub fn names(&self) -> &[Vec<u8>] {
        &self.names
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// `name` or `+name`: appends.
    pub fn append(&mut self, name: &[u8]) {
        self.names.push(name.to_vec());
    }

    /// Applies an argument of `FilterChain`. Source: `filter_chain`.
    pub fn edit(&mut self, argument: &[u8]) {
        match argument.split_first() {
            Some((b'+', name)) => self.append(name),
            Some((b'@', name)) => self.names.insert(0, name.to_vec()),
            // As in Apache, only names from the same section can be removed.
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
