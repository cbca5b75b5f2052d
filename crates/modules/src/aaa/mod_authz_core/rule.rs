//! Rules, `Require` lines and the containers around them, and their evaluation.
//!
//! Source: `apply_authz_sections`, `format_authz_command` (modules/aaa/mod_authz_core.c).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use conf::Span;
use server::explain::{Begun, Event, Kind as Recorded};
use server::log::Level;
use server::matching::{self, Stop};
use server::request::Request;
use wire::MethodSet;

use super::AuthzCore;
use crate::aaa::provider::{Authz, Requirement};

/// How the results of a container's rules are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Logic {
    /// None may fail.
    And,
    /// One success suffices.
    Or,
}

/// A `Require` line, or a container of rules.
#[derive(Clone)]
pub struct Rule {
    /// The methods it applies to (`<Limit>`).
    pub methods: MethodSet,
    /// `Require not`, `<RequireNone>`
    pub negated: bool,
    /// The kind.
    pub kind: Kind,
}

/// The kind of a rule.
#[derive(Clone)]
pub enum Kind {
    /// `Require`
    Line(Line),
    /// `<RequireAll>` and similar, or several lines without a container.
    Group(Group),
}

/// A `Require` line.
#[derive(Clone)]
pub struct Line {
    /// The provider's name.
    pub provider: String,
    /// The text after it.
    pub arguments: Vec<u8>,
    /// Its position.
    pub span: Span,
    /// The parsed arguments.
    pub requirement: Arc<dyn Requirement>,
}

/// A container.
#[derive(Clone)]
pub struct Group {
    /// How the results are combined.
    pub logic: Logic,
    /// Whether `AuthMerging` created the container.
    pub merged: bool,
    /// Its rules.
    pub rules: Vec<Rule>,
}

impl Rule {
    /// Returns an empty container.
    pub fn group(logic: Logic, negated: bool, merged: bool) -> Rule {
        let group = Group { logic, merged, rules: Vec::new() };
        Rule { methods: MethodSet::EMPTY, negated, kind: Kind::Group(group) }
    }

    /// The container; `None` for a line.
    pub fn as_group(&self) -> Option<&Group> {
        match &self.kind {
            Kind::Group(group) => Some(group),
            Kind::Line(_) => None,
        }
    }

    /// Adds a rule to the container. A container that combines in the same way is dissolved in it.
    pub fn push(&mut self, rule: Rule) {
        let negated = self.negated;
        self.methods = self.methods.union(rule.methods);
        let Kind::Group(group) = &mut self.kind else { return };
        match rule.kind {
            Kind::Group(inner) if !negated && inner.logic == group.logic => {
                group.rules.extend(inner.rules);
            }
            kind => group.rules.push(Rule { kind, ..rule }),
        }
    }

