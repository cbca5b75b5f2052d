//! The result of a hook.

use std::future::Future;
use std::pin::Pin;

/// The decision of a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Not handled: run the next hook.
    Declined,
    /// Handled; in a run-first phase no further hook runs.
    Ok,
    /// The response is complete; continue with logging.
    Done,
    /// End the request with this status (RFC 9110 §15).
    Status(u16),
}

/// The result of a hook, at once or as a future.
pub enum Step<'r> {
    /// The result.
    Ready(Verdict),
    /// A future of it (a password hash, a look-up, a subrequest); only this allocates.
    Pending(Pin<Box<dyn Future<Output = Verdict> + 'r>>),
}

impl Step<'_> {
    /// [`Verdict::Declined`]
    pub const DECLINED: Step<'static> = Step::Ready(Verdict::Declined);
    /// [`Verdict::Ok`]
    pub const OK: Step<'static> = Step::Ready(Verdict::Ok);
    /// [`Verdict::Done`]
    pub const DONE: Step<'static> = Step::Ready(Verdict::Done);

    /// Waits for the result.
    pub async fn verdict(self) -> Verdict {
        match self {
            Step::Ready(verdict) => verdict,
            Step::Pending(future) => future.await,
        }
    }

    /// [`Verdict::Status`]
    pub const fn status(status: u16) -> Step<'static> {
        Step::Ready(Verdict::Status(status))
    }
}
