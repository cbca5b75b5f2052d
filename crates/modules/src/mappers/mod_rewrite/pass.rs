//! A pass through a set of rules.
//!
//! Source: `apply_rewrite_list`, `apply_rewrite_rule`.

use std::sync::Arc;

use bstr::BStr;
use pcre::Captures;
use server::errorlog::Verbatim;
use server::explain::{Begun, Event, Kind};
use server::log::Level;
use server::matching::{self, Stop};
use server::request::Request;

use super::Rewrite;
use super::expand::{FILLED_BYTES_LIMIT, References, Scope};
use super::rule::Rule;
use super::rule_set::{Candidates, RuleSet};
use super::settings::{Directory, Settings};
use super::trace::{Folded, Question, ROUNDS_SHOWN, Trace};

/// Most matching rules before the loop yields.
const TURN_RULES: u32 = 64;

/// The outcome of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// No rule changed anything.
    Unchanged,
    /// The result is the request's file name.
    Changed {
        /// `NE`: whether a redirect to it is not escaped.
        unescaped: bool,
        /// `PT`: whether it is a path for the following hooks.
        passed_through: bool,
    },
    /// The request ends with this status.
    Status(u16),
}

/// The effect of a rule.
pub(super) enum Applied {
    /// Its conditions did not hold.
    No,
    /// The path is unchanged.
    Kept,
    /// The path was rewritten.
    Rewritten,
    /// The request ends, because the rule's result is unsafe.
    Refused,
}

/// `END` was reached: no further rules run for the request, nor for its internal redirects.
pub(super) struct Ended;

/// A pass at some position in its rules.
pub(super) struct Pass<'r> {
    /// The request.
    pub request: &'r mut Request,
    /// The inputs of templates.
    pub scope: Scope<'r>,
    /// The file name before the first rule that rewrote it.
    pub own_file: Option<Vec<u8>>,
    /// The last rule that rewrote the path.
    pub last: Option<&'r Arc<Rule>>,
    rules: &'r RuleSet,
    /// The rules that the path may match; `None` if it may have changed since.
    candidates: Option<Candidates<'r>>,
    /// The next rule, or the one that has just matched.
    at: usize,
    pub(super) captures: Captures,
    outcome: Outcome,
    rounds: i32,
    folded: Option<Folded>,
    applied: u32,
    /// Header fields that conditions of the current rule depend on.
    pub(super) vary: Vec<Vec<u8>>,
}