    /// The rule as configuration text, for messages.
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Line(line) => {
                let not = if self.negated { "not " } else { "" };
                let arguments = bstr::BStr::new(&line.arguments);
                format!("Require {not}{} {arguments}", line.provider)
            }
            Kind::Group(group) => {
                let word = match (group.logic, self.negated) {
                    (Logic::And, false) => "All",
                    (Logic::And, true) => "NotAll",
                    (Logic::Or, true) => "None",
                    (Logic::Or, false) => "Any",
                };
                if group.merged {
                    format!("AuthMerging {word}")
                } else {
                    format!("<Require{word}>")
                }
            }
        }
    }

    /// Whether a line in it may have to wait for its result.
    pub fn waits(&self) -> bool {
        match &self.kind {
            Kind::Line(line) => line.requirement.waits(),
            Kind::Group(group) => group.rules.iter().any(Rule::waits),
        }
    }

    /// The result, if it is the same for every request.
    pub fn constant(&self) -> Option<Authz> {
        if self.methods != MethodSet::ALL {
            return None;
        }
        let found = match &self.kind {
            Kind::Line(line) => line.requirement.constant()?,
            Kind::Group(group) => {
                let mut tally = Tally::new(group.logic);
                for rule in &group.rules {
                    if tally.add(rule.constant()?) {
                        break;
                    }
                }
                tally.result
            }
        };
        Some(negate(found, self.negated))
    }

    /// Evaluates at once, for rules that do not wait.
    fn check(&self, request: &mut Request, around: Logic) -> Authz {
        let recorded = self.record(request);
        if !self.methods.contains(request.head.method) {
            return self.other_methods(request, around, recorded);
        }
        let found = match &self.kind {
            Kind::Line(line) => line.requirement.check(request),
            Kind::Group(group) => {
                let mut tally = Tally::new(group.logic);
                for rule in &group.rules {
                    if tally.add(rule.check(request, group.logic)) {
                        break;
                    }
                }
                tally.result
            }
        };
        self.conclude(request, found, recorded)
    }

    /// Begins to record an evaluation.
    fn record(&self, request: &Request) -> Option<Begun> {
        let recorder = request.engine.recording()?;
        let event = Event::new(Recorded::Require, self.text());
        Some(recorder.begin(match &self.kind {
            Kind::Line(line) => event.at(line.span),
            Kind::Group(_) => event,
        }))
    }

    /// Evaluates rules that do not wait.
    ///
    /// # Errors
    /// A match of a regular expression has to be made first.
    pub fn known(&self, request: &mut Request) -> Result<Authz, Stop> {
        match self.check(request, Logic::And) {
            Authz::Later => Err(Stop::Later),
            found => Ok(found),
        }
    }

    /// Evaluates any rules.
    pub async fn decide(&self, request: &mut Request) -> Authz {
        loop {
            match self.wait(request, Logic::And).await {
                Authz::Later => matching::decide(request).await,
                found => return found,
            }
        }
    }

    /// Evaluates, and waits if a line requires it.
    fn wait<'r>(
        &'r self,
        request: &'r mut Request,
        around: Logic,
    ) -> Pin<Box<dyn Future<Output = Authz> + 'r>> {
        Box::pin(async move {
            if !self.waits() || !self.methods.contains(request.head.method) {
                return self.check(request, around);
            }
            let recorded = self.record(request);
            let found = match &self.kind {
                Kind::Line(line) => line.requirement.wait(request).await,
                Kind::Group(group) => {
                    let mut tally = Tally::new(group.logic);
                    for rule in &group.rules {
                        if tally.add(rule.wait(request, group.logic).await) {
                            break;
                        }
                    }
                    tally.result
                }
            };
            self.conclude(request, found, recorded)
        })
    }

    fn other_methods(&self, request: &Request, around: Logic, recorded: Option<Begun>) -> Authz {
        let found = if around == Logic::And { Authz::Granted } else { Authz::Neutral };
        if let Some(recorded) = recorded {
            recorded.end(|event| event.outcome = format!("{}: for other methods", found.name()));
        }
        if request.logs::<AuthzCore>(Level::Debug) {
            let (text, name) = (self.text(), found.name());
            let message = format_args!(
                "authorization result of {text}: {name} (directive limited to other methods)"
            );
            request.log::<AuthzCore>(Level::Debug, 1625, message);
        }
        found
    }

    fn conclude(&self, request: &Request, found: Authz, recorded: Option<Begun>) -> Authz {
        if found == Authz::Later {
            return found;
        }
        let concluded = match found {
            Authz::GeneralError => found,
            found => negate(found, self.negated),
        };
        if let Some(recorded) = recorded {
            recorded.end(|event| event.outcome = concluded.name().to_owned());
        }
        if found == Authz::GeneralError {
            return found;
        }
        let found = concluded;
        if request.logs::<AuthzCore>(Level::Debug) {
            let message = format_args!("authorization result of {}: {}", self.text(), found.name());
            request.log::<AuthzCore>(Level::Debug, 1626, message);
        }
        found
    }
}

