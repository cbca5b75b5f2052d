//! URL paths that cover others: the first path of several lines, found by its segments.

use std::collections::HashMap;

use conf::Span;

/// Paths with their lines.
#[derive(Clone, Debug, Default)]
pub struct Paths<'d>(HashMap<&'d str, Span>);

impl<'d> Paths<'d> {
    /// Adds a line's path, unless an earlier line has it.
    pub fn add(&mut self, path: &'d str, span: Span) {
        self.0.entry(path).or_insert(span);
    }

    /// The first line, in the order of positions, whose path is `path` or an ancestor of it.
    pub fn covering(&self, path: &str) -> Option<(&'d str, Span)> {
        let ends = path.match_indices('/').flat_map(|(at, _)| [at, at + 1]);
        let parts = ends.chain([path.len()]).filter_map(|end| path.get(..end));
        let found = parts.filter_map(|part| self.0.get_key_value(part));
        found.map(|(path, span)| (*path, *span)).min_by_key(|(_, span)| *span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_segments_cover() {
        let mut paths = Paths::default();
        paths.add("/a", Span::default());
        paths.add("/b/", Span::default());
        for (path, expected) in [
            ("/a", Some("/a")),
            ("/a/b", Some("/a")),
            ("/ab", None),
            ("/b/c", Some("/b/")),
            ("/b", None),
            ("/", None),
        ] {
            assert_eq!(paths.covering(path).map(|(path, _)| path), expected, "{path}");
        }
        paths.add("/", Span::default());
        assert_eq!(paths.covering("/x").map(|(path, _)| path), Some("/"));
    }
}
