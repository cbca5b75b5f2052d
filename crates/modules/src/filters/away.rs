//! Work on a body that would hold up the loop: it goes to the blocking pool.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use rt::{PoolError, Work};

/// The longest wait for a step. Many may wait for their turn, and a body that breaks off is worse
/// than a late one.
const WAIT: Duration = Duration::from_secs(600);

/// A value that is worked with on the pool, and comes back.
pub(super) struct Away<T>(Pin<Box<dyn Future<Output = io::Result<T>>>>);

impl<T: Send + 'static> Away<T> {
    /// Has `work` done with `value`. Without a loop it is done here; so it is where the pool takes
    /// no more, if it `may_stay` because its time has a bound.
    pub fn send(
        value: T,
        may_stay: bool,
        work: impl Fn(&mut T) + Send + Sync + 'static,
    ) -> Away<T> {
        Away(Box::pin(async move {
            let Some(handle) = rt::Handle::current() else { return Ok(done(value, &work)) };
            let place = Arc::new((Mutex::new(Some(value)), work));
            let job = {
                let place = place.clone();
                move || take(&place.0).map(|value| done(value, &place.1))
            };
            match handle.blocking().run_within(WAIT, Work::Body, job).await {
                Ok(Some(value)) => Ok(value),
                Err(PoolError::Full | PoolError::NoThread) if may_stay => {
                    let value = take(&place.0).ok_or(io::ErrorKind::OutOfMemory)?;
                    Ok(done(value, &place.1))
                }
                Ok(None) => Err(io::ErrorKind::OutOfMemory.into()),
                Err(why) => Err(io::Error::other(why)),
            }
        }))
    }

    /// The value, once the work is done.
    ///
    /// # Errors
    /// It took too long, or could not begin.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        self.0.as_mut().poll(cx)
    }
}

fn done<T>(mut value: T, work: impl Fn(&mut T)) -> T {
    work(&mut value);
    value
}

fn take<T>(place: &Mutex<Option<T>>) -> Option<T> {
    // The lock is held for this alone, so its holder does not panic.
    place.lock().unwrap_or_else(PoisonError::into_inner).take()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    #[test]
    fn without_a_loop_the_work_is_done_at_once() {
        let mut away = Away::send(vec![1], true, |list: &mut Vec<u8>| list.push(2));
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(away.poll(&mut cx), Poll::Ready(Ok(list)) if list == [1, 2]));
    }

    #[test]
    fn in_a_loop_it_is_done_on_another_thread() {
        let here = std::thread::current().id();
        let other = rt::Loop::run("away", async move |_| {
            let mut away = Away::send(None, false, |id| *id = Some(std::thread::current().id()));
            std::future::poll_fn(|cx| away.poll(cx)).await.unwrap()
        });
        assert!(other.unwrap().is_some_and(|id| id != here));
    }
}
