//! The rows of a report's text: how each event is shown, and which ones are folded.

use server::explain::{Event, Kind};

use super::headers::module_name;
use super::places::{Place, Places};
use super::report::{is_dull, place};

/// The number of sections of a walk that are shown although they did not match.
const NO_MATCH_SHOWN: usize = 4;

/// The number of rules in succession that are shown although they do not match.
const RULES_SHOWN: usize = 12;

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The indentation in events.
    pub depth: usize,
    /// The label.
    pub label: String,
    /// The text.
    pub text: String,
    /// The directive's place.
    pub place: Option<Place>,
    /// The outcome.
    pub outcome: String,
}

/// A heading with its rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// The heading.
    pub name: String,
    /// The text after it.
    pub about: String,
    /// The rows.
    pub rows: Vec<Row>,
}

/// The context in which rows are made.
#[derive(Clone, Copy)]
pub struct Writer<'p> {
    /// The places of all directives.
    pub places: &'p Places,
    /// Whether to unfold everything.
    pub verbose: bool,
    /// The number of internal redirects that led here.
    pub redirects: usize,
    /// The most that there may be (`LimitInternalRecursion`).
    pub redirects_limit: &'p str,
}

impl Row {
    fn new(depth: usize, label: impl Into<String>, text: impl Into<String>) -> Row {
        Row { depth, label: label.into(), text: text.into(), ..Row::default() }
    }

    fn came_to(self, outcome: &str) -> Row {
        Row { outcome: outcome.to_owned(), ..self }
    }
}

