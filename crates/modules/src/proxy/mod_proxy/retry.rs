//! When a worker that has failed is asked again. Source: `ap_proxy_retry_worker`.

use std::fmt;
use std::time::Duration;

use server::errorlog::Verbatim;
use server::log::Level;

use super::backend::Place;
use super::status::Status;
use super::workers::Worker;

/// `retry`, if it is not set.
const RETRY: Duration = Duration::from_secs(60);

/// `retry`: how long a worker is left alone after an error.
pub fn after(worker: &Worker) -> Duration {
    worker.parameters.retry.unwrap_or(RETRY)
}

/// Marks the worker as failed at `now`, in µs since 1970.
pub fn fail(worker: &Worker, now: u64) {
    worker.state.set_failed_at_us(now);
    if !worker.state.status().has(Status::IN_ERROR) {
        worker.state.count_error();
    }
    worker.state.set(Status::IN_ERROR);
}

/// Whether requests may go to the worker, whose error is forgotten if it is old enough. `now` is in
/// µs since 1970; `scheme` stands in the log lines.
pub fn is_usable(
    worker: &Worker,
    now: u64,
    scheme: Verbatim<'_>,
    log: impl Fn(Level, u32, fmt::Arguments<'_>),
) -> bool {
    let state = &worker.state;
    let status = state.status();
    if !status.has(Status::IN_ERROR) {
        return status.is_usable();
    }
    let place = Place::of(worker);
    if status.has(Status::STOPPED) {
        let text = format_args!("{scheme}: Won't retry worker ({place}): stopped");
        log(Level::Debug, 3305, text);
        return false;
    }
    let due = state.failed_at_us().saturating_add(after(worker).as_micros() as u64);
    if !status.has(Status::IGNORE_ERRORS) && now <= due {
        let text = format_args!("{scheme}: too soon to retry worker for ({place})");
        log(Level::Debug, 933, text);
        return false;
    }
    state.count_retry();
    state.clear(Status::IN_ERROR);
    let text = format_args!("{scheme}: worker for ({place}) has been marked for retry");
    log(Level::Debug, 932, text);
    status.without(Status::IN_ERROR).is_usable()
}
