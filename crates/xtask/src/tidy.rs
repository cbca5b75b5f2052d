//! Style as a test: each finding names its remedy, and what the tree already owes only shrinks.

mod baseline;
mod code;
mod manifest;
mod mask;
mod prose;
mod shape;

use crate::tree;
use baseline::Baseline;
use std::fmt;
use std::path::Path;

/// One breach of a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's name, as the baseline file spells it.
    pub rule: &'static str,
    /// Path from the root of the checkout.
    pub path: String,
    /// One-based line; 0 stands for the file as a whole.
    pub line: usize,
    /// How much the baseline has to bear: 1, or the lines in excess for the length rules.
    pub weight: usize,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.rule, self.message)
    }
}

/// One text file under examination.
pub struct Source<'a> {
    /// Path from the root of the checkout, with `/` between its parts.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
}

impl Source<'_> {
    /// A finding in this file.
    pub fn finding(&self, rule: &'static str, line: usize, message: String) -> Finding {
        Finding { rule, path: self.path.to_owned(), line, weight: 1, message }
    }

    /// The part of the name after the last dot, or the empty string.
    pub fn extension(&self) -> &str {
        Path::new(self.path).extension().and_then(|word| word.to_str()).unwrap_or("")
    }
}

/// Checks the whole tree; `--ratchet` also lowers the baseline to what is left.
///
/// # Errors
/// The findings, one a line, when there are more than the baseline bears.
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
    for file in &files {
        let path = file.to_string_lossy().replace('\\', "/");
        let bytes = std::fs::read(root.join(file)).map_err(|error| format!("{path}: {error}"))?;
        let Ok(text) = String::from_utf8(bytes) else { continue };
        let source = Source { path: &path, text: &text };
        prose::check(&source, root, &mut findings);
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
    }
    findings.sort_by(|one, other| (&one.path, one.line).cmp(&(&other.path, other.line)));
    Ok((files.len(), findings))
}
