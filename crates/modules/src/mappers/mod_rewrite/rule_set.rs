//! The rules of a place, in order, and which of them a path can match at all.

use std::sync::{Arc, OnceLock};

use super::prefixes::{Deepest, Prefixes};
use super::rule::Rule;

/// Rules in order.
#[derive(Clone, Default)]
pub(super) struct RuleSet {
    rules: Vec<Arc<Rule>>,
    /// Those of a host are made at startup, others when a path is looked up for the first time.
    prefixes: Arc<OnceLock<Prefixes>>,
}

/// The bytes that the paths begin with that a rule matches. A negated rule matches all others, and
/// a rule of a chain skips rules where it does not match: both are always candidates.
fn prefix(rule: &Rule) -> Vec<u8> {
    if rule.negated || rule.flags.chain { Vec::new() } else { rule.regex.prefix() }
}

/// The rules that a path may match, by their prefixes.
#[derive(Clone, Copy)]
pub(super) struct Candidates<'r> {
    prefixes: &'r Prefixes,
    deepest: Deepest,
}

impl Candidates<'_> {
    /// The first rule from `at` on that the path may match; none before it does. The end where
    /// there is none.
    pub fn from(self, at: usize) -> usize {
        self.prefixes.next(self.deepest, at)
    }
}

impl RuleSet {
    /// Adds a rule at the end.
    pub fn push(&mut self, rule: Rule) {
        self.rules.push(Arc::new(rule));
        self.prefixes = Arc::default();
    }

    /// These rules and then others.
    pub fn and(&self, others: &RuleSet) -> RuleSet {
        let rules = self.rules.iter().chain(&others.rules).cloned().collect();
        RuleSet { rules, prefixes: Arc::default() }
    }

    /// The rule at a place.
    pub fn get(&self, at: usize) -> Option<&Arc<Rule>> {
        self.rules.get(at)
    }

    /// The number of rules from a place on.
    pub fn count_from(&self, at: usize) -> usize {
        self.rules.len().saturating_sub(at)
    }

    /// The rules that `subject` may match.
    pub fn candidates(&self, subject: &[u8]) -> Candidates<'_> {
        let prefixes = self.prefixes();
        Candidates { prefixes, deepest: prefixes.deepest(subject) }
    }

    /// The prefixes of the rules; made if they are not.
    pub fn prefixes(&self) -> &Prefixes {
        let make = || Prefixes::new(self.rules.iter().map(|rule| prefix(rule)));
        self.prefixes.get_or_init(make)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.iter()
    }
}

/// The same rules, none of which is passed over.
#[cfg(test)]
pub(super) fn without_prefixes(set: &RuleSet) -> RuleSet {
    let prefixes = Prefixes::new(set.rules.iter().map(|_| Vec::new()));
    RuleSet { rules: set.rules.clone(), prefixes: Arc::new(OnceLock::from(prefixes)) }
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
        assert_eq!(set.candidates(b"/a").from(0), 0);
        assert_eq!(set.candidates(b"/a").from(1), 2);
        assert_eq!(set.candidates(b"/a").from(3), 4);
        assert_eq!(set.candidates(b"/a").from(5), 5);
        assert_eq!(set.candidates(b"/b/long-name-of-a-page/").from(1), 1);
        assert_eq!(set.candidates(b"/b/long-name-of-another").from(1), 2);
        assert_eq!(set.candidates(b"/b/lo").from(1), 2);
        assert_eq!(set.candidates(b"").from(0), 2);
        assert_eq!(RuleSet::default().candidates(b"/").from(0), 0);
    }

    #[test]
    fn negated_rules_and_chains_are_asked() {
        let mut set = RuleSet::default();
        set.push(rule("^/a", true, false));
        set.push(rule("^/a", false, true));
        assert_eq!((set.candidates(b"/b").from(0), set.candidates(b"/b").from(1)), (0, 1));
    }

    #[test]
    fn sets_are_joined_in_order() {
        let both = set(&["^/a"]).and(&set(&["^/b"]));
        assert_eq!(both.candidates(b"/b").from(0), 1);
        assert_eq!(both.iter().count(), 2);
    }

    /// Up to twelve pieces of a pattern, some of which make it wrong.
    const PIECES: &str = "\\^?([/ab.?*+|()\\\\^$\u{e9}]|a\\{2\\}|b\\{0\\}|a\\{0,1\\}|\\[ab\\]|\
        \\[\\^/\\]|\\\\[dwQExKbB.]|\\\\x61|\\(\\?i\\)|\
        \\(\\?:a|\\(\\?!a\\)|\\(\\?#x\\)|\\(\\*UTF\\)){0,12}";

    const SUBJECT: &str = "[/abAB.\u{e9}]{0,12}";

    proptest::proptest! {
        /// What is passed over would not have matched. A million subjects: PROPTEST_CASES=50000.
        #[test]
        fn no_rule_that_matches_is_passed_over(
            patterns in proptest::collection::vec((PIECES, proptest::bool::weighted(0.2)), 1..8),
            subjects in proptest::collection::vec(SUBJECT, 1..16),
            ends in proptest::collection::vec(proptest::prelude::any::<Vec<u8>>(), 4),
        ) {
            let mut set = RuleSet::default();
            for (pattern, caseless) in &patterns {
                let flags = pcre::Flags { caseless: *caseless, ..pcre::Flags::default() };
                if let Ok(regex) = pcre::Regex::new(pattern.as_bytes(), flags) {
                    set.push(Rule { regex, ..rule("", false, false) });
                }
            }
            let near = patterns.iter().map(|(pattern, _)| pattern.trim_start_matches('^'));
            for start in subjects.iter().map(String::as_str).chain(near) {
                for end in ends.iter().map(Vec::as_slice).chain([&b""[..]]) {
                    let subject = [start.as_bytes(), end].concat();
                    let candidates = set.candidates(&subject);
                    for (at, rule) in set.iter().enumerate() {
                        if candidates.from(at) != at {
                            let matched = rule.regex.matches(&subject, None);
                            proptest::prop_assert!(
                                matched != pcre::Matched::Yes,
                                "{:?} matches {:?}", rule.regex, bstr::BStr::new(&subject)
                            );
                        }
                    }
                }
            }
        }
    }
}
