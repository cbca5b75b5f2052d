//! Look-ups that expressions ask for by `-U` and `-F`.
//!
//! Expressions are evaluated synchronously, but a look-up may have to wait: for a password hash, or
//! for the names in a folder. It is then made beside the expression ([`make_wanted`]), like a match
//! that takes long, and the expression is evaluated again with its outcome.
//!
//! Source: `op_url_subr`, `op_file_subr` (server/util_expr_eval.c).

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use conf::expr::Subject;
use pcre::Later;
use wire::method::Method;

use crate::phases::subrequest::{child_for_file, child_for_uri, finish_lookup, may_look_up};
use crate::phases::walk;
use crate::request::{FileKind, MainRequest, Request};

/// The outcome of a look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// The status that the response would have before its handler.
    pub status: u16,
    /// What is there.
    pub kind: FileKind,
}

/// What was asked, and by which request.
#[derive(Clone, PartialEq, Eq)]
struct Question {
    subject: Subject,
    text: Vec<u8>,
    uri: Vec<u8>,
    filename: Vec<u8>,
}

/// Outcomes of look-ups that had to wait.
#[derive(Default)]
struct Outcomes(Vec<(Question, Outcome)>);

/// The look-up that an expression has stopped at.
struct Wanted(Option<(Question, Box<Request>)>);

/// Looks up the argument of `-U` or `-F`. All these look-ups of a request share a limit, beyond
/// which they are refused. Returns `None` at the limit of internal redirects, and for `-U` in a
/// subrequest of the same URI; with `-F`, only the limit of nested subrequests ends that.
///
/// # Errors
/// [`Later`] if it has to wait.
pub(crate) fn look_up(
    request: &mut Request,
    subject: Subject,
    text: &[u8],
) -> Result<Option<Outcome>, Later> {
    let is_same = |main: &MainRequest| main.uri == request.resource.uri;
    if matches!(subject, Subject::Url) && request.main.as_deref().is_some_and(is_same) {
        return Ok(None);
    }
    if let Some(outcome) = known(request, subject, text) {
        return Ok(Some(outcome));
    }
    if !may_look_up(request) {
        return Ok(None);
    }
    let mut sub = child(request, subject, text);
    let held = request.depth.held_lines.clone().unwrap_or_default();
    let before = held.count();
    let lookups = sub.depth.lookups.clone().unwrap_or_default();
    let logged = lookups.logged();
    sub.depth.in_expression = true;
    sub.depth.held_lines = Some(held.clone());
    if at_once(finish_lookup(request, &mut sub)).is_some() {
        if !request.depth.in_expression {
            held.write(&request.engine.server.sinks);
        }
        return Ok(Some(outcome_of(&sub)));
    }
    // What these lines say is not logged, then.
    held.keep_first(before);
    lookups.set_logged(logged);
    walk::leave_wanted(&mut sub, request);
    if !request.misses_something() {
        let question = Question {
            subject,
            text: text.to_vec(),
            uri: request.resource.uri.clone(),
            filename: request.resource.filename.clone(),
        };
        // The first subrequest is dropped with what it began; the second begins later.
        let again = Box::new(child(request, subject, text));
        request.keep(Wanted(Some((question, again))));
    }
    Err(Later)
}

/// Makes the look-up that an expression has stopped at, so that its outcome is known when the
/// expression is evaluated again. Returns false if it has stopped at none.
pub(super) async fn make_wanted(request: &mut Request) -> bool {
    let wanted = request.kept_mut().and_then(|Wanted(wanted)| wanted.take());
    let Some((question, mut sub)) = wanted else { return false };
    finish_lookup(request, &mut sub).await;
    let outcome = (question, outcome_of(&sub));
    match request.kept_mut() {
        Some(Outcomes(all)) => all.push(outcome),
        None => request.keep(Outcomes(vec![outcome])),
    }
    true
}

/// Lets the next walk look up again what this one has waited for, as Apache's do.
pub(super) fn forget_outcomes(request: &mut Request) {
    request.forget::<Outcomes>();
}

fn known(request: &Request, subject: Subject, text: &[u8]) -> Option<Outcome> {
    let Outcomes(all) = request.kept()?;
    let is_it = |(of, _): &&(Question, Outcome)| {
        of.subject == subject
            && of.text == text
            && of.uri == request.resource.uri
            && of.filename == request.resource.filename
    };
    all.iter().find(is_it).map(|(_, outcome)| *outcome)
}

fn child(request: &mut Request, subject: Subject, text: &[u8]) -> Request {
    request.depth.lookups.get_or_insert_default();
    let lookups = request.depth.lookups.clone();
    let mut sub = match subject {
        Subject::Url => child_for_uri(request, text, Method::GET),
        Subject::File => child_for_file(request, text),
    };
    sub.depth.lookups = lookups;
    sub
}

fn outcome_of(sub: &Request) -> Outcome {
    Outcome { status: sub.response.status, kind: sub.resource.file.kind }
}

/// The value of a future that does not wait.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
