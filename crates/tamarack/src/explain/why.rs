//! `--why`: what is responsible for one thing.

use std::fmt::Write as _;

use server::explain::{Event, Kind};
use server::registry::Registry;

use super::effective::Line;
use super::headers::{Field, module_name};
use super::places::Places;
use super::report::{Report, place};

/// Shows what is responsible for the status, a field of the response, or the value of a directive.
///
/// # Errors
/// The report has none of that name.
pub fn write(
    report: &Report,
    places: &Places,
    registry: &Registry,
    name: &str,
) -> Result<String, String> {
    if name.eq_ignore_ascii_case("status") {
        return Ok(status(report, places));
    }
    let fields = report.fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let mut out = String::new();
    for field in fields {
        let _ = write!(out, "{}: {}\n    set by {}", field.name, field.value, field.module);
        if let Some(place) = &field.place {
            let _ = write!(out, ", {place}");
        }
        out.push('\n');
        for line in type_lines(report, field) {
            let _ = writeln!(out, "    {} {}  {}", line.name, line.args, line.place);
        }
    }
    let lines = report.lines.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
    let lines: Vec<_> = lines.collect();
    for (at, line) in lines.iter().enumerate() {
        let is_last = at + 1 == lines.len();
        let note = if is_last { "  ← applied last" } else { "" };
        let _ = writeln!(out, "{} {}\n    {}{note}", line.name, line.args, line.place);
    }
    if out.is_empty() {
        out = missing_field(report, places, name);
    }
    if let Some(row) = registry.row(name).filter(|_| out.is_empty()) {
        out = format!("no line that applies to this request has {}\n", row.name);
    }
    if out.is_empty() {
        return Err(format!(
            "the response has no field '{name}', and no line mentions it; --all shows the \
             directives that apply"
        ));
    }
    Ok(out)
}

/// The lines that give a file its type, for the field that contains it.
fn type_lines<'r>(report: &'r Report, field: &'r Field) -> impl Iterator<Item = &'r Line> {
    const NAMES: [&str; 4] = ["AddType", "ForceType", "AddCharset", "AddDefaultCharset"];
    let parts: Vec<&str> = field.value.split("; charset=").collect();
    let is_type = field.name.eq_ignore_ascii_case("content-type");
    let is_one = move |line: &&Line| {
        let is_named = NAMES.iter().any(|name| line.name.eq_ignore_ascii_case(name));
        let mut words = line.args.split_ascii_whitespace();
        is_type && is_named && words.any(|word| parts.contains(&word))
    };
    report.lines.iter().filter(is_one)
}

/// The filters and directives that could have set a field that the response does not have.
fn missing_field(report: &Report, places: &Places, name: &str) -> String {
    let mut out = String::new();
    if name.eq_ignore_ascii_case("content-encoding") {
        out = filters(report);
    }
    let mentions = |args: &str| mentions(args, name);
    let mut applied = Vec::new();
    report.event.each(&mut |event| {
        let is_it = || event.name.split(", ").any(|own| own.eq_ignore_ascii_case(name));
        if event.kind == Kind::Directive && is_it() {
            applied.extend(place(places, event));
        }
    });
    for line in report.lines.iter().filter(|line| mentions(&line.args)) {
        let args = line.args.to_ascii_lowercase();
        let is_plain_header = line.name.eq_ignore_ascii_case("Header") && !args.contains("always");
        let why = match applied.contains(&line.place) {
            true if args.contains("unset") => "removed it",
            true => "set it, and a later line removed it",
            false if is_plain_header && report.status >= 400 => {
                "no effect: without 'always' it does not apply to errors"
            }
            false => "no effect",
        };
        let _ = writeln!(out, "    {} {}  {}: {why}", line.name, line.args, line.place);
    }
    for (one, place) in places.all() {
        let line = Line { name: one.name.clone(), args: one.args.clone(), place };
        if one.inside.is_none() && mentions(&one.args) && !report.lines.contains(&line) {
            let why = "does not apply to this request";
            let _ = writeln!(out, "    {} {}  {}: {why}", line.name, line.args, line.place);
        }
    }
    match out.is_empty() {
        true => out,
        false => format!("the response has no {name}\n{out}"),
    }
}

/// Whether arguments have a word: a field's name, such as `X-A`.
fn mentions(args: &str, name: &str) -> bool {
    let is_end = |letter: char| !letter.is_ascii_alphanumeric() && !matches!(letter, '-' | '_');
    args.split(is_end).any(|word| word.eq_ignore_ascii_case(name))
}

