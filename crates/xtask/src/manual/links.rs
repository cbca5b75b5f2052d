//! Links from generated pages to headings of generated pages.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The links whose page is generated and has no such heading.
pub fn lost(pages: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let anchors: BTreeMap<&PathBuf, BTreeSet<String>> =
        pages.iter().map(|(path, text)| (path, anchors(text))).collect();
    let mut lost = Vec::new();
    for (path, text) in pages {
        let folder = path.parent().unwrap_or(Path::new(""));
        for (page, anchor) in text.lines().flat_map(links) {
            let target = if page.is_empty() { path.clone() } else { folder.join(page) };
            if anchors.get(&target).is_some_and(|known| !known.contains(anchor)) {
                lost.push(format!("{}: no heading for `{page}#{anchor}`", path.display()));
            }
        }
    }
    lost
}

/// The links of a line with an anchor: the page, and the anchor.
fn links(line: &str) -> impl Iterator<Item = (&str, &str)> {
    let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter_map(|target| target.split_once('#'))
}

/// The anchors of all headings outside of code, as Markdown renderers make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        if line.starts_with('#') && !is_code {
            anchors.insert(anchor(line.trim_start_matches('#').trim()));
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let heading = heading.replace("&lt;", "").replace("&gt;", "").replace(' ', "-");
    let is_kept = |letter: &char| letter.is_alphanumeric() || "-_".contains(*letter);
    heading.to_lowercase().chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_that_are_not_there_are_named() {
        let page = "# A\n## &lt;If&gt;\n### Limits and cost\n```\n# code\n```\n";
        let links =
            "[a](a.md#if) [b](a.md#limits-and-cost) [c](a.md#code) [d](../x.md#y) [e](#f)\n";
        let pages = [("d/a.md", page), ("d/b.md", links)];
        let pages = pages.map(|(path, text)| (PathBuf::from(path), text.to_owned())).into();
        let expected = ["d/b.md: no heading for `a.md#code`", "d/b.md: no heading for `#f`"];
        assert_eq!(lost(&pages), expected);
    }
}