impl Writer<'_> {
    /// The events of a request by their stage, in order.
    pub fn groups(self, request: &Event) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut shown: Vec<&Event> = Vec::new();
        for event in &request.events {
            let stage = stage_of(event);
            if event.kind == Kind::Walk {
                // The walks before the name is known run several times.
                if shown.contains(&event) {
                    continue;
                }
                shown.push(event);
            }
            let rows = self.rows(event, 0);
            if rows.is_empty() {
                continue;
            }
            let stage = stage.or_else(|| groups.last().map(|group| stage_named(&group.name)));
            let stage = stage.unwrap_or("name");
            match groups.last_mut().filter(|last| last.name == stage) {
                Some(last) => last.rows.extend(rows),
                None => groups.push(Group { name: stage.to_owned(), rows, ..Group::default() }),
            }
        }
        groups
    }

    fn rows(self, event: &Event, depth: usize) -> Vec<Row> {
        if !self.verbose && is_dull(event) {
            return Vec::new();
        }
        match event.kind {
            Kind::Hook => self.hook(event, depth),
            Kind::Walk => self.walk(event, depth),
            Kind::Request => self.redirect(event, depth),
            Kind::Subrequest => self.subrequest(event, depth),
            _ => self.plain(event, depth),
        }
    }

    fn inside(self, event: &Event, depth: usize) -> Vec<Row> {
        let is_shown = |inner: &&Event| self.verbose || !is_dull(inner);
        let all: Vec<&Event> = event.events.iter().filter(is_shown).collect();
        let is_miss = |inner: &&&Event| inner.kind == Kind::Rule && inner.outcome == "no match";
        let (mut rest, mut rows) = (all.as_slice(), Vec::new());
        while !rest.is_empty() {
            let misses = rest.iter().take_while(is_miss).count();
            let (now, later) = rest.split_at(misses.max(1));
            match now {
                [first, .., last] if !self.verbose && misses > RULES_SHOWN => {
                    let end = place(self.places, last).map(|end| format!(", up to {end}"));
                    let text = format!("{misses} rules{}", end.unwrap_or_default());
                    let place = place(self.places, first);
                    rows.push(Row { place, ..Row::new(depth, "…", text).came_to("no match") });
                }
                now => rows.extend(now.iter().flat_map(|inner| self.rows(inner, depth))),
            }
            rest = later;
        }
        rows
    }

    fn hook(self, event: &Event, depth: usize) -> Vec<Row> {
        let is_storage = event.fact("phase") == Some("map_to_storage") && event.name == "core.c";
        if is_storage && !self.verbose {
            let is_change = |inner: &&Event| inner.kind != Kind::Change;
            let shown = event.events.iter().filter(is_change);
            return shown.flat_map(|inner| self.rows(inner, depth)).collect();
        }
        let outcome = match event.outcome.as_str() {
            "ok" | "declined" if !self.verbose => "",
            outcome => outcome,
        };
        let mut rows = self.inside(event, depth + 1);
        let is_silent = rows.is_empty() && outcome.is_empty();
        if is_silent && !self.verbose {
            return rows;
        }
        let module = module_name(&event.name);
        let phase = event.fact("phase").unwrap_or_default();
        match rows.as_mut_slice() {
            // A hook with one effect takes one line.
            [only] if !self.verbose && outcome.is_empty() && only.depth == depth + 1 => {
                let text = format!("{} {}", only.label, only.text);
                let (place, outcome) = (only.place.take(), std::mem::take(&mut only.outcome));
                vec![Row { place, outcome, ..Row::new(depth, module, text) }]
            }
            _ => {
                rows.insert(0, Row::new(depth, module, phase).came_to(outcome));
                rows
            }
        }
    }

    fn walk(self, event: &Event, depth: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        let misses = event.events.iter().filter(|inner| inner.outcome == "no").count();
        let are_folded = !self.verbose && misses > NO_MATCH_SHOWN;
        for inner in event.events.iter().filter(|inner| inner.kind == Kind::Section) {
            if !(are_folded && inner.outcome == "no") {
                rows.push(self.section(inner, depth));
            }
        }
        if are_folded {
            let text = format!("{misses} others of <{}>", kind_of_walk(&event.name));
            rows.push(Row::new(depth, "…", text).came_to("no"));
        }
        rows.extend(self.no_htaccess(event, depth));
        rows
    }

    fn section(self, event: &Event, depth: usize) -> Row {
        if event.fact("htaccess").is_some() {
            let row = Row::new(depth, ".htaccess", self.places.short(&event.name));
            return row.came_to("read");
        }
        let section = event.span.and_then(|span| self.places.directive(span));
        let (name, args) = section.map_or(("section", event.name.as_str()), |section| {
            (section.name.as_str(), section.args.as_str())
        });
        let text = match event.fact("why").filter(|_| self.verbose) {
            Some(why) => format!("{args}  ({why})"),
            None => args.to_owned(),
        };
        let place = place(self.places, event);
        Row { place, ..Row::new(depth, name, text).came_to(&event.outcome) }
    }

    /// The folders without an `.htaccess`, and those in which none is read.
    fn no_htaccess(self, event: &Event, depth: usize) -> Vec<Row> {
        let named = |outcome: &str| -> Vec<&str> {
            let all = event.events.iter().filter(|inner| inner.kind == Kind::NoHtaccess);
            all.filter(|inner| inner.outcome == outcome).map(|inner| inner.name.as_str()).collect()
        };
        let mut rows = Vec::new();
        let mut add = |folders: &[&str], outcome: &str| {
            let text = match folders {
                [] => return,
                [first, .., last] if !self.verbose => format!("{first} … {last}"),
                all => all.join(" "),
            };
            rows.push(Row::new(depth, ".htaccess", text).came_to(outcome));
        };
        add(&named("not read"), "not read (AllowOverride None)");
        add(&named("none"), "does not exist");
        rows
    }

    fn redirect(self, event: &Event, depth: usize) -> Vec<Row> {
        let inner = Writer { redirects: self.redirects + 1, ..self };
        let count = format!("internal redirect {} of {}", inner.redirects, self.redirects_limit);
        let mut rows = vec![Row::new(depth, "→", event.name.clone()).came_to(&count)];
        for group in inner.groups(event) {
            rows.push(Row::new(depth + 1, group.name, ""));
            let deeper = |row: Row| Row { depth: row.depth + depth + 2, ..row };
            rows.extend(group.rows.into_iter().map(deeper));
        }
        rows
    }

    fn subrequest(self, event: &Event, depth: usize) -> Vec<Row> {
        let mut rows =
            vec![Row::new(depth, "looks up", event.name.clone()).came_to(&event.outcome)];
        let is_refused = event.outcome.parse::<u16>().is_ok_and(|status| status >= 400);
        if self.verbose || is_refused {
            rows.extend(self.inside(event, depth + 1));
        }
        rows
    }

    fn plain(self, event: &Event, depth: usize) -> Vec<Row> {
        let before = || match event.fact("before") {
            Some(before) if self.verbose => format!("  (was {before})"),
            _ => String::new(),
        };
        let row = match event.kind {
            Kind::Change => {
                let value = match (event.fact("removed"), event.fact("name")) {
                    (Some(_), Some(name)) => format!("{name} removed"),
                    (None, Some(name)) => format!("{name}: {}", event.outcome),
                    _ if event.outcome.is_empty() => "none".to_owned(),
                    _ => event.outcome.clone(),
                };
                Row::new(depth, event.name.clone(), format!("{value}{}", before()))
            }
            Kind::Log => {
                let number = event.fact("number").filter(|number| !number.is_empty());
                let number = number.map(|number| format!("{number}: ")).unwrap_or_default();
                let module = event.fact("module").map(module_name).unwrap_or_default();
                let text = format!("[{module}:{}] {number}{}", event.outcome, event.name);
                Row::new(depth, "log", text)
            }
            Kind::Filter => Row::new(depth, "filter", event.name.clone()).came_to(&event.outcome),
            Kind::Condition | Kind::Rule | Kind::Directive => self.directive(event, depth),
            Kind::Require => Row::new(depth, "", event.name.clone()).came_to(&event.outcome),
            _ => Row::new(depth, "", event.name.clone()).came_to(&event.outcome),
        };
        let mut rows = vec![Row { place: place(self.places, event), ..row }];
        rows.extend(self.inside(event, depth + 1));
        rows
    }

    /// A directive as written; a rule and a condition with their input.
    fn directive(self, event: &Event, depth: usize) -> Row {
        let directive = event.span.and_then(|span| self.places.directive(span));
        let args = directive.map(|one| one.args.as_str()).unwrap_or_default();
        let (label, text) = match event.kind {
            Kind::Rule => ("rule", format!("\"{}\"  {args}", event.name)),
            Kind::Condition => ("cond", format!("\"{}\"  {args}", event.name)),
            _ => (directive.map_or("directive", |one| one.name.as_str()), args.to_owned()),
        };
        let text = match event.fact("captures") {
            Some(captures) => format!("{text}  {captures}"),
            None => text,
        };
        Row::new(depth, label, text).came_to(&event.outcome)
    }
}