/// The type of the response, its filters, and the lines that could have added others.
fn filters(report: &Report) -> String {
    let media_type = report.media_type.as_deref().unwrap_or("none");
    let mut out = format!("the type is {media_type}\n");
    report.event.each(&mut |event| {
        if event.kind == Kind::Filter {
            let _ = writeln!(out, "    filter {}: {}", event.name, event.outcome);
        }
    });
    let adds = |line: &&Line| line.name.starts_with("AddOutputFilter");
    for line in report.lines.iter().filter(adds) {
        let _ = writeln!(out, "    {} {}  {}", line.name, line.args, line.place);
    }
    out
}

/// The hook that decided the status, with the directives and log lines in it.
fn status(report: &Report, places: &Places) -> String {
    let mut out = format!("{} {}\n", report.status, report.phrase);
    let mut deciding: Option<&Event> = None;
    report.event.each(&mut |event| {
        let decides = event.outcome.parse::<u16>().is_ok() || event.outcome == "done";
        let is_handler = event.fact("phase") == Some("handler") && event.outcome == "ok";
        if event.kind == Kind::Hook && (decides || is_handler) {
            deciding = Some(event);
        }
    });
    let Some(hook) = deciding else { return out };
    let phase = hook.fact("phase").unwrap_or_default();
    let _ = writeln!(out, "    by {} in {phase}", module_name(&hook.name));
    reasons(hook, 2, places, &mut out);
    let mut has_log = false;
    hook.each(&mut |event| has_log |= event.kind == Kind::Log);
    if matches!(report.status, 401 | 407) && phase == "check_user_id" && !has_log {
        out.push_str("    the client sent no credentials; --user NAME treats it as that user\n");
    }
    if report.status == 413 {
        out.push_str(&body_limit(report));
    }
    if report.status == 404 && phase == "handler" && !has_log {
        let is_file = |event: &&Event| event.kind == Kind::Change && event.name == "file";
        let hooks = report.event.events.iter().filter(|event| event.kind == Kind::Hook);
        let file = hooks.flat_map(|hook| &hook.events).rfind(is_file);
        if let Some(file) = file {
            let _ = writeln!(out, "    {} does not exist", file.outcome);
        }
    }
    out
}

/// The line with the lowest limit of the request body.
fn body_limit(report: &Report) -> String {
    const NAMES: [&str; 2] = ["LimitRequestBody", "KeptBodySize"];
    let limit = |line: &&Line| line.args.trim().parse::<u64>().ok().filter(|limit| *limit > 0);
    let last = |name: &&str| {
        report
            .lines
            .iter()
            .rfind(|line| line.name.eq_ignore_ascii_case(name))
            .filter(|line| limit(line).is_some())
    };
    match NAMES.iter().filter_map(last).min_by_key(limit) {
        Some(line) => format!("    {} {}  {}\n", line.name, line.args, line.place),
        None => "    the body is longer than the default of LimitRequestBody\n".to_owned(),
    }
}

/// The directives and log lines in an event, each inside those that contain it.
fn reasons(of: &Event, depth: usize, places: &Places, out: &mut String) {
    let indent = "  ".repeat(depth);
    for event in &of.events {
        let is_reason = matches!(event.kind, Kind::Require | Kind::Directive | Kind::Rule);
        let is_shown = is_reason && event.outcome != "no match";
        if is_shown {
            let directive = event.span.and_then(|span| places.directive(span));
            let text = directive.map(|one| format!("{} {}", one.name, one.args));
            let text = text.unwrap_or_else(|| event.name.clone());
            let place = place(places, event).map(|place| format!("  {place}")).unwrap_or_default();
            let line = format!("{indent}{text}{place}  {}", event.outcome);
            let _ = writeln!(out, "{}", line.trim_end());
        } else if event.kind == Kind::Log {
            let number = event.fact("number").filter(|number| !number.is_empty());
            let number = number.map(|number| format!("{number}: ")).unwrap_or_default();
            let _ = writeln!(out, "{indent}log: {number}{}", event.name);
        } else if event.outcome == "not asked" {
            let _ = writeln!(out, "{indent}{}: not asked", event.name);
        }
        reasons(event, depth + usize::from(is_shown), places, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_mentioned() {
        for (args, expected) in [
            ("set A 1", true),
            ("set \"a\" 1", true),
            ("always edit A: ^x y", true),
            ("www-data", false),
            ("set X-A 1", false),
            ("set A-X 1", false),
            ("%{A}i", true),
        ] {
            assert_eq!(mentions(args, "A"), expected, "{args}");
        }
    }
}
