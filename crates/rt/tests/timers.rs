//! Deadlines, the blocking pool and the loop's own counters.

#![allow(clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use rt::{BlockingLimits, BlockingPool, Handle, Loop, PoolError, Work};

/// Whether one of many tries behaves as each would on an idle machine.
fn once_in_many<F: Future<Output = bool>>(mut is_good: impl FnMut(Handle) -> F) -> bool {
    (0..20).any(|_| Loop::run("test", &mut is_good).unwrap())
}

#[test]
fn sleepers_wake_in_order_and_near_their_time() {
    let is_near = once_in_many(|handle| async move {
        let is_near = Rc::new(Cell::new(true));
        let woken = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [60_u64, 10, 110, 1]
            .map(|wait| {
                let (handle, woken) = (handle.clone(), woken.clone());
                let is_near = is_near.clone();
                handle.clone().spawn_local(async move {
                    // Deadlines are relative to this.
                    let before = handle.clock().now_us();
                    handle.sleep(Duration::from_millis(wait)).await;
                    let took = (handle.clock().precise_us() - before) / 1000;
                    assert!(took >= wait, "{took} ms instead of {wait}");
                    is_near.set(is_near.get() && took < wait + 30);
                    woken.borrow_mut().push(wait);
                })
            })
            .into();
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*woken.borrow(), [1, 10, 60, 110]);
        is_near.get()
    });
    assert!(is_near);
}

#[test]
fn a_deadline_that_moves_on_does_not_fire_early() {
    let is_near = once_in_many(|handle| async move {
        let before = handle.clock().now_us();
        let mut sleep = handle.sleep(Duration::from_millis(20));
        let far = handle.deadline(Duration::from_millis(90));
        let near = handle.deadline(Duration::from_millis(40));
        let mut woken = Vec::new();
        for deadline in [far, near] {
            // Queued with the first deadline, then moved.
            std::future::poll_fn(|cx| {
                let _ = std::pin::Pin::new(&mut sleep).poll(cx);
                std::task::Poll::Ready(())
            })
            .await;
            sleep.reset(deadline);
            (&mut sleep).await;
            let took = (handle.clock().precise_us() - before) / 1000;
            woken.push((took, handle.counters().wakeups));
        }
        let [(first, waits), (second, more_waits)] = woken[..] else { unreachable!() };
        assert!(first >= 90, "{first} ms");
        assert_eq!(waits, more_waits, "a deadline that has passed resolves at once");
        first < 130 && second < 130
    });
    assert!(is_near);
}

#[test]
fn far_deadlines_are_never_early() {
    let is_near = once_in_many(|handle| async move {
        let before = handle.clock().now_us();
        handle.sleep(Duration::from_millis(1010)).await;
        let took = (handle.clock().precise_us() - before) / 1000;
        assert!(took >= 1010, "{took} ms");
        took < 1110
    });
    assert!(is_near);
}

#[test]
fn busy_time_is_work_and_not_waiting() {
    let waiting_is_none = once_in_many(|handle| async move {
        let before = handle.counters();
        handle.sleep(Duration::from_millis(100)).await;
        let waited = handle.counters();
        assert!(waited.wakeups > before.wakeups);
        std::thread::sleep(Duration::from_millis(60));
        assert!(handle.counters().busy_us - waited.busy_us >= 60_000);
        waited.busy_us - before.busy_us < 50_000
    });
    assert!(waiting_is_none);
}

#[test]
fn a_thread_has_one_loop() {
    Loop::run("outer", |_| async { assert!(Loop::run("inner", |_| async {}).is_err()) }).unwrap();
    assert!(rt::Handle::current().is_none());
}

#[test]
fn the_pool_runs_jobs_beside_the_loop_within_its_limits() {
    let pool = Arc::new(BlockingPool::new(BlockingLimits { threads: 1, queue: 1 }));
    Loop::new("test")
        .blocking(pool.clone())
        .start(|handle| async move {
            let (release, gate) = mpsc::channel::<()>();
            let own_name = || std::thread::current().name().map(str::to_owned);
            let pool = handle.blocking().clone();
            let first = handle.spawn_local({
                let pool = pool.clone();
                async move { pool.run(Work::File, move || gate.recv().is_ok()).await }
            });
            while pool.load() != (1, 0) {
                handle.sleep(Duration::from_millis(1)).await;
            }
            let second = handle.spawn_local({
                let pool = pool.clone();
                async move { pool.run(Work::File, own_name).await }
            });
            while pool.load() != (1, 1) {
                handle.sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(pool.run(Work::File, || ()).await, Err(PoolError::Full));
            release.send(()).unwrap();
            assert_eq!(first.await.unwrap(), Ok(true));
            assert_eq!(second.await.unwrap(), Ok(Some("file-1".to_owned())));
            let panics = || std::panic::resume_unwind(Box::new(()));
            let outcome: Result<(), _> = pool.run(Work::File, panics).await;
            assert_eq!(outcome, Err(PoolError::Panicked));
            assert_eq!(pool.run(Work::File, || 5).await, Ok(5));
        })
        .unwrap();
}

#[test]
fn kinds_of_work_do_not_wait_for_each_other() {
    let pool = Arc::new(BlockingPool::new(BlockingLimits { threads: 1, queue: 1 }));
    let (release, gate) = mpsc::channel::<()>();
    Loop::run("test", |handle| async move {
        let (filling, given_up) = (pool.clone(), pool.clone());
        handle.spawn_local(async move { filling.run(Work::Login, move || gate.recv()).await });
        let begun = Arc::new(AtomicBool::new(false));
        let job = {
            let begun = begun.clone();
            move || begun.store(true, Ordering::Relaxed)
        };
        while pool.load() != (1, 0) {
            handle.sleep(Duration::from_millis(1)).await;
        }
        let wait = Duration::from_millis(1);
        let waited = given_up.run_within(wait, Work::Login, job).await;
        assert_eq!(waited, Err(PoolError::TimedOut));
        assert_eq!(pool.run(Work::Login, || ()).await, Err(PoolError::Full));
        assert_eq!(pool.run(Work::File, || 1).await, Ok(1));
        release.send(()).unwrap();
        while pool.load().1 != 0 {
            handle.sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(pool.run(Work::Login, || 2).await, Ok(2));
        assert!(!begun.load(Ordering::Relaxed), "an abandoned job ran");
    })
    .unwrap();
}

#[test]
fn a_pool_without_threads_runs_in_place() {
    let pool = BlockingPool::new(BlockingLimits { threads: 0, queue: 0 });
    let here = std::thread::current().id();
    let is_here = move || std::thread::current().id() == here;
    Loop::run("test", |_| async move {
        assert_eq!(pool.run(Work::File, is_here).await, Ok(true));
    })
    .unwrap();
}
