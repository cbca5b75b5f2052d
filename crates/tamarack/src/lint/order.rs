//! Lines that an earlier one hides: the first that matches wins.

use super::Finding;
use super::paths::Paths;
use crate::explain::places::Directive;

/// Families whose first matching line wins, by name.
const FAMILIES: [&[&str]; 3] =
    [&["alias", "scriptalias"], &["redirect", "redirectpermanent", "redirecttemp"], &["proxypass"]];

/// Checks each place on its own.
pub fn check(all: &[Directive], found: &mut Vec<Finding>) {
    for family in FAMILIES {
        let is_one = |one: &&Directive| family.contains(&&*one.name.to_ascii_lowercase());
        let mut earlier = Paths::default();
        for line in all.iter().filter(is_one) {
            let Some(path) = path(line) else { continue };
            if let Some((before, span)) = earlier.covering(path) {
                let name = all.iter().find(|one| one.span == span).map(|one| one.name.as_str());
                let name = name.unwrap_or(&line.name);
                let finding = Finding::hint(
                    line.span,
                    format!(
                        "{} {path} is never used: {name} {before} comes first and matches the \
                         same paths",
                        line.name
                    ),
                    "put the longer path first",
                );
                found.push(finding.about(path));
            }
            earlier.add(path, line.span);
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
