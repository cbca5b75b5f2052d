//! Lines that an earlier one hides: the first that matches wins.

use super::Finding;
use crate::explain::places::Directive;

/// Families whose first matching line wins, by name.
const FAMILIES: [&[&str]; 3] =
    [&["alias", "scriptalias"], &["redirect", "redirectpermanent", "redirecttemp"], &["proxypass"]];

/// Checks each place on its own.
pub fn check(all: &[Directive], found: &mut Vec<Finding>) {
    for family in FAMILIES {
        let is_one = |one: &&Directive| family.contains(&&*one.name.to_ascii_lowercase());
        let lines: Vec<&Directive> = all.iter().filter(is_one).collect();
        for (at, line) in lines.iter().enumerate() {
            let Some(path) = path(line) else { continue };
            let earlier = lines.iter().take(at);
            let hides =
                |earlier: &&&Directive| self::path(earlier).is_some_and(|own| is_below(path, own));
            if let Some(earlier) = earlier.into_iter().find(hides) {
                found.push(Finding::hint(
                    line.span,
                    format!(
                        "{} {path} is never used: {} {} comes first and matches the same paths",
                        line.name,
                        earlier.name,
                        self::path(earlier).unwrap_or_default()
                    ),
                    "put the longer path first",
                ));
            }
        }
    }
    for one in all {
        if let Some(inside) = &one.inside {
            check(inside, found);
        }
    }
}

/// The path of a line: the first word that begins with a slash, unless it is the only one.
fn path(line: &Directive) -> Option<&str> {
    let words: Vec<&str> =
        line.args.split_ascii_whitespace().map(|word| word.trim_matches('"')).collect();
    let path = words.iter().find(|word| word.starts_with('/'))?;
    (words.len() > 1 && words.last() != Some(path)).then_some(*path)
}

fn is_below(path: &str, own: &str) -> bool {
    let Some(rest) = path.strip_prefix(own) else { return false };
    own.ends_with('/') || rest.is_empty() || rest.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::is_below;

    #[test]
    fn whole_segments_are_hidden() {
        assert!(is_below("/a/b", "/a") && is_below("/a", "/a") && is_below("/a", "/"));
        assert!(!is_below("/ab", "/a") && !is_below("/", "/a"));
    }
}
