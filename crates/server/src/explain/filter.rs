//! An output filter that records the effect of another.

use pcre::Later;

use super::state::State;
use super::{Begun, Event, Kind};
use crate::api::filter::{Beginning, OutputFilter};
use crate::request::Request;
use crate::request::body::Body;

/// The name of filters among measured phases.
const FILTERS: &str = "filters";

/// Wraps each filter of a request in a recording one.
pub fn record_all(request: &mut Request) {
    for attached in &mut request.response.filters {
        let name = attached.name.to_string();
        let filter = std::mem::replace(&mut attached.filter, Box::new(Nothing));
        attached.filter = Box::new(Recorded { name, filter, before: None, events: Vec::new() });
    }
}

/// The module's `FILE` in the path of a filter's type, or the core's.
fn owner(type_name: &str) -> String {
    let module = type_name.split("::").find(|part| part.starts_with("mod_"));
    format!("{}.c", module.unwrap_or("core"))
}

struct Recorded {
    name: String,
    filter: Box<dyn OutputFilter>,
    /// The request before the filter.
    before: Option<State>,
    /// What the filter did before it was applied.
    events: Vec<Event>,
}

impl OutputFilter for Recorded {
    fn prepare(&mut self, request: &mut Request) -> Result<(), Later> {
        let recorder = request.engine.recorder.clone();
        if let Some(recorder) = recorder.as_ref().filter(|recorder| recorder.is_measuring()) {
            let _running = recorder.measure(FILTERS);
            return self.filter.prepare(request);
        }
        let before = self.before.get_or_insert_with(|| State::of(request));
        let begun = recorder.map(|recorder| recorder.begin(Event::new(Kind::Filter, "")));
        self.filter.prepare(request)?;
        self.events =
            begun.and_then(Begun::into_event).map(|event| event.events).unwrap_or_default();
        self.events.extend(before.changes(request).unwrap_or_default());
        Ok(())
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        self.filter.begin(request)
    }

    fn looks_at(&self, request: &Request) -> usize {
        self.filter.looks_at(request)
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        let Some(recorder) = request.engine.recorder.clone() else {
            return self.filter.apply(request, body);
        };
        if recorder.is_measuring() {
            let _running = recorder.measure(FILTERS);
            return self.filter.apply(request, body);
        }
        let owner = owner(self.filter.type_name());
        let event = Event::new(Kind::Filter, self.name).with("module", owner);
        let begun = recorder.begin(Event { events: self.events, ..event });
        let (before, length) = (State::of(request), body.length());
        let made = self.filter.apply(request, body);
        let changes = before.changes(request).unwrap_or_default();
        let is_same = made.length() == length && changes.is_empty();
        changes.into_iter().for_each(|change| recorder.add(change));
        begun.end(|event| {
            let is_same = is_same && event.events.is_empty();
            event.outcome = if is_same { "no change" } else { "changed" }.to_owned();
        });
        made
    }

    fn is_pure(&self) -> bool {
        self.filter.is_pure()
    }
}

/// A placeholder while a filter is being wrapped.
struct Nothing;

impl OutputFilter for Nothing {
    fn apply(self: Box<Self>, _: &mut Request, body: Body) -> Body {
        body
    }
}
