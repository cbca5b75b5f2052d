//! The uniform shape of source files: a heading, and for modules the order in rule 3.

use super::code::is_test_file;
use super::mask::Masked;
use super::{Finding, Source};

/// Runs the rules on a Rust file.
pub fn check(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    if !is_test_file(source.path) {
        heading(source, findings);
    }
    if is_module(source.path) {
        module(source, masked, findings);
    }
}

fn heading(source: &Source, findings: &mut Vec<Finding>) {
    let first = source.text.lines().find(|line| !line.starts_with("#!")).unwrap_or("");
    if !first.starts_with("//!") {
        let message = "begin with a `//!` line that describes the file".to_owned();
        findings.push(source.finding("heading", 1, message));
    }
}

/// Whether the path is `crates/modules/src/FAMILY/mod_NAME.rs`, or `mod_NAME/mod.rs` for a module
/// in a folder.
fn is_module(path: &str) -> bool {
    let Some(inside) = path.strip_prefix("crates/modules/src/") else { return false };
    let parts: Vec<&str> = inside.split('/').collect();
    match parts.as_slice() {
        [_, file] => file.starts_with("mod_"),
        [_, folder, file] => folder.starts_with("mod_") && *file == "mod.rs",
        _ => false,
    }
}

fn module(source: &Source, masked: &Masked, findings: &mut Vec<Finding>) {
    let heading: Vec<&str> =
        source.text.lines().take_while(|line| line.starts_with("//!")).collect();
    if !heading.iter().any(|line| line.starts_with("//! Manual: <http")) {
        let message = "link Apache's page in the heading: `//! Manual: <https://…/mod_x.html>`";
        let message = message.to_owned();
        findings.push(source.finding("module-shape", 1, message));
    }
    let structure = masked.code.find("\npub struct ");
    match (structure, masked.code.find("Module for ")) {
        (Some(before), Some(after)) if before < after => {}
        (_, None) => {
            let message = "no `impl Module`: a module file holds its module".to_owned();
            findings.push(source.finding("module-shape", 0, message));
        }
        _ => {
            let message = "the module's `pub struct` comes first, then its `impl Module`";
            findings.push(source.finding("module-shape", 0, message.to_owned()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::mask::mask;
    use super::*;

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        let mut findings = Vec::new();
        check(&Source { path, text }, &mask(text), &mut findings);
        findings.iter().map(|finding| finding.rule).collect()
    }

    #[test]
    fn a_file_begins_with_its_heading() {
        assert_eq!(rules("crates/wire/src/uri.rs", "use a;\n"), ["heading"]);
        assert!(rules("crates/wire/src/lib.rs", "#![forbid(unsafe_code)]\n//! Wire.\n").is_empty());
    }

    #[test]
    fn a_module_has_its_shape() {
        let path = "crates/modules/src/mappers/mod_alias.rs";
        let good = "//! Maps URLs.\n//! Manual: <https://a.example/mod_alias.html>\n\n\
                    pub struct Alias;\n\nimpl Module for Alias {}\n";
        assert!(rules(path, good).is_empty());
        let late = "//! Manual: <https://a.example/mod_alias.html>\nimpl Module for Alias {}\n\
                    pub struct Alias;\n";
        assert_eq!(rules(path, late), ["module-shape"]);
        assert_eq!(rules(path, "//! Maps.\n"), ["module-shape", "module-shape"]);
        assert!(rules("crates/modules/src/mappers/mod_alias/table.rs", "//! Rows.\n").is_empty());
    }
}
