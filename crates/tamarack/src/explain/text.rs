//! A report as text: at most 100 columns, colours only on a terminal.

use std::fmt::Write as _;

use super::apache::Deviation;
use super::cost;
use super::diff::{self, Difference};
use super::effective::{Line, Winner};
use super::places::{Place, Places};
use super::report::Report;
use super::rows::{Group, Row, Writer};
use crate::lint::Severity;

/// The widest line, in characters.
pub const WIDTH: usize = 100;
/// The column in which places begin, if there is room.
const PLACE_COLUMN: usize = 58;
/// The default of `LimitInternalRecursion`.
const REDIRECTS_LIMIT: &str = "10";
/// The heading of phases without a hook.
const NOTHING_CONFIGURED: &str = "nothing configured";
/// The end of a verdict that depends on what was not asked.
const UNCERTAIN: &str = "  (uncertain: something was not asked)";
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
    /// Whether to show all directives that apply.
    pub all: bool,
    /// Whether to show differences from Apache httpd.
    pub as_apache: bool,
}

/// Writes a report.
pub fn write(report: &Report, places: &Places, style: Style) -> String {
    let mut page = Page { out: String::new(), colour: style.colour };
    page.verdict(report, style.quiet);
    if style.quiet {
        return page.out;
    }
    let mut groups = groups(report, places, style);
    if let Some(cost) = &report.cost {
        groups.iter_mut().for_each(|group| group.about = cost::time_of(group, cost));
        groups.push(cost::group(report, cost));
    }
    groups.extend(hints(report, places));
    let last = groups.len().saturating_sub(1);
    for (at, group) in groups.iter().enumerate() {
        page.group(group, at == last);
    }
    page.out
}

fn groups(report: &Report, places: &Places, style: Style) -> Vec<Group> {
    let verbose = style.verbose;
    let is_limit = |line: &&Line| line.name.eq_ignore_ascii_case("LimitInternalRecursion");
    let limit = report.lines.iter().rfind(is_limit);
    let limit = limit.and_then(|line| line.args.split_ascii_whitespace().next());
    let redirects_limit = limit.unwrap_or(REDIRECTS_LIMIT);
    let writer = Writer { places, verbose, redirects: 0, redirects_limit };
    let mut groups = writer.groups(&report.event);
    groups.extend(winners(report, style));
    groups.extend(deviations(report).filter(|_| style.as_apache));
    groups.push(fields(report));
    groups.extend(idle(report).filter(|_| verbose));
    groups
}

