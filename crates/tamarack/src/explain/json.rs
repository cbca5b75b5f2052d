//! A report as one JSON object.

use std::time::Duration;

use regular::looks::Looks;
use serde_json::{Value, json};
use server::explain::{Event, HIDDEN};

use super::cost::Cost;
use super::places::{Place, Places};
use super::report::{Report, place};
use crate::lint::{Finding, Severity};

/// The version of the schema, which increases when a name changes its meaning or is removed.
const SCHEMA: u32 = 1;

/// Writes a report.
pub fn write(report: &Report, places: &Places) -> String {
    let host = &report.host;
    let value = json!({
        "schema": SCHEMA,
        "url": report.url,
        "method": report.method,
        "status": report.status,
        "phrase": report.phrase,
        "location": report.location,
        "file": report.file,
        "found": report.found,
        "type": report.media_type,
        "length": report.length,
        "handler": report.handler,
        "not_asked": report.unasked,
        "uncertain": report.is_uncertain,
        "host": {
            "name": host.name,
            "place": host.place.as_ref().map(of_place),
            "address": host.address,
            "rule": host.rule,
            "others": host.others,
        },
        "http2": report.http2.as_ref().map(|http2| json!({
            "tls": http2.is_tls,
            "place": http2.place.as_ref().map(of_place),
            "early_hints": http2.hints,
            "sends_early_hints": http2.sends_hints,
            "pushed": http2.pushes,
        })),
        "cached": report.cached.is_ok(),
        "not_cached_because": report.cached.as_ref().err(),
        "cost": report.cost.as_ref().map(|made| cost(made, report.looks)),
        "hints": hints(report, places),
        "winners": winners(report),
        "headers": headers(report),
        "idle_phases": report.idle,
        "request": event(&report.event, places),
    });
    format!("{value:#}\n")
}

fn of_place(place: &Place) -> Value {
    json!({ "file": place.file, "line": place.line })
}

fn winners(report: &Report) -> Vec<Value> {
    let over =
        |(place, value): &(Place, String)| json!({ "place": of_place(place), "value": value });
    let winner = |winner: &super::effective::Winner| {
        json!({
            "directive": winner.name,
            "value": winner.value,
            "place": of_place(&winner.place),
            "over": winner.over.iter().map(over).collect::<Vec<_>>(),
        })
    };
    report.winners.iter().filter(|one| !one.over.is_empty()).map(winner).collect()
}

/// Times in nanoseconds.
fn cost(cost: &Cost, looks: Looks) -> Value {
    let phase = |(name, took): &(&str, Duration)| json!({ "phase": name, "ns": nanos(*took) });
    json!({
        "runs": cost.runs,
        "response_ns": nanos(cost.response),
        "phases": cost.phases.iter().map(phase).collect::<Vec<_>>(),
        "file_system": { "stats": looks.stats, "opens": looks.opens },
        "allocations": cost.allocations,
    })
}

fn nanos(took: Duration) -> u64 {
    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX)
}

fn hints(report: &Report, places: &Places) -> Vec<Value> {
    let hint = |one: &Finding| {
        json!({
            "severe": one.severity == Severity::Severe,
            "message": one.message,
            "remedy": one.remedy,
            "place": one.span.and_then(|span| places.of(span)).as_ref().map(of_place),
        })
    };
    report.hints.iter().map(hint).collect()
}

fn headers(report: &Report) -> Vec<Value> {
    let field = |field: &super::headers::Field| {
        json!({
            "name": field.name,
            "value": field.value,
            "module": field.module,
            "place": field.place.as_ref().map(of_place),
        })
    };
    report.fields.iter().map(field).collect()
}

/// An event with the events inside it; empty properties are left out.
fn event(one: &Event, places: &Places) -> Value {
    let mut value = json!({ "kind": one.kind.name(), "name": one.name });
    let Some(object) = value.as_object_mut() else { return value };
    if !one.outcome.is_empty() {
        object.insert("outcome".to_owned(), json!(one.outcome));
    }
    if let Some(place) = place(places, one) {
        object.insert("place".to_owned(), of_place(&place));
    }
    if let Some(directive) = one.span.and_then(|span| places.directive(span)) {
        object.insert(
            "directive".to_owned(),
            json!(format!("{} {}", directive.name, directive.args)),
        );
    }
    let facts = one.facts.iter().filter(|(name, _)| !HIDDEN.contains(name));
    for (name, fact) in facts {
        object.insert(name.replace(' ', "_"), json!(fact));
    }
    if !one.events.is_empty() {
        let inside: Vec<Value> = one.events.iter().map(|inner| event(inner, places)).collect();
        object.insert("events".to_owned(), json!(inside));
    }
    value
}
