//! Regular expressions on requests: on the loop, or on the blocking pool.
//!
//! A short match, as nearly all are, is made at once. One that takes longer than the other clients
//! of the loop should wait is [`Later`]: a function that can wait runs a step that ends with it
//! ([`settle`], [`settled`]). The match is then made on the blocking pool under Apache's limits,
//! its outcome is stored in the request, and the step runs again. So a step either changes nothing
//! before its matches, or records its progress.
//!
//! Beyond those limits a match is undecided, which is logged. The caller determines what that
//! means: if the match only adds something it counts as failed ([`Matched::surely`]); if a section
//! or a rule depends on it the request is a 500 ([`certain`]); access is denied.

use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use messages::Message;
use pcre::{Captures, Later, Matched, Regex, Watch, Why};
use rt::Work;

use crate::api::hooks::{Step, Verdict};
use crate::errorlog::Verbatim;
use crate::log::Level;
use crate::phases::{lookup, walk};
use crate::request::Request;

/// Most matches of a request, including its subrequests, that are made on the pool; others are
/// undecided.
pub const DECISION_LIMIT: usize = 64;

/// The work that the loop does itself for all matches of a request that are not quick; others are
/// made on the pool.
pub const REQUEST_WORK: u64 = 3 * pcre::LOOP_WORK;

/// How long a request waits for all of them together; the others are undecided. A match that
/// reaches Apache's limit at the first place of its subject takes half a second.
pub const DECISION_WAIT: Duration = Duration::from_secs(30);

/// Most bytes of a pattern in the log.
const SHOWN_BYTES: usize = 200;

/// Why a step has no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The request ends with this status.
    Status(u16),
    /// A match has to be made first, or an `.htaccess` read.
    Later,
}

impl From<Later> for Stop {
    fn from(_: Later) -> Stop {
        Stop::Later
    }
}

impl From<u16> for Stop {
    fn from(status: u16) -> Stop {
        Stop::Status(status)
    }
}

/// Whether it matches, if the request depends on that: an undecided match ends it with 500.
///
/// # Errors
/// That status.
pub fn certain(matched: Matched) -> Result<bool, Stop> {
    match matched {
        Matched::Yes => Ok(true),
        Matched::No => Ok(false),
        Matched::Undecided(_) => Err(Stop::Status(500)),
    }
}

/// Runs a hook's step: at once if no match takes long, which costs nothing.
pub fn settle<'r>(
    request: &'r mut Request,
    mut step: impl FnMut(&mut Request) -> Result<Verdict, Stop> + 'r,
) -> Step<'r> {
    match step(request) {
        Ok(verdict) => Step::Ready(verdict),
        Err(Stop::Status(status)) => Step::status(status),
        Err(Stop::Later) => Step::Pending(Box::pin(async move {
            decide(request).await;
            settled(request, step).await.unwrap_or_else(Verdict::Status)
        })),
    }
}

/// Runs a step until no match is missing.
///
/// # Errors
/// The status with which the step ends the request.
#[inline]
pub async fn settled<T>(
    request: &mut Request,
    mut step: impl FnMut(&mut Request) -> Result<T, Stop>,
) -> Result<T, u16> {
    loop {
        match step(request) {
            Ok(value) => return Ok(value),
            Err(Stop::Status(status)) => return Err(status),
            Err(Stop::Later) => decide(request).await,
        }
    }
}

/// Makes the match or the look-up that a step lacks, or reads the file.
pub async fn decide(request: &mut Request) {
    if request.depth.in_expression {
        // Nothing waits for this subrequest: the request that evaluates the expression makes the
        // match or reads the file, and evaluates it again.
        std::future::pending::<()>().await;
    }
    if walk::read_wanted(request).await || lookup::make_wanted(request).await {
        return;
    }
    let Some((wanted, deadline)) = request.matching.take_wanted() else { return };
    let watch = Arc::new(Watch::until(deadline));
    // Also if the client has disconnected and no step will use the outcome.
    let _ends = Ends(watch.clone());
    let job = {
        let wanted = wanted.clone();
        move || {
            let mut captures = Captures::new();
            let matched = wanted.regex.decide(&wanted.subject, Some(&mut captures), &watch);
            (matched, captures)
        }
    };
    let wait = deadline.saturating_duration_since(Instant::now());
    let made = request.engine.handle.blocking().run_within(wait, Work::Match, job).await;
    let (matched, captures) = made.unwrap_or_else(|why| {
        let why = if why == rt::PoolError::TimedOut { Why::Time } else { Why::Busy };
        (Matched::Undecided(why), Captures::new())
    });
    if let Matched::Undecided(why) = matched {
        request.log_undecided(&wanted.regex, &wanted.subject, why);
    }
    request.matching.keep(Decided { wanted, matched, captures });
}

