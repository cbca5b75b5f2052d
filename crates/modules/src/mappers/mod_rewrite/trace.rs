//! The lines of `LogLevel rewrite:trace1` to `trace8`, with Apache's texts.
//!
//! Source: `do_rewritelog`.

use std::fmt;
use std::sync::Arc;

use server::errorlog::Verbatim;
use server::explain::{Begun, Event, Kind};
use server::log::Level;
use server::request::Request;

use super::Rewrite;
use super::condition::Condition;
use super::rule::Rule;

/// Logs lines about one request; determines the level once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trace {
    /// The least urgent level to log; `None` if none of these levels is.
    level: Option<Level>,
    /// Whether the lines of all levels are recorded.
    is_recorded: bool,
    /// Whether only rules that match are recorded.
    is_brief: bool,
}

/// The rounds of a pass that are recorded in full; of later ones, only the last is kept.
pub(super) const ROUNDS_SHOWN: i32 = 8;

/// Rounds that a recording does not show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Folded {
    /// The number of recorded events before them.
    before: usize,
    /// Their number.
    rounds: usize,
}

/// A question to a rule or a condition: a line of the log, and an event of a recording.
#[derive(Clone, Copy)]
pub(super) enum Question<'q> {
    /// Whether a rule's pattern matches a path.
    Rule(&'q Rule, &'q [u8]),
    /// Whether a condition holds for an input, and the answer.
    Condition(&'q Condition, &'q [u8], bool),
}

impl fmt::Display for Question<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Question::Rule(rule, subject) => {
                let (pattern, uri) = (Verbatim::new(rule.regex.pattern()), Verbatim::new(subject));
                write!(f, "applying pattern '{pattern}' to uri '{uri}'")
            }
            Question::Condition(condition, input, holds) => {
                let (input, pattern) = (Verbatim::new(input), Verbatim::new(&condition.pattern));
                let case = if condition.ignores_case { " [NC]" } else { "" };
                let outcome = if *holds { "matched" } else { "not-matched" };
                write!(f, "RewriteCond: input='{input}' pattern='{pattern}'{case} => {outcome}")
            }
        }
    }
}

impl Question<'_> {
    fn event(&self) -> Event {
        let (kind, span, input) = match self {
            Question::Rule(rule, subject) => (Kind::Rule, rule.span, subject),
            Question::Condition(condition, input, _) => (Kind::Condition, condition.span, input),
        };
        let event = Event::new(kind, String::from_utf8_lossy(input)).at(span);
        match self {
            Question::Rule(..) => event,
            Question::Condition(_, _, holds) => {
                event.came_to(if *holds { "true" } else { "false" })
            }
        }
    }
}

impl Trace {
    /// Returns the log for a request.
    pub fn of(request: &Request) -> Trace {
        const LEVELS: [Level; 8] = [
            Level::Trace8,
            Level::Trace7,
            Level::Trace6,
            Level::Trace5,
            Level::Trace4,
            Level::Trace3,
            Level::Trace2,
            Level::Trace1,
        ];
        let (is_recorded, is_brief) = (request.engine.recording().is_some(), false);
        // While the time of a response is measured, its lines are dropped.
        let is_measured = request.engine.recorder.is_some() && !is_recorded;
        if is_measured || !request.logs::<Rewrite>(Level::Trace1) {
            return Trace { level: None, is_recorded, is_brief };
        }
        let level = LEVELS.into_iter().find(|level| request.logs::<Rewrite>(*level));
        Trace { level, is_recorded, is_brief }
    }

    /// Whether each rule is tested on its own, even one that can't match.
    pub fn names_each(self) -> bool {
        (self.is_recorded && !self.is_brief) || self.writes(Level::Trace3)
    }

    /// Whether rules that match are recorded.
    pub fn is_recorded(self) -> bool {
        self.is_recorded
    }

    /// Begins a round that is recorded in brief, and removes the one before if that was, too.
    #[cold]
    pub fn fold(&mut self, request: &Request, folded: Option<Folded>) -> Option<Folded> {
        let recorder = request.engine.recording().filter(|_| self.is_recorded)?;
        (self.level, self.is_brief) = (None, true);
        let Some(Folded { before, rounds }) = folded else {
            return Some(Folded { before: recorder.count(), rounds: 0 });
        };
        let rounds = rounds + 1;
        recorder.keep_first(before);
        let text = match rounds {
            1 => "1 round is not shown".to_owned(),
            _ => format!("{rounds} rounds are not shown"),
        };
        recorder.add(Event::new(Kind::Note, text).with("rounds", rounds.to_string()));
        Some(Folded { before, rounds })
    }

