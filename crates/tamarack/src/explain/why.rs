//! `--why`: what is responsible for one thing.

use std::fmt::Write as _;

use server::explain::{Event, Kind};

use super::headers::module_name;
use super::places::Places;
use super::report::{Report, place};

/// Shows what is responsible for the status, a field of the response, or the value of a directive.
///
/// # Errors
/// The report has none of that name.
pub fn write(report: &Report, places: &Places, name: &str) -> Result<String, String> {
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
    }
    let lines = report.lines.iter().filter(|line| line.name.eq_ignore_ascii_case(name));
    let lines: Vec<_> = lines.collect();
    for (at, line) in lines.iter().enumerate() {
        let is_last = at + 1 == lines.len();
        let note = if is_last { "  ← applied last" } else { "" };
        let _ = writeln!(out, "{} {}\n    {}{note}", line.name, line.args, line.place);
    }
    if out.is_empty() {
        out = missing_field(report, name);
    }
    if out.is_empty() {
        return Err(format!(
            "'{name}' is neither 'status', nor a field of this response, nor a directive that \
             applies to it"
        ));
    }
    Ok(out)
}

/// The filters and directives that could have set a field that the response does not have.
fn missing_field(report: &Report, name: &str) -> String {
    let mut out = String::new();
    if name.eq_ignore_ascii_case("content-encoding") {
        report.event.each(&mut |event| {
            if event.kind == Kind::Filter {
                let _ = writeln!(out, "    filter {}: {}", event.name, event.outcome);
            }
        });
        let adds = |line: &&super::effective::Line| line.name.starts_with("AddOutputFilter");
        for line in report.lines.iter().filter(adds) {
            let _ = writeln!(out, "    {} {}  {}", line.name, line.args, line.place);
        }
        let media_type = report.media_type.as_deref().unwrap_or("none");
        out.insert_str(0, &format!("the type is {media_type}\n"));
    }
    let names_it = |line: &&super::effective::Line| {
        line.args.to_ascii_lowercase().contains(&name.to_ascii_lowercase())
    };
    for line in report.lines.iter().filter(names_it) {
        let _ = writeln!(out, "    {} {}  {}: no effect", line.name, line.args, line.place);
    }
    match out.is_empty() {
        true => out,
        false => format!("the response has no {name}\n{out}"),
    }
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
    hook.each(&mut |event| {
        let is_reason = matches!(event.kind, Kind::Require | Kind::Directive | Kind::Rule);
        if is_reason && event.outcome != "no match" {
            let directive = event.span.and_then(|span| places.directive(span));
            let text = directive.map(|one| format!("{} {}", one.name, one.args));
            let text = text.unwrap_or_else(|| event.name.clone());
            let place = place(places, event).map(|place| format!("  {place}")).unwrap_or_default();
            let _ = writeln!(out, "    {text}{place}  {}", event.outcome);
        } else if event.kind == Kind::Log {
            let number = event.fact("number").unwrap_or_default();
            let _ = writeln!(out, "    log: {number}: {}", event.name);
        }
    });
    out
}
