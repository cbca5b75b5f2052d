//! Known failures: a list that only shrinks.

use std::collections::BTreeSet;
use std::path::Path;

/// Names of cases that are expected to fail.
#[derive(Debug, Default)]
pub struct Gaps(BTreeSet<String>);

impl Gaps {
    /// Reads one name per line; empty lines and `#` comments are skipped.
    pub fn load(path: &Path) -> Result<Gaps, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let names = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        Ok(Gaps(names.map(str::to_owned).collect()))
    }

    /// Whether this case is expected to fail.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Gaps without a case of that name.
    pub fn not_among<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<&str> {
        let names: BTreeSet<&str> = names.collect();
        self.0.iter().map(String::as_str).filter(|gap| !names.contains(gap)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Gaps;

    #[test]
    fn a_gap_without_a_case_is_told() {
        let gaps = Gaps(["a: b".to_owned(), "c: d".to_owned()].into());
        assert!(gaps.contains("a: b"));
        assert_eq!(gaps.not_among(["a: b"].into_iter()), ["c: d"]);
    }
}
