//! A report as text: at most 100 columns, colours only on a terminal.

use std::fmt::Write as _;

use super::diff::{Difference, Line};
use super::places::{Place, Places};
use super::report::Report;
use super::rows::{Group, Row, Writer};

/// The widest line, in characters.
pub const WIDTH: usize = 100;
/// The column in which places begin, if there is room.
const PLACE_COLUMN: usize = 58;
/// The width of labels.
const LABEL: usize = 14;

/// How a report is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct Style {
    /// Whether to use colours.
    pub colour: bool,
    /// Whether to unfold everything.
    pub verbose: bool,
    /// Whether to write only the verdict.
    pub quiet: bool,
}

/// Writes a report.
pub fn write(report: &Report, places: &Places, style: Style) -> String {
    let mut page = Page { out: String::new(), colour: style.colour };
    page.verdict(report, style.quiet);
    if style.quiet {
        return page.out;
    }
    let groups = groups(report, places, style.verbose);
    let last = groups.len().saturating_sub(1);
    for (at, group) in groups.iter().enumerate() {
        page.group(group, at == last);
    }
    page.out
}

fn groups(report: &Report, places: &Places, verbose: bool) -> Vec<Group> {
    let mut groups = Writer { places, verbose }.groups(&report.event);
    groups.extend(winners(report, verbose));
    groups.push(fields(report));
    groups.extend(idle(report).filter(|_| verbose));
    groups
}

/// The rows of a report with their headings, the verdict first.
pub fn lines(report: &Report, places: &Places) -> Vec<Line> {
    let target = report.location.as_deref().or(report.file.as_deref()).unwrap_or_default();
    let text = format!("{} {}  {target}", report.status, report.phrase);
    let verdict = Row { text, ..Row::default() };
    let of_group = |group: Group| {
        let name = group.name;
        group.rows.into_iter().map(move |row| (name.clone(), row))
    };
    let rest = groups(report, places, true).into_iter().flat_map(of_group);
    std::iter::once(("verdict".to_owned(), verdict)).chain(rest).collect()
}

/// Writes the rows that differ, each under its heading.
pub fn write_differences(found: &[Difference], colour: bool) -> String {
    let mut page = Page { out: String::new(), colour };
    let mut last = None;
    for (is_new, (group, row)) in found {
        if last != Some(group) {
            let _ = writeln!(page.out, "{}", page.painted(BOLD, group));
            last = Some(group);
        }
        page.row(if *is_new { "+ " } else { "- " }, &Row { depth: 0, ..row.clone() });
    }
    page.out
}

fn winners(report: &Report, verbose: bool) -> Option<Group> {
    let mut rows = Vec::new();
    for winner in &report.winners {
        let over: Vec<String> = winner.over.iter().map(|(place, _)| place.to_string()).collect();
        let over = match over.as_slice() {
            [first, rest @ ..] if !verbose && rest.len() > 1 => {
                format!("over {first} and {} others", rest.len())
            }
            all => format!("over {}", all.join(", ")),
        };
        rows.push(Row {
            depth: 0,
            label: winner.name.clone(),
            text: winner.value.clone(),
            place: Some(winner.place.clone()),
            outcome: over,
        });
    }
    (!rows.is_empty()).then(|| Group { name: "who won".to_owned(), about: String::new(), rows })
}

fn fields(report: &Report) -> Group {
    let row = |field: &super::headers::Field| Row {
        depth: 0,
        label: String::new(),
        text: format!("{}: {}", field.name, field.value),
        place: field.place.clone(),
        outcome: field.module.clone(),
    };
    let rows = report.fields.iter().map(row).collect();
    Group { name: "response".to_owned(), about: String::new(), rows }
}

fn idle(report: &Report) -> impl Iterator<Item = Group> {
    let row = Row { text: report.idle.join(", "), ..Row::default() };
    let group =
        Group { name: "nothing configured".to_owned(), about: String::new(), rows: vec![row] };
    (!report.idle.is_empty()).then_some(group).into_iter()
}

struct Page {
    out: String,
    colour: bool,
}

impl Page {
    fn verdict(&mut self, report: &Report, is_all: bool) {
        let status = self.painted(status_colour(report.status), &report.status.to_string());
        let target = match (&report.location, &report.file) {
            (Some(location), _) => format!("→ {location}"),
            (None, Some(file)) => match report.found {
                "file" => printable(file),
                found => format!("{} ({found})", printable(file)),
            },
            (None, None) => String::new(),
        };
        let line = format!("{status} {}  {}", report.phrase, printable(&target));
        let _ = writeln!(self.out, "{}", line.trim_end());
        if is_all {
            return;
        }
        let length = report.length.map(|length| format!("{length} bytes"));
        let media_type = report.media_type.as_deref().map(printable);
        let handler = report.handler.as_ref().map(|handler| format!("by {}", printable(handler)));
        let parts: Vec<String> = [media_type, length, handler].into_iter().flatten().collect();
        if !parts.is_empty() {
            self.row(
                "",
                &Row { label: "content".into(), text: parts.join(", "), ..Row::default() },
            );
        }
        let host = &report.host;
        let others = match host.others {
            0 => String::new(),
            1 => format!("; 1 other on {}", host.address),
            others => format!("; {others} others on {}", host.address),
        };
        self.row(
            "",
            &Row {
                label: "host".into(),
                text: format!("{}  {}{others}", host.name, host.rule),
                place: host.place.clone(),
                ..Row::default()
            },
        );
        let remembered = match &report.remembered {
            Ok(()) => "yes".to_owned(),
            Err(why) => format!("no: {why}"),
        };
        self.row("", &Row { label: "remembered".into(), text: remembered, ..Row::default() });
    }