/// Negates a result. A denial does not become a grant, but neutral.
fn negate(found: Authz, negated: bool) -> Authz {
    match found {
        found if !negated => found,
        Authz::Granted => Authz::Denied,
        Authz::Denied | Authz::DeniedNoUser => Authz::Neutral,
        other => other,
    }
}

/// The results of a container's rules so far.
struct Tally {
    logic: Logic,
    result: Authz,
}

impl Tally {
    fn new(logic: Logic) -> Tally {
        Tally { logic, result: Authz::Neutral }
    }

    /// Adds a result; returns true if it decides the container. Of two denials, the one that a user
    /// could change takes precedence.
    fn add(&mut self, found: Authz) -> bool {
        match (self.logic, found) {
            (_, Authz::Neutral) => false,
            (_, Authz::GeneralError | Authz::Later)
            | (Logic::And, Authz::Denied)
            | (Logic::Or, Authz::Granted) => {
                self.result = found;
                true
            }
            // An undecided result takes precedence over neutral ones: as a denial it could become a
            // grant in a negated container.
            (_, Authz::Undecided) => {
                self.result = found;
                false
            }
            _ if self.result == Authz::Undecided => false,
            (Logic::And, Authz::DeniedNoUser) => {
                self.result = found;
                false
            }
            (Logic::Or, Authz::DeniedNoUser) if self.result == Authz::Denied => {
                self.result = found;
                false
            }
            _ => {
                if self.result == Authz::Neutral {
                    self.result = found;
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(logic: Logic, answers: &[Authz]) -> Authz {
        let mut tally = Tally::new(logic);
        let _ = answers.iter().any(|answer| tally.add(*answer));
        tally.result
    }

    #[test]
    fn answers_are_combined_as_apache_does() {
        use Authz::{Denied, DeniedNoUser, GeneralError, Granted, Neutral};
        assert_eq!(of(Logic::Or, &[]), Neutral);
        assert_eq!(of(Logic::Or, &[Denied, DeniedNoUser]), DeniedNoUser);
        assert_eq!(of(Logic::Or, &[DeniedNoUser, Denied]), DeniedNoUser);
        assert_eq!(of(Logic::Or, &[Denied, Granted, GeneralError]), Granted);
        assert_eq!(of(Logic::Or, &[Neutral, Denied]), Denied);
        assert_eq!(of(Logic::And, &[Granted, DeniedNoUser]), DeniedNoUser);
        assert_eq!(of(Logic::And, &[DeniedNoUser, Granted]), DeniedNoUser);
        assert_eq!(of(Logic::And, &[DeniedNoUser, Denied, Granted]), Denied);
        assert_eq!(of(Logic::And, &[Granted, Neutral]), Granted);
        assert_eq!(of(Logic::And, &[Neutral, GeneralError, Granted]), GeneralError);
    }

    #[test]
    fn an_undecided_rule_opens_nothing() {
        use Authz::{Denied, DeniedNoUser, Granted, Neutral, Undecided};
        for other in [Neutral, Denied, DeniedNoUser] {
            assert_eq!(of(Logic::Or, &[Undecided, other]), Undecided);
            assert_eq!(of(Logic::Or, &[other, Undecided]), Undecided);
        }
        for other in [Neutral, Granted, DeniedNoUser] {
            assert_eq!(of(Logic::And, &[Undecided, other]), Undecided);
            assert_eq!(of(Logic::And, &[other, Undecided]), Undecided);
        }
        assert_eq!(of(Logic::Or, &[Undecided, Granted]), Granted);
        assert_eq!(of(Logic::And, &[Undecided, Denied]), Denied);
        assert_eq!(negate(Undecided, true), Undecided);
    }

    #[test]
    fn a_negation_grants_nothing() {
        assert_eq!(negate(Authz::Granted, true), Authz::Denied);
        assert_eq!(negate(Authz::DeniedNoUser, true), Authz::Neutral);
        assert_eq!(negate(Authz::Denied, true), Authz::Neutral);
        assert_eq!(negate(Authz::Denied, false), Authz::Denied);
    }
}
