//! The rules of a place, in order, and which of them a path can match at all.

use std::sync::Arc;

use super::rule::Rule;

/// The bytes of a pattern's prefix that are compared at once.
const HEAD_BYTES: usize = 16;

/// Rules in order.
#[derive(Clone, Default)]
pub(super) struct RuleSet {
    rules: Vec<Arc<Rule>>,
    /// For each rule, the first bytes of the paths that it matches. They are contiguous, so that a
    /// request passes over a long list of redirects without following a pointer for each.
    heads: Vec<Head>,
}

/// The first bytes of a path, or what they have to be: those under the mask count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    mask: u128,
    bytes: u128,
}

impl Head {
    /// The first bytes of the paths that a rule matches. A negated rule matches all others, and a
    /// rule of a chain skips rules where it does not match: both are always candidates.
    fn of(rule: &Rule) -> Head {
        if rule.negated || rule.flags.chain {
            return Head { mask: 0, bytes: 0 };
        }
        let prefix = rule.regex.prefix();
        let shown = prefix.get(..HEAD_BYTES).unwrap_or(&prefix);
        Head {
            mask: packed(&shown.iter().map(|_| 0xff).collect::<Vec<u8>>()),
            bytes: packed(shown),
        }
    }
}

fn packed(bytes: &[u8]) -> u128 {
    let mut head = [0; HEAD_BYTES];
    for (slot, byte) in head.iter_mut().zip(bytes) {
        *slot = *byte;
    }
    u128::from_ne_bytes(head)
}

impl RuleSet {
    /// Adds a rule at the end.
    pub fn push(&mut self, rule: Rule) {
        self.heads.push(Head::of(&rule));
        self.rules.push(Arc::new(rule));
    }

    /// These rules and then others.
    pub fn and(&self, others: &RuleSet) -> RuleSet {
        let mut both = self.clone();
        both.rules.extend_from_slice(&others.rules);
        both.heads.extend_from_slice(&others.heads);
        both
    }

    /// The rule at a place.
    pub fn get(&self, at: usize) -> Option<&Arc<Rule>> {
        self.rules.get(at)
    }

    /// The first rule from `at` on that `subject` may match; none before it does. The end where
    /// there is none.
    pub fn candidate(&self, at: usize, subject: &[u8]) -> usize {
        let head = packed(subject);
        let rest = self.heads.get(at..).unwrap_or_default();
        let next = rest.iter().position(|rule| head & rule.mask == rule.bytes);
        next.map_or(self.rules.len(), |next| at + next)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::super::rule::Target;
    use super::*;
    use crate::mappers::mod_rewrite::flags::Flags;

    fn rule(pattern: &str, negated: bool, chain: bool) -> Rule {
        let flags = Flags { chain, ..Flags::default() };
        Rule {
            span: conf::Span::default(),
            regex: pcre::Regex::new(pattern.as_bytes(), pcre::Flags::default()).unwrap(),
            negated,
            conditions: Vec::new(),
            target: Target::parse(b"-", &flags).unwrap(),
            flags,
        }
    }

    fn set(patterns: &[&str]) -> RuleSet {
        let mut set = RuleSet::default();
        for pattern in patterns {
            set.push(rule(pattern, false, false));
        }
        set
    }

    #[test]
    fn rules_whose_prefix_is_another_are_passed_over() {
        let set = set(&["^/a", "^/b/long-name-of-a-page$", "x", "^/b", "^/c|d"]);
        assert_eq!(set.candidate(0, b"/a"), 0);
        assert_eq!(set.candidate(1, b"/a"), 2);
        assert_eq!(set.candidate(3, b"/a"), 4);
        assert_eq!(set.candidate(5, b"/a"), 5);
        // Sixteen bytes are compared here; the pattern decides.
        assert_eq!(set.candidate(1, b"/b/long-name-of-another"), 1);
        assert_eq!(set.candidate(1, b"/b/lo"), 2);
        assert_eq!(set.candidate(0, b""), 2);
        assert_eq!(RuleSet::default().candidate(0, b"/"), 0);
    }

    #[test]
    fn negated_rules_and_chains_are_asked() {
        let mut set = RuleSet::default();
        set.push(rule("^/a", true, false));
        set.push(rule("^/a", false, true));
        assert_eq!((set.candidate(0, b"/b"), set.candidate(1, b"/b")), (0, 1));
    }

    #[test]
    fn sets_are_joined_in_order() {
        let both = set(&["^/a"]).and(&set(&["^/b"]));
        assert_eq!(both.candidate(0, b"/b"), 1);
        assert_eq!(both.iter().count(), 2);
    }

    proptest::proptest! {
        /// What is passed over would not have matched.
        #[test]
        fn no_rule_that_matches_is_passed_over(
            patterns in proptest::collection::vec("\\^?[/ab.?*()|\\[\\]\\\\dQE$]{0,24}", 1..8),
            subject in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..24),
            near in 0usize..8,
        ) {
            let mut set = RuleSet::default();
            for pattern in &patterns {
                if pcre::Regex::new(pattern.as_bytes(), pcre::Flags::default()).is_ok() {
                    set.push(rule(pattern, false, false));
                }
            }
            let near = patterns.get(near).map_or(&b""[..], |pattern| pattern.as_bytes());
            for subject in [&subject[..], near, near.strip_prefix(b"^").unwrap_or(near)] {
                for (at, rule) in set.iter().enumerate() {
                    if set.candidate(at, subject) != at {
                        let matched = rule.regex.matches(subject, None);
                        proptest::prop_assert_eq!(matched, pcre::Matched::No);
                    }
                }
            }
        }
    }
}
