//! The old findings. A line is `weight rule path`; lines may only shrink and disappear.

use super::Finding;
use std::collections::BTreeMap;
use std::path::Path;

/// The path of the baseline from the root of the checkout.
pub const PATH: &str = "crates/xtask/tidy.baseline";

const HEADER: &str = "\
# What the tree owed when a rule was made: weight, rule, path. It only shrinks:
# `cargo xtask tidy --ratchet` lowers it to what is left and never adds a line.
";

type Key = (String, String);

/// Weights by rule and path.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Baseline {
    weights: BTreeMap<Key, usize>,
}

/// A comparison of the findings with the baseline.
pub struct Verdict<'a> {
    /// Findings of each file and rule whose weight increased.
    pub new: Vec<&'a Finding>,
    /// Baseline lines that exceed the findings.
    pub slack: Vec<Key>,
}

impl Verdict<'_> {
    /// One printable line per finding.
    pub fn lines(&self) -> Vec<String> {
        self.new.iter().map(ToString::to_string).collect()
    }
}

impl Baseline {
    /// Reads the file; a missing one is empty.
    ///
    /// # Errors
    /// A line is not `weight rule path`.
    pub fn read(path: &Path) -> Result<Self, String> {
        Self::parse(&std::fs::read_to_string(path).unwrap_or_default())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut weights = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            let weight = words.next().and_then(|word| word.parse().ok());
            let (Some(weight), Some(rule), Some(file)) = (weight, words.next(), words.next())
            else {
                return Err(format!("{PATH}: `{line}` is not `weight rule path`"));
            };
            weights.insert((rule.to_owned(), file.to_owned()), weight);
        }
        Ok(Self { weights })
    }

    /// Splits the findings into old and new ones, and names the lines that can be lowered.
    pub fn compare<'a>(&self, findings: &'a [Finding]) -> Verdict<'a> {
        let found = totals(findings);
        let borne = |key: &Key| self.weights.get(key).copied().unwrap_or(0);
        let grew = |finding: &&Finding| {
            let key = key(finding);
            found.get(&key).copied().unwrap_or(0) > borne(&key)
        };
        let slack = |key: &&Key| found.get(*key).copied().unwrap_or(0) < borne(key);
        Verdict {
            new: findings.iter().filter(grew).collect(),
            slack: self.weights.keys().filter(slack).cloned().collect(),
        }
    }

    /// The baseline with every weight lowered to the findings; it gains no line.
    pub fn lowered(&self, findings: &[Finding]) -> Self {
        let found = totals(findings);
        let lower = |(key, &weight): (&Key, &usize)| {
            let now = found.get(key).copied().unwrap_or(0).min(weight);
            (now > 0).then(|| (key.clone(), now))
        };
        Self { weights: self.weights.iter().filter_map(lower).collect() }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let mut text = HEADER.to_owned();
        for ((rule, file), weight) in &self.weights {
            text.push_str(&format!("{weight} {rule} {file}\n"));
        }
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
    }
}

fn key(finding: &Finding) -> Key {
    (finding.rule.to_owned(), finding.path.clone())
}

fn totals(findings: &[Finding]) -> BTreeMap<Key, usize> {
    let mut totals = BTreeMap::new();
    for finding in findings {
        *totals.entry(key(finding)).or_insert(0) += finding.weight;
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, path: &str, weight: usize) -> Finding {
        Finding { rule, path: path.to_owned(), line: 1, weight, message: String::new() }
    }

    #[test]
    fn growth_is_new_and_shrinkage_is_slack() {
        let known = Baseline::parse("# note\n10 file-length a.rs\n2 no-panic b.rs\n").unwrap();
        let findings = [finding("file-length", "a.rs", 11), finding("no-panic", "b.rs", 1)];
        let verdict = known.compare(&findings);
        assert_eq!(verdict.new, [&findings[0]]);
        assert_eq!(verdict.slack, [("no-panic".to_owned(), "b.rs".to_owned())]);
    }

    #[test]
    fn lowering_never_raises_and_never_adds() {
        let known = Baseline::parse("10 file-length a.rs\n2 no-panic b.rs\n").unwrap();
        let findings = [finding("file-length", "a.rs", 30), finding("width", "c.rs", 1)];
        assert_eq!(known.lowered(&findings), Baseline::parse("10 file-length a.rs\n").unwrap());
    }

    #[test]
    fn a_broken_line_is_named() {
        assert!(
            Baseline::parse("many no-panic b.rs").unwrap_err().contains("`many no-panic b.rs`")
        );
    }
}
