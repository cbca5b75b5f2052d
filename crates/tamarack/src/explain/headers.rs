//! The fields of a response, and the module and line that set each.

use std::collections::HashMap;

use conf::Span;
use server::explain::{Event, Kind};

use super::places::{Place, Places};

/// A field of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The name.
    pub name: String,
    /// The value.
    pub value: String,
    /// The module, such as `mod_headers`.
    pub module: String,
    /// The responsible line, if the module reports it.
    pub place: Option<Place>,
}

/// The module and line that set a field last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Origin {
    module: String,
    span: Option<Span>,
}

/// The values of a field in a table, in order, each with its origin.
type Values = Vec<(String, Origin)>;

/// The tables of a response in the order in which they are sent.
const TABLES: [&str; 2] = ["header (always)", "header"];

/// The fields of a response, as they were set.
#[derive(Default)]
struct Origins {
    /// By table, and by name in lower case.
    values: HashMap<(&'static str, String), Values>,
    /// What set any value last, by name in lower case.
    last: HashMap<String, Origin>,
}

/// The fields of a head, in order.
pub fn of(head: &[u8], event: &Event, places: &Places) -> Vec<Field> {
    let mut origins = Origins::default();
    origins.collect(event, "core.c");
    let text = String::from_utf8_lossy(head);
    let lines = text.split("\r\n").skip(1).filter_map(|line| line.split_once(": "));
    lines
        .map(|(name, value)| {
            let origin = origins.take(&name.to_ascii_lowercase(), value);
            let module = if origin.module.is_empty() { "core.c" } else { &origin.module };
            Field {
                name: name.to_owned(),
                value: value.to_owned(),
                module: module_name(module),
                place: origin.span.and_then(|span| places.of(span)),
            }
        })
        .collect()
}

/// A module's name without the extension of its file.
pub fn module_name(file: &str) -> String {
    file.strip_suffix(".c").unwrap_or(file).to_owned()
}

impl Origins {
    fn collect(&mut self, event: &Event, module: &str) {
        let module = match event.kind {
            Kind::Hook => event.name.as_str(),
            Kind::Filter => event.fact("module").unwrap_or("core.c"),
            _ => module,
        };
        for inner in &event.events {
            match (inner.kind, inner.values()) {
                (Kind::Directive, Some(values)) => {
                    let origin = Origin { module: module.to_owned(), span: inner.span };
                    let table = inner.fact("table").unwrap_or_default();
                    let replaces = inner.fact("replaces").is_some();
                    self.change(table, &inner.name, &values, &origin, replaces);
                }
                (Kind::Change, values) => {
                    let table = inner.name.as_str();
                    let name = match table {
                        "header" | "header (always)" => inner.fact("name").unwrap_or_default(),
                        "type" => "content-type",
                        "encoding" => "content-encoding",
                        "languages" => "content-language",
                        _ => continue,
                    };
                    let span = responsible(event, name);
                    let origin = Origin { module: module.to_owned(), span };
                    self.change(table, name, &values.unwrap_or_default(), &origin, false);
                }
                _ => self.collect(inner, module),
            }
        }
    }

    /// Notes that a field has these values now. `origin` set those that it did not have, or all.
    fn change(&mut self, table: &str, name: &str, new: &[&str], origin: &Origin, is_all: bool) {
        let name = name.to_ascii_lowercase();
        let Some(table) = TABLES.into_iter().find(|known| *known == table) else {
            self.last.insert(name, origin.clone());
            return;
        };
        let key = (table, name);
        let old = self.values.remove(&key).unwrap_or_default();
        let values = if is_all { all_of(new, origin) } else { after(&old, new, origin) };
        if is_all || values.iter().any(|(_, by)| by == origin) || !new_is_known(&old, new) {
            self.last.insert(key.1.clone(), origin.clone());
        }
        self.values.insert(key, values);
    }

    /// The origin of a field's next value.
    fn take(&mut self, name: &str, value: &str) -> Origin {
        for table in TABLES {
            let Some(values) = self.values.get_mut(&(table, name.to_owned())) else { continue };
            if let Some(at) = values.iter().position(|(own, _)| own == value) {
                return values.remove(at).1;
            }
        }
        self.last.get(name).cloned().unwrap_or_default()
    }
}

fn all_of(values: &[&str], origin: &Origin) -> Values {
    values.iter().map(|value| ((*value).to_owned(), origin.clone())).collect()
}

fn new_is_known(old: &[(String, Origin)], new: &[&str]) -> bool {
    old.len() == new.len() && old.iter().zip(new).all(|((value, _), new)| value == new)
}

/// The new values of a field: those that it had keep their origins.
fn after(old: &[(String, Origin)], new: &[&str], origin: &Origin) -> Values {
    let is_same = |((value, _), new): &(&(String, Origin), &&str)| value == *new;
    if old.len() == new.len() {
        let kept = old.iter().zip(new).map(|(own, value)| match is_same(&(own, value)) {
            true => own.clone(),
            false => ((*value).to_owned(), origin.clone()),
        });
        return kept.collect();
    }
    let first = old.iter().zip(new).take_while(is_same).count();
    let rest = old.len().min(new.len()) - first;
    let last = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(is_same).count();
    let added = new.get(first..new.len() - last).unwrap_or_default();
    let mut values: Values = old.get(..first).unwrap_or_default().to_vec();
    values.extend(all_of(added, origin));
    values.extend_from_slice(old.get(old.len() - last..).unwrap_or_default());
    values
}

/// The line in an event that set a field, if it is noted without values.
fn responsible(event: &Event, name: &str) -> Option<Span> {
    let is_rule = |one: &Event| {
        let applied = !matches!(one.outcome.as_str(), "no match" | "a condition does not hold");
        one.kind == Kind::Rule && applied && name.eq_ignore_ascii_case("Location")
    };
    let names = |one: &Event| one.name.split(", ").any(|own| own.eq_ignore_ascii_case(name));
    let is_it = |one: &&Event| one.kind == Kind::Directive && names(one) || is_rule(one);
    event.events.iter().rev().find(is_it).and_then(|one| one.span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(module: &str) -> Origin {
        Origin { module: module.to_owned(), span: None }
    }

    #[test]
    fn values_keep_their_origins() {
        let mut origins = Origins::default();
        let mut change = |new: &[&str], module: &str| {
            origins.change("header", "B", new, &by(module), false);
        };
        change(&["1"], "a");
        change(&["1", "2"], "b");
        change(&["1", "2", "4"], "c");
        change(&["1", "3", "4"], "d");
        origins.change("header (always)", "b", &["3"], &by("e"), true);
        for (value, module) in [("1", "a"), ("3", "e"), ("3", "d"), ("4", "c"), ("5", "e")] {
            assert_eq!(origins.take("b", value), by(module), "{value}");
        }
    }

    #[test]
    fn removed_values_leave_the_others() {
        let old = all_of(&["1", "2", "3"], &by("a"));
        assert_eq!(after(&old, &["1", "3"], &by("b")), all_of(&["1", "3"], &by("a")));
        assert!(after(&old, &[], &by("b")).is_empty());
        assert_eq!(after(&old, &["1", "1", "2", "3"], &by("b")).len(), 4);
    }
}
