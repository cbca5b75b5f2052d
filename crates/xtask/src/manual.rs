//! Generates the manual: a page per module, from its directive rows and the chapter beside its
//! code; and the compatibility table, from the rows and the list of Apache's directives.

mod chapter;
mod compat;
mod csv;
mod links;
mod page;
mod row;

use crate::tree;
use chapter::Chapters;
use row::{Dump, Row};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The list of Apache's directives, extracted from its manual.
const REFERENCE: &str = "docs/reference/directives.csv";

/// Writes the manual, or with `--check` compares it with the generated one.
///
/// # Errors
/// The rows are not available, a chapter does not fit its module, a link leads to no heading, a
/// file can't be written, or `--check` finds a stale page.
pub fn run(arguments: &[&str]) -> Result<String, String> {
    let options = Options::parse(arguments)?;
    let root = tree::root();
    let dump = row::parse(&options.rows(&root)?)?;
    let reference = std::fs::read_to_string(root.join(REFERENCE))
        .map_err(|error| format!("{REFERENCE}: {error}"))?;
    let reference = csv::reference(&reference)?;
    let chapters = chapter::read(&root)?;
    let modules = modules(&dump);
    chapter::check(&chapters, &dump.here, &modules, &chapter::WITHOUT)?;
    let pages = pages(&dump, &modules, &reference, &chapters);
    let lost = links::lost(&pages);
    if !lost.is_empty() {
        return Err(lost.join("\n"));
    }
    if options.check { check(&root, &pages) } else { write(&root, &pages) }
}

struct Options<'a> {
    check: bool,
    rows: Option<&'a str>,
}

impl<'a> Options<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let mut options = Options { check: false, rows: None };
        let mut words = arguments.iter();
        while let Some(word) = words.next() {
            match *word {
                "--check" => options.check = true,
                "--rows" => options.rows = words.next().copied(),
                other => return Err(format!("manual: unknown argument `{other}`")),
            }
        }
        Ok(options)
    }

    /// The dump of the rows, from a file or from the program.
    fn rows(&self, root: &Path) -> Result<String, String> {
        if let Some(path) = self.rows {
            return std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        }
        let output = program(root)
            .args(["manual", "--json"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("tamarack manual: {error}"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            return Err(format!("tamarack manual --json failed:\n{errors}"));
        }
        String::from_utf8(output.stdout).map_err(|error| format!("tamarack manual: {error}"))
    }
}

/// The program: that of the variable TAMARACK, or the one that cargo builds.
fn program(root: &Path) -> Command {
    if let Some(path) = std::env::var_os("TAMARACK") {
        return Command::new(path);
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", "tamarack", "--"]).current_dir(root);
    cargo
}

/// The implemented modules with their directives.
fn modules(dump: &Dump) -> BTreeMap<&str, Vec<&Row>> {
    let mut modules: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in &dump.rows {
        modules.entry(&row.module).or_default().push(row);
    }
    for rows in modules.values_mut() {
        rows.sort_by_key(|row| row.name.to_lowercase());
    }
    for module in &dump.here {
        modules.entry(module).or_default();
    }
    modules
}

/// Every generated page by its path from the root. A module without directives has one if it has a
/// chapter.
fn pages(
    dump: &Dump,
    modules: &BTreeMap<&str, Vec<&Row>>,
    reference: &[csv::Reference],
    chapters: &Chapters,
) -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::new();
    let mut listed = BTreeMap::new();
    for (module, rows) in modules {
        let chapter = chapters.get(*module);
        if rows.is_empty() && chapter.is_none() {
            continue;
        }
        let path = Path::new("docs/directives").join(format!("{module}.md"));
        pages.insert(path, page::render(module, rows, chapter));
        listed.insert(*module, rows.clone());
    }
    pages.insert(PathBuf::from("docs/directives/index.md"), page::index(&listed, chapters));
    pages.insert(PathBuf::from("docs/compat.md"), compat::render(dump, reference));
    pages
}

fn write(root: &Path, pages: &BTreeMap<PathBuf, String>) -> Result<String, String> {
    for stale in leftovers(root, pages) {
        std::fs::remove_file(root.join(&stale))
            .map_err(|error| format!("{}: {error}", stale.display()))?;
    }
    for (path, text) in pages {
        let target = root.join(path);
        let folder = target.parent().unwrap_or(root);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&target, text))
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(format!("manual: {} pages written", pages.len()))
}

fn check(root: &Path, pages: &BTreeMap<PathBuf, String>) -> Result<String, String> {
    let differs = |(path, text): &(&PathBuf, &String)| {
        std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)
    };
    let mut stale: Vec<PathBuf> =
        pages.iter().filter(differs).map(|(path, _)| path.clone()).collect();
    stale.extend(leftovers(root, pages));
    if stale.is_empty() {
        return Ok(format!("manual: {} pages are current", pages.len()));
    }
    let names: Vec<String> = stale.iter().map(|path| path.display().to_string()).collect();
    Err(format!("stale: {}\nrun `cargo xtask manual` and commit the result", names.join(" ")))
}

/// Generated pages of modules that no longer exist.
fn leftovers(root: &Path, pages: &BTreeMap<PathBuf, String>) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("docs/directives")) else { return Vec::new() };
    entries
        .flatten()
        .map(|entry| Path::new("docs/directives").join(entry.file_name()))
        .filter(|path| path.extension().is_some_and(|word| word == "md"))
        .filter(|path| !pages.contains_key(path))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = include_str!("manual/sample.json");

    #[test]
    fn each_module_has_a_page_and_all_is_in_the_index() {
        let dump = row::parse(ROWS).unwrap();
        let pages = pages(&dump, &modules(&dump), &[], &Chapters::new());
        let names: Vec<&Path> = pages.keys().map(PathBuf::as_path).collect();
        let expected = [
            "docs/compat.md",
            "docs/directives/core.md",
            "docs/directives/index.md",
            "docs/directives/mod_alias.md",
        ];
        assert_eq!(names, expected.map(Path::new));
        let index = &pages[Path::new("docs/directives/index.md")];
        assert!(index.contains("[mod_alias](mod_alias.md)"));
    }

    #[test]
    fn a_page_that_differs_or_is_left_over_is_stale() {
        let root = std::env::temp_dir().join(format!("xtask-manual-{}", std::process::id()));
        let dump = row::parse(ROWS).unwrap();
        let pages = pages(&dump, &modules(&dump), &[], &Chapters::new());
        assert!(check(&root, &pages).is_err());
        write(&root, &pages).unwrap();
        assert!(check(&root, &pages).is_ok());
        std::fs::write(root.join("docs/directives/mod_gone.md"), "x").unwrap();
        assert!(check(&root, &pages).unwrap_err().contains("mod_gone.md"));
        write(&root, &pages).unwrap();
        assert!(check(&root, &pages).is_ok());
        std::fs::remove_dir_all(root).unwrap();
    }
}