struct Ends(Arc<Watch>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Request {
    /// Whether a pattern matches, and the positions of its groups.
    ///
    /// # Errors
    /// [`Later`] if that takes longer than the loop can wait.
    pub fn matches(
        &self,
        regex: &Regex,
        subject: &[u8],
        mut captures: Option<&mut Captures>,
    ) -> Result<Matched, Later> {
        if let Some(known) = self.matching.find(regex, subject) {
            if let Some(captures) = captures {
                *captures = known.captures;
            }
            return Ok(known.matched);
        }
        match regex.quick(subject, captures.as_deref_mut()) {
            Some(matched) => Ok(matched.into()),
            None => self.match_slowly(regex, subject, captures),
        }
    }

    #[cold]
    fn match_slowly(
        &self,
        regex: &Regex,
        subject: &[u8],
        captures: Option<&mut Captures>,
    ) -> Result<Matched, Later> {
        let spent = self.matching.state().borrow().spent;
        if spent < REQUEST_WORK {
            let (found, work) = regex.count_on_loop(subject, captures);
            self.matching.state().borrow_mut().spent = spent + work;
            if let Ok(matched) = found {
                return Ok(matched.into());
            }
        }
        self.want(regex, subject)
    }

    /// Whether a match has to be made or a file read before a step can continue, including those of
    /// subrequests.
    pub(crate) fn misses_something(&self) -> bool {
        let state = self.matching.0.get();
        walk::wants_to_read(self) || state.is_some_and(|state| state.borrow().wanted.is_some())
    }

    fn want(&self, regex: &Regex, subject: &[u8]) -> Result<Matched, Later> {
        if self.matching.want(regex, subject) {
            return Err(Later);
        }
        // One line suffices: further matches on the same subject are not tried.
        self.log_undecided(regex, subject, Why::Number);
        Ok(Matched::Undecided(Why::Number))
    }

    /// Marks a variable as undecided: a match that sets or unsets it is.
    pub fn leave_undecided(&self, variable: &[u8]) {
        let mut state = self.matching.state().borrow_mut();
        if !state.variables.iter().any(|known| known == variable) {
            state.variables.push(variable.to_vec());
        }
    }

    /// Marks a variable as decided: it was set or unset.
    pub fn make_decided(&self, variable: &[u8]) {
        if let Some(state) = self.matching.0.get() {
            state.borrow_mut().variables.retain(|known| known != variable);
        }
    }

    /// Whether a variable is undecided.
    pub fn is_undecided(&self, variable: &[u8]) -> bool {
        let state = self.matching.0.get();
        state.is_some_and(|state| state.borrow().variables.iter().any(|known| known == variable))
    }

    /// The undecided variables.
    pub(crate) fn undecided_variables(&self) -> Vec<Vec<u8>> {
        self.matching.0.get().map(|state| state.borrow().variables.clone()).unwrap_or_default()
    }

    fn log_undecided(&self, regex: &Regex, subject: &[u8], why: Why) {
        let pattern = regex.pattern();
        let shown = Verbatim::new(pattern.get(..SHOWN_BYTES).unwrap_or(pattern));
        let bytes = subject.len();
        let text = format!(
            "Cannot decide whether the regular expression '{shown}' matches a text of {bytes} \
             bytes: {why}"
        );
        self.log_core(Level::Error, Message::MatchUndecided.number(), &text, None);
    }
}

/// A request's matches that took long; shared with its subrequests. Others are not stored.
#[derive(Default)]
pub struct Matching(OnceCell<Rc<RefCell<State>>>);

#[derive(Default)]
struct State {
    decided: Vec<Decided>,
    wanted: Option<Wanted>,
    /// The time by which all of them must be decided.
    deadline: Option<Instant>,
    /// Undecided variables.
    variables: Vec<Vec<u8>>,
    /// Whether a match was undecided.
    some_undecided: bool,
    /// The loop's work for matches that were not quick.
    spent: u64,
    /// The subject that reached the limit: no further matches are tried on it.
    exhausted: Option<Box<[u8]>>,
}

#[derive(Clone)]
struct Wanted {
    regex: Regex,
    subject: Arc<[u8]>,
}

#[derive(Clone)]
struct Decided {
    wanted: Wanted,
    matched: Matched,
    captures: Captures,
}

impl Matching {
    /// The same for a subrequest.
    pub(crate) fn share(&self) -> Matching {
        Matching(OnceCell::from(self.state().clone()))
    }

    /// The same for an internal redirect. The request before it needs none of those that follow.
    pub(crate) fn hand_down(&self) -> Matching {
        Matching(self.0.clone())
    }

    /// Whether the response depends on limits, and not on the request alone.
    pub fn has_undecided(&self) -> bool {
        self.0.get().is_some_and(|state| {
            let state = state.borrow();
            state.some_undecided || !state.variables.is_empty()
        })
    }

    fn state(&self) -> &Rc<RefCell<State>> {
        self.0.get_or_init(Rc::default)
    }

    fn find(&self, regex: &Regex, subject: &[u8]) -> Option<Decided> {
        let state = self.0.get()?.borrow();
        if state.exhausted.as_deref() == Some(subject) {
            let wanted = Wanted { regex: regex.clone(), subject: subject.into() };
            let matched = Matched::Undecided(Why::Number);
            return Some(Decided { wanted, matched, captures: Captures::new() });
        }
        let is_it = |of: &&Decided| *of.wanted.subject == *subject && of.wanted.regex == *regex;
        state.decided.iter().find(is_it).cloned()
    }

    /// Whether the match may be made.
    fn want(&self, regex: &Regex, subject: &[u8]) -> bool {
        let mut state = self.state().borrow_mut();
        let may = state.decided.len() < DECISION_LIMIT;
        if may {
            state.wanted = Some(Wanted { regex: regex.clone(), subject: subject.into() });
        } else {
            state.some_undecided = true;
            state.exhausted = Some(subject.into());
        }
        may
    }

    fn take_wanted(&self) -> Option<(Wanted, Instant)> {
        let mut state = self.0.get()?.borrow_mut();
        let wanted = state.wanted.take()?;
        let deadline = state.deadline.get_or_insert_with(|| Instant::now() + DECISION_WAIT);
        Some((wanted, *deadline))
    }

    fn keep(&self, decided: Decided) {
        let mut state = self.state().borrow_mut();
        state.some_undecided |= matches!(decided.matched, Matched::Undecided(_));
        state.decided.push(decided);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regex() -> Regex {
        Regex::new(b"^(a+)+$", pcre::Flags::default()).unwrap()
    }

    #[test]
    fn matches_off_the_loop_are_limited() {
        let matching = Matching::default();
        for number in 0..DECISION_LIMIT {
            let subject = [number as u8];
            assert!(matching.want(&regex(), &subject));
            let (wanted, _) = matching.take_wanted().unwrap();
            assert!(matching.take_wanted().is_none());
            let captures = Captures::new();
            matching.keep(Decided { wanted, matched: Matched::Yes, captures });
            assert_eq!(matching.find(&regex(), &subject).unwrap().matched, Matched::Yes);
        }
        assert!(!matching.has_undecided());
        assert!(!matching.share().want(&regex(), b"one more"));
        assert!(matching.has_undecided());
    }

    #[test]
    fn all_matches_of_a_request_have_one_deadline() {
        let matching = Matching::default();
        let deadline = |subject: &[u8]| {
            assert!(matching.want(&regex(), subject));
            matching.share().take_wanted().unwrap().1
        };
        assert_eq!(deadline(b"a"), deadline(b"b"));
    }

    #[test]
    fn a_match_is_known_by_pattern_and_subject() {
        let matching = Matching::default();
        let other = Regex::new(b"^(a+)+$", pcre::Flags::NONE).unwrap();
        assert!(matching.want(&regex(), b"aa"));
        let (wanted, _) = matching.take_wanted().unwrap();
        matching.keep(Decided { wanted, matched: Matched::No, captures: Captures::new() });
        assert!(matching.find(&regex(), b"aa").is_some());
        assert!(matching.find(&regex(), b"ab").is_none());
        assert!(matching.find(&other, b"aa").is_none());
    }
}
