//! docs/compat.md: every module and directive of Apache 2.4, and its state in this server.

use super::csv::Reference;
use super::page::{NOTE, OWN, anchor, cell};
use super::row::{Dump, Row, State};
use std::collections::{BTreeMap, BTreeSet};

/// Modules that Apache has on other systems only.
const ELSEWHERE: [&str; 4] = ["mod_isapi", "mod_nw_ssl", "mod_privileges", "mpm_netware"];
/// A directive of the list under a common heading, which belongs to one of the modules.
const STRAY: &str = "StartThreads";

/// Renders the page: missing modules, implemented ones, a table per module, and the index.
pub fn render(dump: &Dump, reference: &[Reference]) -> String {
    let lines = lines(dump, reference);
    let mut modules: BTreeMap<&str, Vec<&Line>> = BTreeMap::new();
    for line in &lines {
        modules.entry(line.module).or_default().push(line);
    }
    for missing in &dump.missing {
        modules.entry(&missing.module).or_default();
    }
    let missing: BTreeSet<&str> = dump.missing.iter().map(|one| one.module.as_str()).collect();
    let mut page = format!("{NOTE}\n# Which modules and directives work\n\n");
    page.push_str(&overview(dump, &modules, &missing, &lines));
    for (module, lines) in &modules {
        if !missing.contains(module) && !ELSEWHERE.contains(module) {
            let origin = if OWN.contains(module) { "Apache has no such module.\n\n" } else { "" };
            page.push_str(&format!(
                "\n## {module}\n\n{origin}| directive | state | note |\n|---|---|---|\n"
            ));
            lines.iter().for_each(|line| page.push_str(&line.render()));
        }
    }
    page.push_str(&absent(&modules, &missing));
    page.push_str("\n## A to Z\n\n| directive | module | state |\n|---|---|---|\n");
    let mut all: Vec<&Line> = lines.iter().collect();
    all.sort_by_key(|line| line.name.trim_start_matches('<').to_lowercase());
    for line in all {
        let (name, module, state) = (line.link(), line.module, line.state().word());
        page.push_str(&format!("| {name} | {module} | {state} |\n"));
    }
    page
}

struct Line<'a> {
    module: &'a str,
    name: &'a str,
    row: Option<&'a Row>,
    is_inert: bool,
}

impl Line<'_> {
    fn state(&self) -> State {
        let elsewhere = ELSEWHERE.contains(&self.module) || self.name == STRAY;
        let otherwise = if elsewhere { State::Refused } else { State::NotYet };
        self.row.map_or(otherwise, |row| row.state)
    }

    fn link(&self) -> String {
        match self.row {
            Some(row) => {
                format!("[{}](directives/{}.md#{})", cell(self.name), row.module, anchor(self.name))
            }
            None => cell(self.name),
        }
    }

    fn render(&self) -> String {
        let note = match self.row {
            Some(row) => cell(&row.note),
            None if self.state() == State::Refused => OTHER_SYSTEMS.to_owned(),
            None => String::new(),
        };
        format!("| {} | {} | {note} |\n", self.link(), self.state().word())
    }
}

const OTHER_SYSTEMS: &str = "Apache has it on other systems only";

/// The summary.
fn overview(
    dump: &Dump,
    modules: &BTreeMap<&str, Vec<&Line>>,
    missing: &BTreeSet<&str>,
    lines: &[Line],
) -> String {
    let documented = modules
        .keys()
        .copied()
        .filter(|module| !missing.contains(module) && !ELSEWHERE.contains(module));
    let here: BTreeSet<&str> = documented.chain(dump.here.iter().map(String::as_str)).collect();
    let here: Vec<String> = here
        .into_iter()
        .map(|module| match modules.contains_key(module) {
            true => format!("[{module}](#{module})"),
            false => module.to_owned(),
        })
        .collect();
    let names: Vec<&str> = missing.iter().copied().collect();
    let count = |state| lines.iter().filter(|line| line.state() == state).count();
    format!(
        "**Not implemented yet** are {} modules:{}.\n`LoadModule` of one causes a warning, and \
         each of its directives is an error with its line, except\n[a few that weaken \
         nothing](refused.md#modules-that-are-not-here-yet).\n\n**Implemented** are:{}.\n\nOf \
         {} directives {} are done, {} partial, {} deliberately refused \
         ([why](refused.md)),\n{} accepted without effect because the feature does not exist \
         here, and {} missing.\nA missing directive of an implemented module is read with a \
         warning.\n",
        names.len(),
        wrapped(&names.join(", ")),
        wrapped(&here.join(", ")),
        lines.len(),
        count(State::Done),
        count(State::Partial),
        count(State::Refused),
        count(State::Accepted),
        count(State::NotYet)
    )
}

