//! A hook that records the effect of another.

use std::task::{Context, Poll, Waker};

use super::state::State;
use super::{Event, Kind};
use crate::api::hooks::{Phase, Run, Step, Verdict};
use crate::request::Request;

/// The name of the hook that authenticates without a password.
const USER: &str = "--user";

/// A hook with its properties.
pub(crate) struct RecordedHook {
    /// The recorded hook.
    pub hook: Box<dyn Run>,
    /// Its phase.
    pub phase: Phase,
    /// Its module's `FILE`.
    pub module: &'static str,
    /// [`crate::api::hooks::HookDef::pure`]
    pub pure: bool,
}

impl Run for RecordedHook {
    fn run<'r>(&'r self, request: &'r mut Request) -> Step<'r> {
        let mut recorded = Box::pin(self.record(request));
        // Some callers take a hook that waits for one that does nothing.
        match recorded.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(verdict) => Step::Ready(verdict),
            Poll::Pending => Step::Pending(recorded),
        }
    }
}

impl RecordedHook {
    async fn record(&self, request: &mut Request) -> Verdict {
        let Some(recorder) = request.engine.recorder.clone() else {
            return self.ask(request, None).await;
        };
        if recorder.is_measuring() {
            let _running = recorder.measure(self.phase.name());
            return self.ask(request, recorder.user()).await;
        }
        let user = recorder.user().filter(|_| self.phase == Phase::CheckUserId);
        let by = if user.is_some() { USER } else { self.module };
        let event = Event::new(Kind::Hook, by).with("phase", self.phase.name());
        let begun = recorder.begin(event);
        let before = State::of(request);
        let verdict = self.ask(request, user).await;
        let changes = before.changes(request).unwrap_or_default();
        changes.into_iter().for_each(|change| recorder.add(change));
        begun.end(|event| {
            event.outcome = said(verdict);
            if !self.pure {
                event.facts.push(("pure", "no".to_owned()));
            }
        });
        verdict
    }

    /// Runs the hook. A `user` counts as authenticated.
    async fn ask(&self, request: &mut Request, user: Option<Vec<u8>>) -> Verdict {
        if let Some(user) = user.filter(|_| self.phase == Phase::CheckUserId) {
            return take_for(request, user);
        }
        match self.hook.run(request) {
            Step::Ready(verdict) => verdict,
            Step::Pending(future) => future.await,
        }
    }
}

/// Authenticates without a password.
fn take_for(request: &mut Request, user: Vec<u8>) -> Verdict {
    request.user = Some(user);
    request.auth_type.get_or_insert("Basic".into());
    request.depends.pure = false;
    Verdict::Ok
}

fn said(verdict: Verdict) -> String {
    match verdict {
        Verdict::Declined => "declined".to_owned(),
        Verdict::Ok => "ok".to_owned(),
        Verdict::Done => "done".to_owned(),
        Verdict::Status(status) => status.to_string(),
    }
}