    fn group(&mut self, group: &Group, is_last: bool) {
        let (branch, stem) = if is_last { ("└ ", "    ") } else { ("├ ", "│   ") };
        let _ = writeln!(self.out, "{branch}{}", self.painted(BOLD, &group.name));
        for row in &group.rows {
            self.row(stem, row);
        }
    }

    /// Writes a row: label and text, then place and outcome in a column of their own if they fit.
    fn row(&mut self, stem: &str, row: &Row) {
        let indent = "  ".repeat(row.depth.min(12));
        let label = match row.label.as_str() {
            "" => String::new(),
            label => format!("{:<LABEL$} ", printable(label)),
        };
        let left = format!("{indent}{label}{}", printable(&row.text));
        let left = left.trim_end();
        let right = right_of(row);
        let begin = stem.chars().count();
        let used = begin + left.chars().count();
        if right.is_empty() || used + 2 + right.chars().count() <= WIDTH {
            let room = PLACE_COLUMN.saturating_sub(begin);
            let fits = PLACE_COLUMN + 2 + right.chars().count() <= WIDTH;
            let pad = if fits && !right.is_empty() { room } else { 0 };
            self.lines(stem, &format!("{left:<pad$}"), &right, row.depth);
            return;
        }
        self.lines(stem, left, "", row.depth);
        let below = format!("{indent}{:LABEL$} ", "");
        self.lines(stem, &below, &right, row.depth);
    }

    /// Writes a line, broken where it is too wide.
    fn lines(&mut self, stem: &str, left: &str, right: &str, depth: usize) {
        let whole = match right {
            "" => left.to_owned(),
            _ if left.trim().is_empty() => format!("{left}{right}"),
            _ => format!("{left}  {right}"),
        };
        let deeper = " ".repeat(2 * depth.min(12) + LABEL + 1);
        let begin = stem.chars().count();
        let mut rest: Vec<char> = whole.trim_end().chars().collect();
        let mut margin = String::new();
        loop {
            let room = WIDTH.saturating_sub(begin + margin.chars().count()).max(20);
            if rest.len() <= room {
                let text: String = rest.iter().collect();
                let _ = writeln!(self.out, "{stem}{margin}{}", self.dimmed(&text, right));
                return;
            }
            let words = rest.get(..room).unwrap_or_default();
            let least = if margin.is_empty() { deeper.len() + 8 } else { 8 };
            let blank = words.iter().rposition(|letter| *letter == ' ');
            let cut = blank.filter(|at| *at > least).unwrap_or(room);
            let text: String = rest.drain(..cut).collect();
            let _ = writeln!(self.out, "{stem}{margin}{}", text.trim_end());
            while rest.first() == Some(&' ') {
                rest.remove(0);
            }
            margin.clone_from(&deeper);
        }
    }

    fn painted(&self, colour: &str, text: &str) -> String {
        match self.colour {
            true => format!("{colour}{text}{RESET}"),
            false => text.to_owned(),
        }
    }

    /// A line whose end is less important.
    fn dimmed(&self, text: &str, right: &str) -> String {
        match text.strip_suffix(right).filter(|_| self.colour && !right.is_empty()) {
            Some(left) => format!("{left}{DIM}{right}{RESET}"),
            None => text.to_owned(),
        }
    }
}

fn right_of(row: &Row) -> String {
    let place = row.place.as_ref().map(Place::to_string).unwrap_or_default();
    match (place.is_empty(), row.outcome.is_empty()) {
        (true, _) => row.outcome.clone(),
        (false, true) => place,
        (false, false) => format!("{place}  {}", row.outcome),
    }
}

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";

fn status_colour(status: u16) -> &'static str {
    match status {
        100..=299 => "\x1b[1;32m",
        300..=399 => "\x1b[1;36m",
        _ => "\x1b[1;31m",
    }
}

/// A text without control characters: a client or a file must not control the terminal.
pub fn printable(text: &str) -> String {
    let is_plain = |letter: char| !letter.is_control();
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    text.chars()
        .map(|letter| {
            if is_plain(letter) { letter.to_string() } else { letter.escape_default().to_string() }
        })
        .collect()
}
