//! Rules on what documents say of the tree: the crates and what each uses, paths, names in code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Finding, Source};

/// The page that draws the crates.
const PAGE: &str = "ARCHITECTURE.md";
/// Words before a name that is defined.
const DEFINING: [&str; 10] =
    ["fn", "mod", "struct", "enum", "trait", "type", "const", "static", "use", "macro_rules!"];

/// What documents may name.
#[derive(Default)]
pub struct Tree {
    /// Every file and folder.
    paths: BTreeSet<String>,
    /// What lies directly below the root.
    roots: BTreeSet<String>,
    /// The names that crates define, and those of their files.
    names: BTreeSet<String>,
    /// The crates under `crates/`, and those of them that each uses.
    crates: BTreeMap<String, BTreeSet<String>>,
}

impl Tree {
    /// Everything below `root` that `files` lists.
    pub fn new(files: &[PathBuf]) -> Tree {
        let mut tree = Tree::default();
        for file in files {
            for part in file.ancestors().filter(|part| *part != Path::new("")) {
                tree.paths.insert(part.to_string_lossy().into_owned());
            }
            if let Some(root) = file.components().next() {
                tree.roots.insert(root.as_os_str().to_string_lossy().into_owned());
            }
        }
        let crates: Vec<String> = tree.paths.iter().filter_map(|path| crate_of(path)).collect();
        tree.crates = crates.into_iter().map(|name| (name, BTreeSet::new())).collect();
        tree.names.extend(tree.crates.keys().cloned());
        tree
    }

    /// Takes in what a file of a crate defines or uses.
    pub fn learn(&mut self, source: &Source) {
        let Some(rest) = source.path.strip_prefix("crates/") else { return };
        let Some((name, inside)) = rest.split_once('/') else { return };
        if inside == "Cargo.toml" {
            let used = dependencies(source.text).filter(|used| self.crates.contains_key(*used));
            let used: BTreeSet<String> = used.map(str::to_owned).collect();
            self.crates.insert(name.to_owned(), used);
        } else if source.extension() == "rs" {
            for part in inside.split('/') {
                self.names.insert(part.trim_end_matches(".rs").to_owned());
            }
            self.names.extend(defined(source.text).map(str::to_owned));
        }
    }

    /// Runs the rules on a document.
    pub fn check(&self, source: &Source, findings: &mut Vec<Finding>) {
        if source.extension() != "md" || source.path == "CHANGELOG.md" {
            return;
        }
        // A dated note speaks of the tree as it was.
        let is_dated = source.path.starts_with("docs/decisions/");
        for (number, line) in source.text.lines().enumerate() {
            for target in links(line) {
                if !self.has_link(source.path, target) {
                    let message = format!("`{target}` is not there: name the file that is");
                    findings.push(source.finding("document-path", number + 1, message));
                }
            }
            for word in quoted(line).filter(|_| !is_dated) {
                if self.is_path(word) && !self.has_path(source.path, word) {
                    let message = format!("`{word}` is not there: name the file that is");
                    findings.push(source.finding("document-path", number + 1, message));
                } else if let Some(lost) = self.lost_name(word) {
                    let message = format!("`{word}`: no crate defines `{lost}`: name what does it");
                    findings.push(source.finding("document-name", number + 1, message));
                }
            }
        }
        if source.path == PAGE {
            self.check_crates(source, findings);
        }
    }

