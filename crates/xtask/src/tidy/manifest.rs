//! Rules on Cargo.toml: every dependency is justified where it is declared, and declared once.

use super::{Finding, Source};

/// Runs the rules on a manifest; other TOML files pass.
pub fn check(source: &Source, findings: &mut Vec<Finding>) {
    match source.path {
        "Cargo.toml" => justified(source, findings),
        path if path.ends_with("/Cargo.toml") && !path.starts_with("fuzz/") => {
            inherited(source, findings);
        }
        _ => {}
    }
}

/// In the workspace's table, a comment must precede each crate; one comment may cover adjacent
/// crates that share their first word (`rustls`, `rustls-pki-types`).
fn justified(source: &Source, findings: &mut Vec<Finding>) {
    let mut inside = false;
    let mut explained: Option<&str> = None;
    let mut comment = false;
    for (number, line) in source.text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line == "[workspace.dependencies]";
        } else if line.starts_with('#') {
            comment = true;
        } else if let Some((name, value)) = line.split_once('=').filter(|_| inside) {
            let name = name.trim();
            let family = name.split(['-', '_']).next().unwrap_or(name);
            let own = value.contains("path =");
            if !own && !comment && explained != Some(family) {
                let message = format!("state in a comment above why `{name}` is needed");
                findings.push(source.finding("dependency-justified", number + 1, message));
            }
            explained = Some(family);
            comment = false;
        }
    }
}

/// Members must inherit versions and lints from the workspace.
fn inherited(source: &Source, findings: &mut Vec<Finding>) {
    let mut inside = false;
    for (number, line) in source.text.lines().enumerate() {
        if line.starts_with('[') {
            inside = line.contains("dependencies]");
        } else if inside && line.contains('=') && !line.contains("workspace = true") {
            let message = "declare the crate in the workspace's Cargo.toml and write \
                           `name.workspace = true` here";
            findings.push(source.finding("dependency-inherited", number + 1, message.to_owned()));
        }
    }
    if source.path.starts_with("crates/") && !source.text.contains("[lints]\nworkspace = true") {
        let message = "add `[lints]` with `workspace = true`, so that missing_docs and unsafe_code \
            apply here too";
        findings.push(source.finding("lints-inherited", 0, message.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<(&'static str, usize)> {
        let mut findings = Vec::new();
        check(&Source { path, text }, &mut findings);
        findings.iter().map(|finding| (finding.rule, finding.line)).collect()
    }

    #[test]
    fn each_dependency_says_why() {
        let text = "[workspace.dependencies]\nwire = { path = \"crates/wire\" }\n\
                    # TLS.\nrustls = \"1\"\nrustls-pki-types = \"1\"\nbytes = \"1\"\n\
                    [profile.release]\nlto = true\n";
        assert_eq!(rules("Cargo.toml", text), [("dependency-justified", 6)]);
    }

    #[test]
    fn members_inherit() {
        let good = "[lints]\nworkspace = true\n\n[dependencies]\nbytes.workspace = true\n";
        let bad = "[dependencies]\nbytes = \"1\"\n";
        assert_eq!(rules("crates/a/Cargo.toml", good), []);
        let expected = [("dependency-inherited", 2), ("lints-inherited", 0)];
        assert_eq!(rules("crates/a/Cargo.toml", bad), expected);
        assert_eq!(rules("rustfmt.toml", "max_width = 100\n"), []);
    }
}
