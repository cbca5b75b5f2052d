//! The hand-written part of a module's page. It stands beside the module's code: `manual.md` in the
//! folder of the module, or `mod_name.md` beside its file. The text before the first `##` is the
//! introduction; each `## Directive` belongs to the directive of that name. Links begin at the root
//! of the checkout (`/docs/refused.md`), so that they hold in both places.

use super::page::cell;
use super::row::Row;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folder of the modules.
const MODULES: &str = "crates/modules/src";
/// The file of a module that is a folder.
const FILE: &str = "manual.md";
/// Deepest folder of a module.
const DEPTH_LIMIT: usize = 8;

/// Modules that have no chapter yet. The list only shrinks.
pub const WITHOUT: [&str; 0] = [];

/// The chapters by module.
pub type Chapters = BTreeMap<String, Chapter>;

/// A chapter.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Chapter {
    /// The file.
    path: PathBuf,
    /// The text before the first directive.
    pub introduction: String,
    /// The texts of directives, by heading.
    sections: Vec<(String, String)>,
}

impl Chapter {
    /// Parses a chapter. Headings in blocks of code are text.
    fn parse(path: PathBuf, text: &str) -> Chapter {
        let mut chapter = Chapter { path, ..Chapter::default() };
        let mut is_code = false;
        for line in text.lines() {
            is_code ^= line.starts_with("```");
            if let Some(heading) = line.strip_prefix("## ").filter(|_| !is_code) {
                chapter.sections.push((heading.trim().to_owned(), String::new()));
                continue;
            }
            let last = chapter.sections.last_mut().map(|(_, text)| text);
            let text = last.unwrap_or(&mut chapter.introduction);
            text.push_str(&from_pages(line));
            text.push('\n');
        }
        chapter
    }

    /// The first sentence of the introduction: what the module is for.
    pub fn purpose(&self) -> String {
        let text = self.introduction.trim().replace('\n', " ");
        let end = text.find(". ").map_or(text.len(), |at| at + 1);
        text.get(..end).unwrap_or_default().to_owned()
    }

    /// The text of a directive, or an empty one.
    pub fn section(&self, row: &Row) -> &str {
        let heading = cell(&row.name);
        let found = self.sections.iter().find(|(name, _)| *name == heading);
        found.map_or("", |(_, text)| text.trim())
    }

    /// Headings that name none of the module's directives, and those that occur twice.
    fn faults(&self, rows: &[&Row]) -> Vec<String> {
        let path = self.path.display();
        let mut faults = Vec::new();
        for (at, (heading, _)) in self.sections.iter().enumerate() {
            if !rows.iter().any(|row| cell(&row.name) == *heading) {
                faults.push(format!("{path}: `## {heading}` names no directive of the module"));
            }
            if self.sections.iter().take(at).any(|(other, _)| other == heading) {
                faults.push(format!("{path}: `## {heading}` occurs twice"));
            }
        }
        faults
    }
}

/// Replaces links from the root of the checkout by links from the generated pages.
fn from_pages(line: &str) -> String {
    line.replace("](/docs/directives/", "](")
        .replace("](/docs/", "](../")
        .replace("](/", "](../../")
}

/// Reads all chapters.
///
/// # Errors
/// A file can't be read.
pub fn read(root: &Path) -> Result<Chapters, String> {
    let mut files = Vec::new();
    find(&root.join(MODULES), DEPTH_LIMIT, &mut files);
    let mut chapters = Chapters::new();
    for (module, file) in files {
        let text = std::fs::read_to_string(&file)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let path = file.strip_prefix(root).unwrap_or(&file).to_path_buf();
        chapters.insert(module, Chapter::parse(path, &text));
    }
    Ok(chapters)
}

fn find(folder: &Path, depth: usize, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() && depth > 0 {
            find(&path, depth - 1, files);
        } else if let Some(module) = module(&path) {
            files.push((module, path));
        }
    }
}

/// The module of a file, if that is a chapter.
fn module(file: &Path) -> Option<String> {
    let is_folder = file.file_name()?.to_str()? == FILE;
    let name = if is_folder { file.parent()?.file_name()? } else { file.file_stem()? };
    let is_chapter = is_folder || file.extension().is_some_and(|word| word == "md");
    is_chapter.then(|| name.to_string_lossy().into_owned())
}