impl<'r> Pass<'r> {
    /// Returns a pass through the rules of the host, or of a directory.
    pub fn new(
        request: &'r mut Request,
        settings: &'r Settings,
        directory: Option<&'r Directory>,
    ) -> Pass<'r> {
        let common = directory.map_or(&settings.common, |directory| &directory.common);
        let trace = Trace::of(request);
        let scope = Scope {
            settings,
            directory,
            subject: Vec::new(),
            of_rule: Captures::new(),
            of_condition: References::default(),
            fields: Vec::new(),
            spare: Vec::new(),
            left: FILLED_BYTES_LIMIT,
            trace,
        };
        Pass {
            request,
            scope,
            own_file: None,
            last: None,
            rules: &common.rules,
            candidates: None,
            at: 0,
            captures: Captures::new(),
            outcome: Outcome::Unchanged,
            rounds: 1,
            folded: None,
            applied: 0,
            vary: Vec::new(),
        }
    }

    /// Logs a line about the current rules.
    pub fn line(&self, level: Level, text: std::fmt::Arguments<'_>) {
        self.scope.trace.line(self.request, level, self.scope.path(), text);
    }

    /// Logs a line without the directory of the rules.
    pub fn plain_line(&self, level: Level, text: std::fmt::Arguments<'_>) {
        self.scope.trace.line(self.request, level, None, text);
    }

    /// Advances to the next rule whose pattern matches; returns false at the end.
    ///
    /// # Errors
    /// [`Stop`]; if a match has to be made first, the pass is at its rule.
    pub fn seek(&mut self) -> Result<bool, Stop> {
        let names_each = self.scope.trace.names_each();
        if !names_each && self.candidates.is_none() {
            self.take_subject();
            self.candidates = Some(self.rules.candidates(&self.scope.subject));
        }
        loop {
            if let Some(candidates) = self.candidates {
                self.at = candidates.from(self.at);
            }
            let Some(rule) = self.rules.get(self.at) else { return Ok(false) };
            let is_skipped = self.request.main.is_some()
                && (rule.flags.not_in_subrequests || rule.flags.redirect);
            if !is_skipped {
                if names_each {
                    self.take_subject();
                    self.trace_pattern(rule);
                }
                if self.matches(rule)? {
                    return Ok(true);
                }
                if names_each {
                    self.record_miss(rule);
                }
                self.skip_chain(rule);
            }
            self.at += 1;
        }
    }

    fn record_miss(&self, rule: &Rule) {
        let subject = &self.scope.subject;
        let is_passed_over = self.rules.candidates(subject).from(self.at) != self.at;
        self.scope.trace.miss(self.request, Question::Rule(rule, subject), is_passed_over);
    }

    fn trace_pattern(&self, rule: &Rule) {
        let asked = Question::Rule(rule, &self.scope.subject);
        self.scope.trace.question(self.request, Level::Trace3, self.scope.path(), asked);
    }

    /// Advances to the last rule of a chain.
    fn skip_chain(&mut self, rule: &'r Arc<Rule>) {
        let first = self.at;
        let mut link = Some(rule);
        while link.is_some_and(|rule| rule.flags.chain) {
            self.at += 1;
            link = self.rules.get(self.at);
        }
        self.scope.trace.skip(self.request, self.at - first, "the rest of the chain");
    }

    /// Whether a rule's pattern matches, which is tested before its conditions.
    fn matches(&mut self, rule: &Rule) -> Result<bool, Stop> {
        let captures = Some(&mut self.captures);
        let matched = self.request.matches(&rule.regex, &self.scope.subject, captures)?;
        Ok(matching::certain(matched)? != rule.negated)
    }

    /// Sets the path that rules are matched with: that of the request, or the part below the
    /// directory, with path information.
    fn take_subject(&mut self) {
        let request = &*self.request;
        let mut subject = std::mem::take(&mut self.scope.subject);
        subject.clear();
        subject.extend_from_slice(&request.resource.filename);
        if let Some(directory) = self.scope.path() {
            if !request.resource.path_info.is_empty() {
                subject.extend_from_slice(&request.resource.path_info);
                let (file, info) = (
                    Verbatim::new(&request.resource.filename),
                    Verbatim::new(&request.resource.path_info),
                );
                let line = format_args!("add path info postfix: {file} -> {file}{info}");
                self.line(Level::Trace3, line);
            }
            if subject.starts_with(directory) {
                let (whole, rest) = (Verbatim::new(&subject), subject.get(directory.len()..));
                let rest = Verbatim::new(rest.unwrap_or_default());
                let line = format_args!("strip per-dir prefix: {whole} -> {rest}");
                self.line(Level::Trace3, line);
                subject.drain(..directory.len());
            }
        }
        self.scope.subject = subject;
    }

    /// Runs the rules to the end, from the result of [`Pass::seek`].
    ///
    /// # Errors
    /// The status that ends the request if a match is undecided.
    pub async fn run(&mut self, mut found: Result<bool, Stop>) -> Result<Outcome, u16> {
        loop {
            match found {
                Ok(true) => {}
                Ok(false) => return Ok(self.outcome),
                Err(Stop::Status(status)) => return Err(status),
                Err(Stop::Later) => {
                    matching::decide(self.request).await;
                    found = self.seek();
                    continue;
                }
            }
            let recorded = self.begin_record();
            let applied = self.apply().await;
            if let Some(recorded) = recorded {
                self.end_record(recorded, applied.as_ref());
            }
            if let Some(outcome) = applied? {
                return Ok(outcome);
            }
            // Only a round begins at the first rule.
            if self.at == 0 && self.rounds > ROUNDS_SHOWN {
                self.folded = self.scope.trace.fold(self.request, self.folded);
            }
            self.applied += 1;
            if self.applied.is_multiple_of(TURN_RULES) && !self.request.depth.in_expression {
                rt::after_sockets().await;
            }
            found = self.seek();
        }
    }

    /// Begins to record the matching rule.
    fn begin_record(&self) -> Option<Begun> {
        let rule = self.rules.get(self.at).filter(|_| self.scope.trace.is_recorded())?;
        let subject = &self.scope.subject;
        let group = |number: usize| {
            let text = subject.get(self.captures.range(number)?)?;
            Some(format!("${number} = {}", BStr::new(text)))
        };
        let captures: Vec<String> = match rule.negated {
            true => Vec::new(),
            false => (1..=9).filter_map(group).collect(),
        };
        self.scope.trace.begin(self.request, Question::Rule(rule, subject), &captures)
    }

    fn end_record(&self, recorded: Begun, applied: Result<&Option<Outcome>, &u16>) {
        let file = BStr::new(&self.request.resource.filename).to_string();
        recorded.end(|event| {
            let fails = |inner: &Event| inner.kind == Kind::Condition && inner.outcome == "false";
            let is_effect = |inner: &&Event| inner.fact("skipped").is_none();
            let last = event.events.iter().rfind(is_effect);
            event.outcome = match applied {
                Ok(Some(Outcome::Status(status))) | Err(status) => status.to_string(),
                Ok(None) if last.is_some_and(fails) => "a condition does not hold".to_owned(),
                Ok(_) => "matched".to_owned(),
            };
            event.facts.push(("result", file));
        });
    }

    /// Applies the matching rule and advances to the next; an outcome ends the pass.
    async fn apply(&mut self) -> Result<Option<Outcome>, u16> {
        let rules = self.rules;
        let Some(rule) = rules.get(self.at) else { return Ok(Some(self.outcome)) };
        self.vary.clear();
        let applied = self.act(rule).await?;
        match applied {
            Applied::No => {
                self.skip_chain(rule);
                self.at += 1;
                return Ok(None);
            }
            Applied::Kept => {}
            Applied::Rewritten | Applied::Refused => {
                let output = Verbatim::new(&rule.target.text);
                let line = format_args!("setting lastsub to rule with output {output}");
                self.line(Level::Trace2, line);
                self.last = Some(rule);
                self.candidates = None;
            }
        }
        let limit = 2 * self.request.host.core.head_limits().line_bytes;
        if self.request.resource.filename.len() > limit {
            self.log_about(rule, 0, format_args!("exceeded maximum length ({limit})"));
            return Ok(Some(Outcome::Status(500)));
        }
        if !self.vary.is_empty() {
            let fields = self.vary.join(&b", "[..]);
            self.request.response.headers_out.merge(b"Vary", &fields);
        }
        if rule.flags.ends || matches!(applied, Applied::Refused) {
            self.skip_rest();
            return Ok(Some(Outcome::Status(self.request.response.status)));
        }
        if matches!(applied, Applied::Rewritten) {
            let unescaped = rule.flags.unescaped;
            self.outcome = Outcome::Changed { unescaped, passed_through: false };
        }
        Ok(self.next(rule))
    }

    /// Advances after a rule was applied.
    fn next(&mut self, rule: &'r Arc<Rule>) -> Option<Outcome> {
        let flags = &rule.flags;
        if flags.pass_through {
            let path = Verbatim::new(&self.request.resource.filename);
            let line = format_args!(
                "forcing '{path}' to get passed through to next API URI-to-filename handler"
            );
            self.line(Level::Trace2, line);
            self.skip_rest();
            return Some(Outcome::Changed { unescaped: false, passed_through: true });
        }
        if flags.end {
            let line = "Rule has END flag, no further rewriting for this request";
            self.line(Level::Trace8, format_args!("{line}"));
            self.request.keep(Ended);
            self.skip_rest();
            return Some(self.outcome);
        }
        if flags.proxy || flags.last {
            self.skip_rest();
            return Some(self.outcome);
        }
        if flags.next_round {
            self.rounds = self.rounds.saturating_add(1);
            if self.rounds >= flags.rounds {
                let rounds = flags.rounds;
                let why =
                    format_args!("exceeded maximum number of rounds ({rounds}) via the [N] flag");
                self.log_about(rule, 2596, why);
                return Some(Outcome::Status(500));
            }
            self.at = 0;
            return None;
        }
        let next = self.at.saturating_add(1);
        let skipped = flags.skip.min(self.rules.count_from(next));
        self.scope.trace.skip(self.request, skipped, "S");
        self.at = next.saturating_add(flags.skip);
        None
    }

    /// Records that no rule follows the current one.
    fn skip_rest(&self) {
        let rest = self.rules.count_from(self.at.saturating_add(1));
        self.scope.trace.skip(self.request, rest, "this rule ends the pass");
    }

    fn log_about(&self, rule: &Rule, number: u32, why: std::fmt::Arguments<'_>) {
        let (pattern, uri) =
            (Verbatim::new(rule.regex.pattern()), Verbatim::new(&self.request.resource.uri));
        let text = format_args!("RewriteRule '{pattern}' and URI '{uri}' {why}");
        self.request.log::<Rewrite>(Level::Error, number, text);
    }
}