    /// The page's table of crates must say what the manifests say.
    fn check_crates(&self, source: &Source, findings: &mut Vec<Finding>) {
        let mut missing: BTreeSet<&str> = self.crates.keys().map(String::as_str).collect();
        for (number, line) in source.text.lines().enumerate() {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, first, _, uses, ..] = cells[..] else { continue };
            let Some(name) = quoted(first).next().filter(|name| missing.contains(name)) else {
                continue;
            };
            missing.remove(name);
            let said: BTreeSet<&str> = quoted(uses).collect();
            let used: BTreeSet<&str> = self.crates[name].iter().map(String::as_str).collect();
            if said != used {
                let used: Vec<_> = used.into_iter().collect();
                let message =
                    format!("`{name}` uses {}: say so, or cut the dependency", used.join(", "));
                findings.push(source.finding("crate-graph", number + 1, message));
            }
        }
        for name in missing {
            let message = format!("the crate `{name}` is not in the table of crates: add its row");
            findings.push(source.finding("crate-graph", 0, message));
        }
    }

    fn has_link(&self, document: &str, target: &str) -> bool {
        let path = target.split('#').next().unwrap_or(target);
        if path.is_empty() || target.contains("://") || target.starts_with("mailto:") {
            return true;
        }
        let is_from_root = path.starts_with('/');
        let path = path.trim_start_matches('/');
        let folder = match Path::new(document).parent() {
            Some(folder) if !is_from_root => folder,
            _ => Path::new(""),
        };
        let mut parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
        for part in path.trim_end_matches('/').split('/') {
            match part {
                "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        parts.is_empty() || self.paths.contains(&parts.join("/"))
    }

    /// Whether a quoted word is a path of this tree: below one of its folders, and no pattern.
    fn is_path(&self, word: &str) -> bool {
        let is_plain = |byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/._-".contains(&byte)
        };
        let Some((first, rest)) = word.split_once('/') else { return false };
        !rest.is_empty() && self.roots.contains(first) && word.bytes().all(is_plain)
    }

    /// Whether a path is there, from the root or from the document's own folder. What a build makes
    /// (`lab/.venv`) begins with a dot and is not listed.
    fn has_path(&self, document: &str, path: &str) -> bool {
        path.contains("/.")
            || self.paths.contains(path.trim_end_matches('/'))
            || self.has_link(document, path)
    }

    /// The part of a path in code (`server::plan`) that no crate defines.
    fn lost_name<'w>(&self, word: &'w str) -> Option<&'w str> {
        let path = word.trim_end_matches("()");
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_:".contains(&byte);
        let first = path.split("::").next()?;
        if !path.contains("::") || !path.bytes().all(is_name) || !self.names.contains(first) {
            return None;
        }
        path.split("::").find(|part| !self.names.contains(*part))
    }
}

fn crate_of(path: &str) -> Option<String> {
    let name = path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
    Some(name.to_owned())
}

/// The names in a manifest's `[dependencies]`.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let lines = manifest.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| line.split(['.', ' ', '=']).next())
}

/// The names that a source text defines, fields and variants among them.
fn defined(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub").unwrap_or(line);
        let line = line.strip_prefix("(crate)").or(line.strip_prefix("(super)")).unwrap_or(line);
        let words: Vec<&str> = line.split_whitespace().collect();
        let at = words.iter().position(|word| DEFINING.contains(word)).map_or(0, |at| at + 1);
        let is_name = |byte: char| byte.is_ascii_alphanumeric() || byte == '_';
        let name = words.get(at)?.split(|byte| !is_name(byte)).next()?;
        (!name.is_empty()).then_some(name)
    })
}

/// The words between back quotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The targets of a line's links.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let files = ["crates/a/Cargo.toml", "crates/b/Cargo.toml", "crates/a/src/plan.rs"];
        let mut tree = Tree::new(&files.map(PathBuf::from));
        let manifest = "[package]\nname = \"a\"\n\n[dependencies]\nb.workspace = true\n";
        tree.learn(&Source { path: "crates/a/Cargo.toml", text: manifest });
        let code = "pub struct Layer {\n    pub id: u64,\n}\npub(crate) fn merge() {}\n";
        tree.learn(&Source { path: "crates/a/src/plan.rs", text: code });
        tree
    }

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        tree().check(&Source { path, text }, &mut findings);
        findings.iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn paths_are_looked_up() {
        let text = "`crates/a/src/plan.rs`, `crates/a/`, `crates/NAME`\n`crates/a/src/gone.rs`\n";
        assert_eq!(rules("docs/a.md", text), [("document-path", 2)]);
        assert_eq!(rules("docs/decisions/a.md", text), []);
        let links = "[a](../crates/a/src/plan.rs#top), [b](https://a.org), [c](gone.md)\n";
        assert_eq!(rules("docs/a.md", links), [("document-path", 1)]);
    }

    #[test]
    fn names_are_looked_up() {
        let text = "`a::plan::Layer`, `plan::merge()`, `std::fs`, `plan`\n`a::plan::Gone`\n";
        assert_eq!(rules("docs/a.md", text), [("document-name", 2)]);
    }

    #[test]
    fn the_page_says_what_each_crate_uses() {
        let good = "| crate | what | uses |\n|---|---|---|\n| `a` | `x` | `b` |\n| `b` | y | |\n";
        assert_eq!(rules("ARCHITECTURE.md", good), []);
        let bad = "| `a` | x | |\n";
        assert_eq!(rules("ARCHITECTURE.md", bad), [("crate-graph", 1), ("crate-graph", 0)]);
    }
}
