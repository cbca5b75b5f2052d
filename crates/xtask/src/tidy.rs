//! Style as a test: each finding names its remedy, and the baseline of old findings only shrinks.

mod baseline;
mod code;
mod documents;
mod manifest;
mod mask;
mod prose;
mod shape;

use crate::tree;
use baseline::Baseline;
use documents::Tree;
use std::fmt;
use std::path::Path;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name, as in the baseline file.
    pub rule: &'static str,
    /// Path from the root of the checkout.
    pub path: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// The weight in the baseline: 1, or the number of excess lines for length rules.
    pub weight: usize,
    /// The problem and its remedy.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// A text file being checked.
pub struct Source<'a> {
    /// Path from the root of the checkout, with `/` between its parts.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl Source<'_> {
    /// Returns a finding in this file.
    pub fn finding(&self, rule: &'static str, line: usize, message: String) -> Finding {
        Finding { rule, path: self.path.to_owned(), line, weight: 1, message }
    }

    /// The file name after its last dot, or an empty string.
    pub fn extension(&self) -> &str {
        Path::new(self.path).extension().and_then(|word| word.to_str()).unwrap_or("")
    }
}

/// Checks the whole tree; `--ratchet` also lowers the baseline to the remaining findings.
///
/// # Errors
/// The findings, one per line, that the baseline does not cover.
pub fn run(arguments: &[&str]) -> Result<String, String> {
    let ratchet = match arguments {
        [] => false,
        ["--ratchet"] => true,
        _ => return Err("usage: cargo xtask tidy [--ratchet]".to_owned()),
    };
    let root = tree::root();
    let (files, findings) = examine(&root)?;
    let path = root.join(baseline::PATH);
    let known = Baseline::read(&path)?;
    let verdict = known.compare(&findings);
    if ratchet && !verdict.slack.is_empty() {
        known.lowered(&findings).write(&path)?;
    } else if !verdict.slack.is_empty() {
        let mut lines = verdict.lines();
        lines.push(format!(
            "the tree is better than {}: run `cargo xtask tidy --ratchet` and commit it",
            baseline::PATH
        ));
        return Err(lines.join("\n"));
    }
    if verdict.new.is_empty() {
        Ok(format!("tidy: {files} files, {} old findings left in the baseline", findings.len()))
    } else {
        Err(verdict.lines().join("\n"))
    }
}

fn examine(root: &Path) -> Result<(usize, Vec<Finding>), String> {
    let files = tree::files(root)?;
    let mut findings = Vec::new();
    let mut tree = Tree::new(&files);
    let mut documents = Vec::new();
    for file in &files {
        let path = file.to_string_lossy().replace('\\', "/");
        let bytes = std::fs::read(root.join(file)).map_err(|error| format!("{path}: {error}"))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let source = Source { path: &path, text: &text };
        prose::check(&source, root, &mut findings);
        tree.learn(&source);
        match source.extension() {
            "rs" => {
                let masked = mask::mask(&text);
                code::check(&source, &masked, &mut findings);
                shape::check(&source, &masked, &mut findings);
                prose::idiom(&source, &mask::prose(&text, &masked), &mut findings);
            }
            "toml" => manifest::check(&source, &mut findings),
            "md" => prose::idiom(&source, &text, &mut findings),
            _ => {}
        }
        if source.extension() == "md" {
            documents.push((path, text));
        }
    }
    for (path, text) in &documents {
        tree.check(&Source { path, text }, &mut findings);
    }
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    Ok((files.len(), findings))
}