fn kind_of_walk(name: &str) -> &'static str {
    match name {
        "locations" => "Location",
        "files" => "Files",
        "directories" => "Directory",
        _ => "If",
    }
}

/// The stage of an event; `None` if it belongs to the stage of the event before it.
fn stage_of(event: &Event) -> Option<&'static str> {
    match (event.kind, event.fact("phase")) {
        (Kind::Hook, Some(phase)) => Some(stage_of_phase(phase)),
        (Kind::Filter, _) => Some("filters"),
        (Kind::Request, _) => Some("error document"),
        _ => None,
    }
}

/// The stage of a phase.
pub fn stage_of_phase(phase: &str) -> &'static str {
    match phase {
        "post_read_request" | "quick_handler" | "pre_translate_name" | "translate_name" => "name",
        "map_to_storage" | "post_perdir_config" | "header_parser" => "storage",
        "access_checker" | "access_checker_ex" | "force_authn" | "check_user_id"
        | "auth_checker" => "access",
        "type_checker" => "type",
        "fixups" => "fixups",
        "insert_filter" | "handler" => "handler",
        "filters" => "filters",
        _ => "error page",
    }
}

fn stage_named(name: &str) -> &'static str {
    const STAGES: [&str; 9] = [
        "name",
        "storage",
        "access",
        "type",
        "fixups",
        "handler",
        "error page",
        "filters",
        "error document",
    ];
    STAGES.into_iter().find(|known| *known == name).unwrap_or("name")
}
