//! One page per module, and the index of them.

use super::chapter::{Chapter, Chapters};
use super::row::{Row, State};
use std::collections::BTreeMap;

/// The note at the head of each generated file.
pub const NOTE: &str =
    "<!-- Made by `cargo xtask manual` from the directive rows: edit those. -->\n";
/// The note at the head of a page with hand-written text.
const NOTE_OF_PAGE: &str =
    "<!-- Made by `cargo xtask manual` from the directive rows and manual.md: edit those. -->\n";

/// A module's page: the introduction, and each directive with its properties and text.
pub fn render(module: &str, rows: &[&Row], chapter: Option<&Chapter>) -> String {
    let note = if chapter.is_some() { NOTE_OF_PAGE } else { NOTE };
    let mut page = format!("{note}\n# {module}\n\n{}", origin(module));
    if let Some(file) = rows.iter().map(|row| &row.file).find(|file| !file.is_empty()) {
        page.push_str(&format!("Source: `{file}`\n\n"));
    }
    if let Some(chapter) = chapter {
        page.push_str(&format!("{}\n\n", chapter.introduction.trim()));
    }
    for row in rows {
        page.push_str(&directive(row));
        let text = chapter.map_or("", |chapter| chapter.section(row));
        if !text.is_empty() {
            page.push_str(&format!("{text}\n\n"));
        }
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// How the module is loaded, and where Apache describes it.
fn origin(module: &str) -> String {
    let mut facts = Vec::new();
    if let Some(name) = module.strip_prefix("mod_").filter(|name| *name != "so") {
        facts.push(format!("- Load: `LoadModule {name}_module modules/{module}.so`"));
    }
    if !OWN.contains(&module) {
        facts.push(format!(
            "- Apache's page: <https://httpd.apache.org/docs/2.4/mod/{module}.html>"
        ));
    }
    if facts.is_empty() { String::new() } else { format!("{}\n\n", facts.join("\n")) }
}

/// The modules that Apache does not have.
pub const OWN: [&str; 3] = ["loop", "mod_precompressed", "mod_zstd"];

/// The index: every module with its purpose and its directives.
pub fn index(modules: &BTreeMap<&str, Vec<&Row>>, chapters: &Chapters) -> String {
    let mut page = format!("{NOTE_OF_PAGE}\n# Modules and their directives\n\n");
    page.push_str("Which of Apache's directives are supported: [compat.md](../compat.md).\n\n");
    for (module, rows) in modules {
        let names: Vec<String> = rows
            .iter()
            .map(|row| format!("[{}]({module}.md#{})", cell(&row.name), anchor(&row.name)))
            .collect();
        page.push_str(&format!("**[{module}]({module}.md)**"));
        if let Some(chapter) = chapters.get(*module) {
            page.push_str(&format!(": {}", chapter.purpose()));
        }
        if !names.is_empty() {
            page.push_str(&format!("\nDirectives: {}.", names.join(", ")));
        }
        page.push_str("\n\n");
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

fn directive(row: &Row) -> String {
    let mut text = format!("## {}\n\n", cell(&row.name));
    text.push_str(&format!("{}\n\n", row.doc.trim()));
    text.push_str(&format!("```apache\n{}\n```\n\n", usage(row)));
    let mut facts = vec![format!("- Where: {}", contexts(row))];
    if !row.override_class.is_empty() {
        facts.push(format!("- AllowOverride: {}", row.override_class));
    }
    if !row.default.is_empty() {
        facts.push(format!("- Default: `{}`", row.default));
    }
    if row.state != State::Done || !row.note.is_empty() {
        let separator = if row.note.is_empty() { "" } else { ": " };
        facts.push(format!("- State: {}{separator}{}", row.state.word(), row.note));
    }
    text.push_str(&facts.join("\n"));
    text.push_str("\n\n");
    text
}

/// The usage line. Rows may hold only the arguments, and a section's name without brackets.
fn usage(row: &Row) -> String {
    let syntax = row.syntax.trim();
    if syntax.starts_with(row.name.as_str()) || syntax.starts_with('<') {
        syntax.to_owned()
    } else if let Some(section) = row.name.strip_prefix('<') {
        let section = section.trim_end_matches('>');
        format!("<{section} {syntax}> … </{section}>")
    } else {
        format!("{} {syntax}", row.name).trim_end().to_owned()
    }
}

fn contexts(row: &Row) -> String {
    let word = |name: &String| match name.as_str() {
        "server" => "server config".to_owned(),
        "vhost" => "virtual host".to_owned(),
        "htaccess" => ".htaccess".to_owned(),
        other => other.to_owned(),
    };
    row.contexts.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Escapes text for headings and table cells.
pub fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace('>', "&gt;").replace('\n', " ")
}

/// A heading's anchor in Markdown renderers.
pub fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || *letter == '-' || *letter == '_')
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::row::parse;
    use super::*;

    #[test]
    fn a_page_states_the_facts() {
        let rows = parse(include_str!("sample.json")).unwrap().rows;
        let page = render("mod_alias", &[&rows[0], &rows[1]], None);
        assert!(page.contains("## Alias\n\nMaps URLs"));
        assert!(page.contains("- Where: server config, virtual host, directory, .htaccess"));
        assert!(page.contains("- AllowOverride: FileInfo\n- State: partial: no RedirectRelative"));
        assert!(page.contains("- Load: `LoadModule alias_module modules/mod_alias.so`\n"));
        assert!(page.ends_with("yet\n"));
    }

    #[test]
    fn a_usage_line_begins_with_its_name() {
        let mut rows = parse(include_str!("sample.json")).unwrap().rows;
        assert_eq!(usage(&rows[0]), "Alias [URL-path] file-path");
        rows[0].syntax = "[URL-path] file-path".to_owned();
        assert_eq!(usage(&rows[0]), "Alias [URL-path] file-path");
        rows[2].syntax = "path".to_owned();
        assert_eq!(usage(&rows[2]), "<Directory path> … </Directory>");
    }

    #[test]
    fn sections_survive_markdown() {
        assert_eq!(cell("<Directory>"), "&lt;Directory&gt;");
        assert_eq!(anchor("<Directory>"), "directory");
    }
}