/// Checks that each module has its chapter, except those of `without`, and each chapter its module.
///
/// # Errors
/// What is wrong, a fault per line.
pub fn check(
    chapters: &Chapters,
    here: &[String],
    modules: &BTreeMap<&str, Vec<&Row>>,
    without: &[&str],
) -> Result<(), String> {
    let mut faults = Vec::new();
    for (module, chapter) in chapters {
        let path = chapter.path.display();
        match here.contains(module) {
            true if without.contains(&module.as_str()) => {
                faults.push(format!("{path}: take {module} off the list WITHOUT"));
            }
            true => faults.extend(
                chapter.faults(modules.get(module.as_str()).map_or(&[][..], Vec::as_slice)),
            ),
            false => faults.push(format!("{path}: there is no module {module}")),
        }
    }
    for module in here.iter().filter(|module| !chapters.contains_key(*module)) {
        if !without.contains(&module.as_str()) {
            faults.push(format!("{module} has no {FILE} beside its code, nor {module}.md"));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::super::row::parse;
    use super::*;

    const TEXT: &str = "About.\n\n```apache\n## Alias\n```\n\n## Alias\n\nSee [a](/docs/a.md).\n";

    fn chapters() -> Chapters {
        let chapter = Chapter::parse(PathBuf::from("mod_alias/manual.md"), TEXT);
        [("mod_alias".to_owned(), chapter)].into()
    }

    #[test]
    fn a_heading_begins_the_text_of_a_directive() {
        let rows = parse(include_str!("sample.json")).unwrap().rows;
        let chapters = chapters();
        let chapter = &chapters["mod_alias"];
        assert_eq!(chapter.introduction.trim(), "About.\n\n```apache\n## Alias\n```");
        assert_eq!(chapter.section(&rows[0]), "See [a](../a.md).");
        assert_eq!(chapter.section(&rows[1]), "");
    }

    #[test]
    fn the_purpose_is_a_sentence() {
        let of = |text: &str| Chapter::parse(PathBuf::new(), text).purpose();
        assert_eq!(of("Serves\nTLS 1.3. More.\n"), "Serves TLS 1.3.");
        assert_eq!(of("All.\n\n## A\n"), "All.");
    }

    #[test]
    fn headings_and_files_must_be_of_the_module() {
        let rows = parse(include_str!("sample.json")).unwrap().rows;
        let here = ["mod_alias".to_owned()];
        let modules = BTreeMap::from([("mod_alias", vec![&rows[0]])]);
        let chapters = chapters();
        assert_eq!(check(&chapters, &here, &modules, &[]), Ok(()));
        let others = BTreeMap::from([("mod_alias", vec![&rows[1]])]);
        let fault =
            |chapters, here, modules, without| check(chapters, here, modules, without).unwrap_err();
        assert!(fault(&chapters, &here, &others, &[]).contains("`## Alias` names no"));
        assert!(fault(&chapters, &[], &modules, &[]).contains("no module mod_alias"));
        assert!(fault(&chapters, &here, &modules, &["mod_alias"]).contains("off the list"));
        let none = Chapters::new();
        let missing = fault(&none, &here, &modules, &[]);
        assert_eq!(missing, "mod_alias has no manual.md beside its code, nor mod_alias.md");
        assert_eq!(check(&none, &here, &modules, &["mod_alias"]), Ok(()));
    }

    #[test]
    fn a_chapter_lies_beside_its_module() {
        let of = |path: &str| module(Path::new(path));
        assert_eq!(of("src/mappers/mod_alias/manual.md").as_deref(), Some("mod_alias"));
        assert_eq!(of("src/mappers/mod_dir.md").as_deref(), Some("mod_dir"));
        assert_eq!(of("src/mappers/mod_dir.rs"), None);
    }

    #[test]
    fn links_begin_at_the_root() {
        assert_eq!(from_pages("[a](/docs/directives/core.md#x)"), "[a](core.md#x)");
        assert_eq!(from_pages("[a](/README.md)"), "[a](../../README.md)");
        assert_eq!(from_pages("[a](https://a.example/docs/)"), "[a](https://a.example/docs/)");
    }
}
