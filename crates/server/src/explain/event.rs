//! An event of a recording.

use conf::Span;

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request: the client's, or one that replaces it (an internal redirect).
    Request,
    /// A subrequest, such as for an index file.
    Subrequest,
    /// A hook in its phase.
    Hook,
    /// An output filter.
    Filter,
    /// A walk through the sections.
    Walk,
    /// A section, `.htaccess` files included.
    Section,
    /// An `.htaccess` file that does not exist or is not read.
    NoHtaccess,
    /// A directive that had an effect.
    Directive,
    /// A `RewriteRule`.
    Rule,
    /// A `RewriteCond`.
    Condition,
    /// A rule of authorisation.
    Require,
    /// A property of the request that a hook has changed.
    Change,
    /// A line for the error log.
    Log,
    /// A module's note.
    Note,
}

impl Kind {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Request => "request",
            Kind::Subrequest => "subrequest",
            Kind::Hook => "hook",
            Kind::Filter => "filter",
            Kind::Walk => "walk",
            Kind::Section => "section",
            Kind::NoHtaccess => "no-htaccess",
            Kind::Directive => "directive",
            Kind::Rule => "rule",
            Kind::Condition => "condition",
            Kind::Require => "require",
            Kind::Change => "change",
            Kind::Log => "log",
            Kind::Note => "note",
        }
    }
}

/// The property with the values of a field.
const VALUES: &str = "values";

/// The properties that are not for people, but for the program.
pub const HIDDEN: [&str; 4] = ["id", "table", "replaces", VALUES];

/// An event, with the events inside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: Kind,
    /// The subject.
    pub name: String,
    /// The responsible directive.
    pub span: Option<Span>,
    /// The outcome.
    pub outcome: String,
    /// Further properties.
    pub facts: Vec<(&'static str, String)>,
    /// The events inside it.
    pub events: Vec<Event>,
}

impl Event {
    /// Returns an event without an outcome.
    pub fn new(kind: Kind, name: impl Into<String>) -> Event {
        let (outcome, facts, events) = (String::new(), Vec::new(), Vec::new());
        Event { kind, name: name.into(), span: None, outcome, facts, events }
    }

    /// Sets the directive; the default span stands for none.
    #[must_use]
    pub fn at(mut self, span: Span) -> Event {
        self.span = Some(span).filter(|span| *span != Span::default());
        self
    }

    /// Sets the outcome.
    #[must_use]
    pub fn came_to(mut self, outcome: impl Into<String>) -> Event {
        self.outcome = outcome.into();
        self
    }

    /// Adds a property.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Event {
        self.facts.push((name, value.into()));
        self
    }

    /// Adds the values of a field, each on a line.
    #[must_use]
    pub(super) fn with_values<'v>(self, values: impl Iterator<Item = &'v [u8]>) -> Event {
        let lines: String = values.map(|value| super::state::shown(value) + "\n").collect();
        self.with(VALUES, lines)
    }

    /// The values of a field, if the event has them.
    pub fn values(&self) -> Option<Vec<&str>> {
        Some(self.fact(VALUES)?.lines().collect())
    }

    /// A property.
    pub fn fact(&self, name: &str) -> Option<&str> {
        self.facts.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The memory that it takes without the events inside it, roughly, in bytes.
    pub(super) fn size(&self) -> usize {
        const OWN: usize = 256;
        let facts: usize = self.facts.iter().map(|(_, value)| OWN / 4 + value.len()).sum();
        OWN + self.name.len() + self.outcome.len() + facts
    }

    /// Calls `see` with this event and each event inside it, in order.
    pub fn each<'s>(&'s self, see: &mut impl FnMut(&'s Event)) {
        see(self);
        for event in &self.events {
            event.each(see);
        }
    }
}
