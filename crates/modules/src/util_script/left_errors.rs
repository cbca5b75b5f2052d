//! The standard error of programs, also after the response: what a program has left running may
//! keep it open.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rt::{Deadline, Pipe};

use super::error_lines::ErrorLines;

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;

/// Most pipes of a process that are followed after their responses; further ones are closed.
const FOLLOWED_MAX: usize = 256;

/// Pipes that are followed.
static FOLLOWED: AtomicUsize = AtomicUsize::new(0);

/// Counts a pipe until it is dropped.
struct Place;

impl Place {
    fn take() -> Option<Place> {
        let place = Place;
        // Beyond the limit, dropping the place gives it back.
        (FOLLOWED.fetch_add(1, Ordering::Relaxed) < FOLLOWED_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        FOLLOWED.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Reads messages once, and logs or drops them; whether there may be more. The last line may have
/// no end.
pub(super) fn poll(
    errors: &mut Pipe,
    lines: &mut ErrorLines,
    logs: bool,
    cx: &mut Context<'_>,
    deadline: Deadline,
) -> Poll<bool> {
    lines.buffer.reserve(READ_BYTES);
    match errors.poll_read(cx, &mut lines.buffer, deadline) {
        Poll::Ready(Ok(1..)) if logs => lines.log_whole(),
        Poll::Ready(Ok(1..)) => lines.buffer.clear(),
        Poll::Ready(Ok(0) | Err(_)) => {
            lines.log_rest();
            return Poll::Ready(false);
        }
        Poll::Pending => return Poll::Pending,
    }
    Poll::Ready(true)
}

/// Reads messages up to their end in a task of the loop, for at most `timeout`.
pub(super) fn follow(mut errors: Pipe, mut lines: ErrorLines, logs: bool, timeout: Duration) {
    let Some(place) = Place::take() else { return lines.log_rest() };
    let handle = errors.handle();
    let deadline = handle.deadline(timeout);
    handle.spawn_local(async move {
        let _place = place;
        while std::future::poll_fn(|cx| poll(&mut errors, &mut lines, logs, cx, deadline)).await {}
    });
}