/// The rows of a report with their headings, the verdict first; the phases without a hook are left
/// out.
pub fn lines(report: &Report, places: &Places) -> Vec<diff::Line> {
    let target = report.location.as_deref().or(report.file.as_deref()).unwrap_or_default();
    let text = format!("{} {}  {target}", report.status, report.phrase);
    let verdict = Row { text, ..Row::default() };
    let of_group = |group: Group| {
        let name = group.name;
        group.rows.into_iter().map(move |row| (name.clone(), row))
    };
    let style = Style { verbose: true, ..Style::default() };
    let mut groups = groups(report, places, style);
    groups.retain(|group| group.name != NOTHING_CONFIGURED);
    let rest = groups.into_iter().flat_map(of_group);
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

/// The directives that several places set, or all.
fn winners(report: &Report, style: Style) -> Option<Group> {
    let row = |winner: &Winner| {
        let over: Vec<String> = winner.over.iter().map(|(place, _)| place.to_string()).collect();
        let over = match over.as_slice() {
            [] => String::new(),
            [first, rest @ ..] if !style.verbose && rest.len() > 1 => {
                format!("over {first} and {} others", rest.len())
            }
            all => format!("over {}", all.join(", ")),
        };
        let (label, text) = (winner.name.clone(), winner.value.clone());
        Row { depth: 0, label, text, place: Some(winner.place.clone()), outcome: over }
    };
    let shown = report.winners.iter().filter(|winner| style.all || !winner.over.is_empty());
    let rows: Vec<Row> = shown.map(row).collect();
    let name = if style.all { "directives" } else { "who won" };
    (!rows.is_empty()).then(|| Group { name: name.to_owned(), rows, ..Group::default() })
}

fn deviations(report: &Report) -> impl Iterator<Item = Group> {
    let row = |one: &Deviation| Row {
        text: one.text.clone(),
        place: one.place.clone(),
        ..Row::default()
    };
    let mut rows: Vec<Row> = report.deviations.iter().map(row).collect();
    if rows.is_empty() {
        let text = "nothing that concerns this request; docs/refused.md lists all differences";
        rows.push(Row { text: text.to_owned(), ..Row::default() });
    }
    let name = "differences from Apache httpd".to_owned();
    std::iter::once(Group { name, rows, ..Group::default() })
}

fn hints(report: &Report, places: &Places) -> Option<Group> {
    let mut rows = Vec::new();
    for one in &report.hints {
        let label = if one.severity == Severity::Severe { "severe" } else { "hint" };
        let place = one.span.and_then(|span| places.of(span));
        let (label, text) = (label.to_owned(), one.message.clone());
        rows.push(Row { label, text, place, ..Row::default() });
        let (label, text) = ("remedy".to_owned(), one.remedy.clone());
        rows.push(Row { depth: 1, label, text, ..Row::default() });
    }
    let name = "hints".to_owned();
    (!rows.is_empty()).then(|| Group { name, rows, ..Group::default() })
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
        Group { name: NOTHING_CONFIGURED.to_owned(), about: String::new(), rows: vec![row] };
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
                // Before the walk has reached the file, nothing is known of it.
                "does not exist" if report.status != 404 => printable(file),
                found => format!("{} ({found})", printable(file)),
            },
            (None, None) => String::new(),
        };
        let line = format!("{status} {}  {}", report.phrase, printable(&target));
        let doubt = if report.is_uncertain { UNCERTAIN } else { "" };
        let _ = writeln!(self.out, "{}{doubt}", line.trim_end());
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
        if let Some(place) = &report.unasked {
            let text = format!("would connect to {}: its response is not known", printable(place));
            self.row("", &Row { label: "not asked".into(), text, ..Row::default() });
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
        for row in protocol(report) {
            self.row("", &row);
        }
        let cached = match &report.cached {
            Ok(()) => "yes".to_owned(),
            Err(why) => format!("no: {why}"),
        };
        self.row("", &Row { label: "cached".into(), text: cached, ..Row::default() });
    }

    fn group(&mut self, group: &Group, is_last: bool) {
        let (branch, stem) = if is_last { ("└ ", "    ") } else { ("├ ", "│   ") };
        let name = self.painted(BOLD, &group.name);
        let pad = LABEL.saturating_sub(group.name.chars().count()) + 3;
        let line = match group.about.as_str() {
            "" => format!("{branch}{name}"),
            about => format!("{branch}{name}{:pad$}{}", "", self.painted(DIM, about)),
        };
        let _ = writeln!(self.out, "{line}");
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

/// What HTTP/2 adds to a response.
fn protocol(report: &Report) -> Vec<Row> {
    let Some(http2) = &report.http2 else { return Vec::new() };
    let row = |label: &str, text: String| Row { label: label.to_owned(), text, ..Row::default() };
    let over = if http2.is_tls { "over TLS" } else { "in clear" };
    let mut rows = vec![row("protocol", format!("HTTP/2 {over}"))];
    if let Some(first) = rows.first_mut() {
        first.place.clone_from(&http2.place);
    }
    let sent = if http2.sends_hints { "" } else { "  not sent: H2EarlyHints is off" };
    for hint in &http2.hints {
        rows.push(row("early hint", format!("{hint}{sent}")));
    }
    if !http2.pushes.is_empty() {
        let targets = http2.pushes.join(", ");
        rows.push(row("pushed", format!("{targets}  if the client accepts it")));
    }
    rows
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