/// The width of a list in columns.
const WIDTH: usize = 98;

/// Wraps a list.
fn wrapped(list: &str) -> String {
    let mut out = String::new();
    let mut column = WIDTH;
    for word in list.split(' ') {
        if column + word.len() >= WIDTH {
            out.push('\n');
            column = 0;
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out
}

/// The missing modules with their directives.
fn absent(modules: &BTreeMap<&str, Vec<&Line>>, missing: &BTreeSet<&str>) -> String {
    let mut out = "\n## Modules that are not implemented yet\n\nA directive in italics is read \
                   without effect.\n\n| module | directives |\n|---|---|\n"
        .to_owned();
    let mut elsewhere = format!("\n## Modules of other systems\n\n{OTHER_SYSTEMS}.\n\n");
    elsewhere.push_str("| module | directives |\n|---|---|\n");
    for (module, lines) in modules {
        let shown = |line: &&Line| match line.is_inert {
            true => format!("*{}*", cell(line.name)),
            false => cell(line.name),
        };
        let names: Vec<String> = lines.iter().map(shown).collect();
        let row = format!("| {module} | {} |\n", names.join(", "));
        if missing.contains(module) {
            out.push_str(&row);
        } else if ELSEWHERE.contains(module) {
            elsewhere.push_str(&row);
        }
    }
    out + &elsewhere
}

/// Apache's directives by Apache's modules, followed by those that only this server has.
fn lines<'a>(dump: &'a Dump, reference: &'a [Reference]) -> Vec<Line<'a>> {
    let inert: Vec<&String> = dump.missing.iter().flat_map(|one| &one.inert).collect();
    let mut lines: Vec<Line> = reference
        .iter()
        .map(|known| Line {
            module: &known.module,
            name: &known.directive,
            row: find(&dump.rows, &known.module, &known.directive),
            is_inert: inert.iter().any(|name| same_name(name, &known.directive)),
        })
        .collect();
    let is_known = |row: &Row| reference.iter().any(|known| same_name(&known.directive, &row.name));
    for row in dump.rows.iter().filter(|row| !is_known(row)) {
        lines.push(Line { module: &row.module, name: &row.name, row: Some(row), is_inert: false });
    }
    lines.sort_by_key(|line| (line.module, line.name.trim_start_matches('<').to_lowercase()));
    lines
}

/// The row of the same module, or else of the same name: Apache's manual lists MPM directives under
/// `mpm_common`, whereas each belongs to a module here.
fn find<'a>(rows: &'a [Row], module: &str, name: &str) -> Option<&'a Row> {
    let named = || rows.iter().filter(|row| same_name(&row.name, name));
    named().find(|row| row.module == module).or_else(|| named().next())
}

/// Compares directive names ignoring case and the brackets of sections.
fn same_name(one: &str, other: &str) -> bool {
    let bare = |name: &'_ str| name.trim_matches(['<', '>']).to_ascii_lowercase();
    bare(one) == bare(other)
}

#[cfg(test)]
mod tests {
    use super::super::{csv, row};
    use super::*;

    #[test]
    fn what_is_missing_comes_first() {
        let dump = row::parse(include_str!("sample.json")).unwrap();
        let list = "module,directive,status\nmod_alias,Alias,Base\nmod_md,MDomain,Base\n\
                    core,<Directory>,Core\nmod_isapi,ISAPICacheFile,Base\n";
        let page = render(&dump, &csv::reference(list).unwrap());
        assert!(page.contains("**Not implemented yet** are 1 modules:\nmod_md.\n"), "{page}");
        assert!(page.contains("| [Alias](directives/mod_alias.md#alias) | done |  |"));
        assert!(page.contains("[mod_alias](#mod_alias), mod_status."), "{page}");
        assert!(page.contains("| mod_md | MDomain |\n"));
        assert!(page.contains("| MDomain | mod_md | not yet |\n"));
        assert!(page.contains("| ISAPICacheFile | mod_isapi | refused |\n"));
        assert!(!page.contains("## mod_md"));
        assert!(page.contains("[&lt;Directory&gt;](directives/core.md#directory) | done"));
        assert!(page.contains("refused | kernel filters of other systems \\| none |"));
        assert!(
            page.contains("Of 6 directives 2 are done, 1 partial, 2 deliberately refused"),
            "{page}"
        );
    }

    #[test]
    fn lists_are_broken_where_they_are_wide() {
        let long = ["abcdefghi"; 12].join(", ");
        let lines: Vec<String> = wrapped(&long).lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines.iter().all(|line| line.len() <= WIDTH));
    }
}