    /// Logs a question.
    pub fn question(
        self,
        request: &Request,
        level: Level,
        directory: Option<&[u8]>,
        asked: Question<'_>,
    ) {
        if self.writes(level) {
            write(request, level, directory, format_args!("{asked}"));
        }
    }

    /// Logs and records the answer to a question about a condition.
    pub fn condition(self, request: &Request, directory: Option<&[u8]>, asked: Question<'_>) {
        self.question(request, Level::Trace4, directory, asked);
        if let Some(recorder) = request.engine.recording().filter(|_| self.is_recorded) {
            recorder.add(asked.event());
        }
    }

    /// Records a rule whose pattern does not match; a server that records nothing may have passed
    /// over it.
    pub fn miss(self, request: &Request, rule: Question<'_>, is_passed_over: bool) {
        if let Some(recorder) = request.engine.recording().filter(|_| self.is_recorded) {
            let event = rule.event().came_to("no match");
            recorder.add(match is_passed_over {
                true => event.with("passed over", "yes"),
                false => event,
            });
        }
    }

    /// Records that the rule before, or the one that is being recorded, skips others.
    pub fn skip(self, request: &Request, count: usize, why: &str) {
        let recorder = request.engine.recording().filter(|_| self.is_recorded && count > 0);
        if let Some(recorder) = recorder {
            let rules = if count == 1 { "rule" } else { "rules" };
            let event = Event::new(Kind::Note, format!("{why}: {count} {rules} skipped"));
            recorder.add(event.with("skipped", count.to_string()));
        }
    }

    /// Begins to record a rule whose pattern matches, with its captures.
    pub fn begin(
        self,
        request: &Request,
        rule: Question<'_>,
        captures: &[String],
    ) -> Option<Begun> {
        let recorder = request.engine.recording().filter(|_| self.is_recorded)?;
        let event = rule.event();
        Some(recorder.begin(match captures {
            [] => event,
            all => event.with("captures", all.join(", ")),
        }))
    }

    /// Whether lines of a level are logged.
    pub fn writes(self, level: Level) -> bool {
        self.level.is_some_and(|least| level <= least)
    }

    /// Logs a line; `directory` if it is about the rules of one.
    #[inline]
    pub fn line(
        self,
        request: &Request,
        level: Level,
        directory: Option<&[u8]>,
        text: fmt::Arguments<'_>,
    ) {
        if self.is_recorded {
            record(request, level, text);
        }
        if self.writes(level) {
            write(request, level, directory, text);
        }
    }
}

#[cold]
fn record(request: &Request, level: Level, text: fmt::Arguments<'_>) {
    let Some(recorder) = request.engine.recording() else { return };
    let note = Event::new(Kind::Note, text.to_string());
    recorder.add(note.with("level", level.name()));
}

#[cold]
fn write(request: &Request, level: Level, directory: Option<&[u8]>, text: fmt::Arguments<'_>) {
    let client = request.useragent_addr.ip().to_canonical();
    let user = match request.user.as_deref() {
        None => Verbatim::new(b"-"),
        Some(b"") => Verbatim::new(b"\"\""),
        Some(name) => Verbatim::new(name),
    };
    let host = Verbatim::new(request.server_name());
    let server = Arc::as_ptr(&request.host);
    let own = std::ptr::from_ref(request);
    let kind = if request.main.is_some() { "subreq" } else { "initial" };
    let mut redirects = 0;
    let mut before = request.prev.as_deref();
    while let Some(request) = before {
        redirects += 1;
        before = request.prev.as_deref();
    }
    let redirects = Shown(redirects > 0, format_args!("/redir#{redirects}"));
    let directory_name = Verbatim::new(directory.unwrap_or_default());
    let directory = Shown(directory.is_some(), format_args!("[perdir {directory_name}] "));
    request.log::<Rewrite>(
        level,
        0,
        format_args!(
            "{client} - {user} [{host}/sid#{server:p}][rid#{own:p}/{kind}{redirects}] \
             {directory}{text}"
        ),
    );
}

/// A text that may be omitted.
struct Shown<'t>(bool, fmt::Arguments<'t>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 { f.write_fmt(self.1) } else { Ok(()) }
    }
}
