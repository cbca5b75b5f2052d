//! docs/compat.md: every directive of Apache 2.4, and what this server makes of it.

use super::csv::Reference;
use super::page::{NOTE, anchor, cell};
use super::row::{Row, State};
use std::collections::BTreeMap;

/// Renders the page: the count of each state, then a table per module.
pub fn render(rows: &[Row], reference: &[Reference]) -> String {
    let lines = lines(rows, reference);
    let mut page = format!("{NOTE}\n# Which directives work\n\n");
    page.push_str(&summary(&lines));
    let mut modules: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in &lines {
        modules.entry(line.module).or_default().push(line);
    }
    for (module, lines) in modules {
        page.push_str(&format!("\n## {module}\n\n| directive | state | note |\n|---|---|---|\n"));
        for line in lines {
            page.push_str(&line.render());
        }
    }
    page
}

struct Line<'a> {
    module: &'a str,
    name: &'a str,
    row: Option<&'a Row>,
}

impl Line<'_> {
    fn state(&self) -> State {
        self.row.map_or(State::NotYet, |row| row.state)
    }

    fn render(&self) -> String {
        let name = match self.row {
            Some(row) => {
                format!("[{}](directives/{}.md#{})", cell(self.name), row.module, anchor(self.name))
            }
            None => cell(self.name),
        };
        let note = self.row.map_or(String::new(), |row| cell(&row.note));
        format!("| {name} | {} | {note} |\n", self.state().word())
    }
}

/// Apache's directives under Apache's modules, then those that only this server has.
fn lines<'a>(rows: &'a [Row], reference: &'a [Reference]) -> Vec<Line<'a>> {
    let mut lines: Vec<Line> = reference
        .iter()
        .map(|known| Line {
            module: &known.module,
            name: &known.directive,
            row: find(rows, &known.module, &known.directive),
        })
        .collect();
    let is_known = |row: &Row| reference.iter().any(|known| same_name(&known.directive, &row.name));
    for row in rows.iter().filter(|row| !is_known(row)) {
        lines.push(Line { module: &row.module, name: &row.name, row: Some(row) });
    }
    lines.sort_by_key(|line| (line.module, line.name.trim_start_matches('<').to_lowercase()));
    lines
}

/// The row of the same module, else of the same name: Apache's MPM directives stand under
/// `mpm_common` in its manual and in a module of their own here.
fn find<'a>(rows: &'a [Row], module: &str, name: &str) -> Option<&'a Row> {
    let named = || rows.iter().filter(|row| same_name(&row.name, name));
    named().find(|row| row.module == module).or_else(|| named().next())
}

/// Directive names are compared without case, sections with or without their brackets.
fn same_name(one: &str, other: &str) -> bool {
    let bare = |name: &'_ str| name.trim_matches(['<', '>']).to_ascii_lowercase();
    bare(one) == bare(other)
}

fn summary(lines: &[Line]) -> String {
    let count = |state| lines.iter().filter(|line| line.state() == state).count();
    format!(
        "Of {} directives {} are done, {} partial, {} refused on purpose \
         ([why](refused.md)),\n{} accepted without effect because what they tune is not here, \
         and {} not there yet.\n\nA directive without a link is an error at start, with its \
         file, line and column. One that is linked\nand not there yet is read, and a warning \
         names its line.\n",
        lines.len(),
        count(State::Done),
        count(State::Partial),
        count(State::Refused),
        count(State::Accepted),
        count(State::NotYet)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{csv, row};
    use super::*;

    #[test]
    fn what_has_no_row_is_not_yet() {
        let rows = row::parse(include_str!("sample.json")).unwrap();
        let list = "module,directive,status\nmod_alias,Alias,Base\nmod_md,MDomain,Base\n\
                    core,<Directory>,Core\n";
        let page = render(&rows, &csv::reference(list).unwrap());
        assert!(page.contains("| [Alias](directives/mod_alias.md#alias) | done |  |"));
        assert!(page.contains("| MDomain | not yet |  |"));
        assert!(page.contains("[&lt;Directory&gt;](directives/core.md#directory) | done"));
        assert!(page.contains("refused | kernel filters of other systems \\| none |"));
        assert!(page.contains("Of 5 directives 2 are done, 1 partial, 1 refused"));
    }
}
