//! The properties of a request that hooks change.

use wire::Table;

use super::{Event, Kind};
use crate::files::FileKind;
use crate::request::Request;
use crate::request::body::Body;

/// The properties at a moment.
pub(super) struct State {
    redirects: u16,
    pure: bool,
    /// In a fixed order, by name.
    values: [(&'static str, Option<Vec<u8>>); 14],
    /// Tables: the name of their entries, and the entries.
    tables: [(&'static str, Vec<(Vec<u8>, Vec<u8>)>); 4],
}

impl State {
    /// The state of a request.
    pub fn of(request: &Request) -> State {
        let some = |text: &[u8]| (!text.is_empty()).then(|| text.to_vec());
        let kind = match request.resource.file.kind {
            FileKind::None => None,
            FileKind::Regular => Some(b"file".to_vec()),
            FileKind::Directory => Some(b"directory".to_vec()),
            FileKind::Other => Some(b"neither file nor directory".to_vec()),
        };
        let names = request.response.filters.iter().map(|filter| filter.name.as_bytes().to_vec());
        let filters: Vec<Vec<u8>> = names.collect();
        let languages = request.response.content_languages.join(&b", "[..]);
        let handler = request.handler.as_deref().filter(|_| !request.handler_of_type);
        let status = request.response.status.to_string();
        State {
            redirects: request.depth.redirects,
            pure: request.depends.pure,
            values: [
                ("path", some(&request.resource.uri)),
                ("query", request.own_query().map(<[u8]>::to_vec)),
                ("file", some(&request.resource.filename)),
                ("path info", some(&request.resource.path_info)),
                ("found", kind),
                ("user", request.user.clone()),
                ("handler", handler.map(<[u8]>::to_vec)),
                ("type", request.response.content_type.clone()),
                ("encoding", request.response.content_encoding.clone()),
                ("languages", some(&languages)),
                ("filters", some(&filters.join(&b", "[..]))),
                ("status", Some(status.into_bytes())),
                ("method", Some(request.head.method_name.to_vec())),
                ("body", body(&request.response.body)),
            ],
            tables: [
                ("request header", entries(&request.head.headers_in)),
                ("header", entries(&request.response.headers_out)),
                ("header (always)", entries(&request.response.err_headers_out)),
                ("variable", entries(&request.env)),
            ],
        }
    }

    /// The changes since then, one event per property. `None` if another request has replaced this
    /// one.
    pub fn changes(&self, request: &Request) -> Option<Vec<Event>> {
        let now = State::of(request);
        if now.redirects != self.redirects {
            return None;
        }
        let mut found = Vec::new();
        for ((name, before), (_, after)) in self.values.iter().zip(&now.values) {
            if before != after {
                let value = after.as_deref().map(shown).unwrap_or_default();
                let event = Event::new(Kind::Change, *name).came_to(value);
                found.push(match before {
                    Some(before) => event.with("before", shown(before)),
                    None => event,
                });
            }
        }
        for ((name, before), (_, after)) in self.tables.iter().zip(&now.tables) {
            found.extend(table_changes(name, before, after));
        }
        if self.pure && !now.pure {
            found.push(Event::new(Kind::Change, "cached").came_to("no"));
        }
        Some(found)
    }
}

fn body(body: &Body) -> Option<Vec<u8>> {
    match (body, body.length()) {
        (Body::Empty, _) => None,
        (_, Some(length)) => Some(format!("{length} bytes").into_bytes()),
        (_, None) => Some(b"of unknown length".to_vec()),
    }
}

fn entries(table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    table.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

fn table_changes(
    table: &'static str,
    before: &[(Vec<u8>, Vec<u8>)],
    after: &[(Vec<u8>, Vec<u8>)],
) -> Vec<Event> {
    let values = |all: &[(Vec<u8>, Vec<u8>)], name: &[u8]| -> Vec<Vec<u8>> {
        let of_name = all.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        of_name.map(|(_, value)| value.clone()).collect()
    };
    let mut names: Vec<&[u8]> = Vec::new();
    for (name, _) in before.iter().chain(after) {
        if !names.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            names.push(name);
        }
    }
    let mut found = Vec::new();
    for name in names {
        let (old, new) = (values(before, name), values(after, name));
        if old == new {
            continue;
        }
        let event = Event::new(Kind::Change, table).with("name", shown(name));
        let event = if old.is_empty() { event } else { event.with("before", all_of(&old)) };
        let event = event.with_values(new.iter().map(Vec::as_slice));
        found.push(match new.is_empty() {
            true => event.with("removed", "yes"),
            false => event.came_to(all_of(&new)),
        });
    }
    found
}

fn all_of(values: &[Vec<u8>]) -> String {
    shown(&values.join(&b", "[..]))
}

/// Arbitrary bytes as readable text.
pub(super) fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}
