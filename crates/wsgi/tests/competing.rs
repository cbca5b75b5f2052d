//! Threads that compete for the words of a region: no wakeup is lost.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use wsgi::{DOWN_BYTES, Geometry, Kind, Known, Region, State};

/// What is long enough on a busy machine.
const STALL: Duration = Duration::from_secs(10);

fn region() -> Region {
    Region::create(Geometry::new(64, 2, 2)).unwrap()
}

/// Waits until `count` goes on to `end`; false if it stalls.
fn arrives(count: &AtomicU64, end: u64) -> bool {
    let (mut seen, mut since) = (0, Instant::now());
    loop {
        let now = count.load(Ordering::SeqCst);
        if now >= end {
            return true;
        }
        if now > seen {
            (seen, since) = (now, Instant::now());
        } else if since.elapsed() > STALL {
            return false;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A thread that is woken although another process has taken the request is up again: if it slept
/// on, all others would count on it for good.
#[test]
fn a_thread_that_is_woken_for_nothing_does_not_sleep_on() {
    const ROUNDS: u64 = 20_000;
    let region = region();
    let (count, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            while count.fetch_add(1, Ordering::SeqCst) < ROUNDS {
                region.is_up(1);
                region.sleep(1, || is_over.load(Ordering::SeqCst));
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                region.wake_worker();
            }
        });
        let arrived = arrives(&count, ROUNDS);
        is_over.store(true, Ordering::SeqCst);
        region.wake_all(1);
        assert!(arrived, "it sleeps after {} rounds", count.load(Ordering::SeqCst));
    });
}

/// A loop that waits for room is left alone until half of the stream is room.
#[test]
fn a_loop_is_not_woken_for_a_few_bytes() {
    let region = region();
    let (slot, _) = region.fill(0, None).unwrap();
    let (mut written, mut read, mut out) = (0, 0, Vec::new());
    region.down(slot).put(&mut written, &vec![7u8; DOWN_BYTES as usize]).unwrap();
    region.wait_for_room(slot);
    region.down(slot).take(&mut read, DOWN_BYTES as usize / 2 - 1, &mut out).unwrap();
    assert!(!region.takes_wait_for_room(slot, read));
    region.down(slot).take(&mut read, 1, &mut out).unwrap();
    assert!(region.takes_wait_for_room(slot, read) && !region.takes_wait_for_room(slot, read));
}

/// A loop that waits for room is woken when there is room.
#[test]
fn a_loop_that_waits_for_room_is_woken() {
    const PIECES: u64 = 3000;
    let region = region();
    let (slot, filling) = region.fill(0, None).unwrap();
    region.publish(slot, filling).unwrap();
    let piece = vec![7u8; DOWN_BYTES as usize];
    let (count, is_told, is_over) =
        (AtomicU64::new(0), AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        // The worker, which reads whatever there is.
        scope.spawn(|| {
            let (mut read, mut out) = (0, Vec::new());
            while !is_over.load(Ordering::SeqCst) {
                out.clear();
                match region.down(slot).take(&mut read, usize::MAX, &mut out).unwrap() {
                    0 => thread::yield_now(),
                    _ if region.takes_wait_for_room(slot, read) => {
                        is_told.store(true, Ordering::SeqCst);
                    }
                    _ => {}
                }
            }
        });
        // The loop, which writes until there is no room, and then waits.
        scope.spawn(|| {
            let mut written = 0;
            while count.load(Ordering::SeqCst) < PIECES && !is_over.load(Ordering::SeqCst) {
                let mut put = region.down(slot).put(&mut written, &piece).unwrap();
                if put == 0 {
                    is_told.store(false, Ordering::SeqCst);
                    region.wait_for_room(slot);
                    put = region.down(slot).put(&mut written, &piece).unwrap();
                }
                while put == 0 && !is_told.load(Ordering::SeqCst) && !is_over.load(Ordering::SeqCst)
                {
                    thread::yield_now();
                }
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        let arrived = arrives(&count, PIECES);
        is_over.store(true, Ordering::SeqCst);
        assert!(arrived, "it waits after {} pieces", count.load(Ordering::SeqCst));
    });
}

/// A process that dies while its loop withdraws a request leaves no slot behind.
#[test]
fn a_request_that_is_withdrawn_while_its_process_dies_is_free() {
    let region = region();
    for round in 0..3000 {
        let (slot, filling) = region.fill(0, None).unwrap();
        let queued = region.publish(slot, filling).unwrap();
        region.take(1, &mut Known::default()).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| region.bury_worker(1));
            region.release(slot, queued);
        });
        let free = region.fill(0, None).map(|(slot, filling)| {
            let queued = region.publish(slot, filling).unwrap();
            region.release(slot, queued);
        });
        assert!(free.is_some(), "round {round}");
    }
}

/// Workers that each know requests which wait take each of them once.
#[test]
fn each_request_is_taken_once() {
    const REQUESTS: u64 = 20_000;
    let region = region();
    let (count, sum, is_over) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let work = |process: u16| {
        let mut known = Known::default();
        while !is_over.load(Ordering::SeqCst) {
            region.is_up(process.into());
            let Some((slot, taken, has_more)) = region.take(process, &mut known) else {
                let is_needed = || is_over.load(Ordering::SeqCst) || region.queued() > 0;
                region.sleep(process.into(), is_needed);
                continue;
            };
            if has_more {
                region.wake_worker();
            }
            let (mut read, mut number) = (0, Vec::new());
            region.down(slot).take(&mut read, usize::MAX, &mut number).unwrap();
            sum.fetch_add(u64::from_le_bytes(number.try_into().unwrap()), Ordering::SeqCst);
            assert!(region.finish(slot, taken));
            count.fetch_add(1, Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        for process in [0, 0, 1, 1] {
            scope.spawn(move || work(process));
        }
        scope.spawn(|| {
            let mut own: Vec<(u32, State)> = Vec::new();
            for number in 0..REQUESTS {
                let (slot, filling) = loop {
                    own.retain(|(slot, queued)| {
                        let is_done = region.state(*slot).is_some_and(|now| now.kind == Kind::Done);
                        is_done.then(|| region.release(*slot, *queued)).is_none()
                    });
                    match region.fill(0, None) {
                        Some(filled) => break filled,
                        None => thread::yield_now(),
                    }
                };
                region.down(slot).put(&mut 0, &number.to_le_bytes()).unwrap();
                own.push((slot, region.publish(slot, filling).unwrap()));
                region.wake_worker();
            }
        });
        let arrived = arrives(&count, REQUESTS);
        is_over.store(true, Ordering::SeqCst);
        (0..2).for_each(|process| region.wake_all(process));
        assert!(arrived, "{} of {REQUESTS}", count.load(Ordering::SeqCst));
    });
    assert_eq!(count.into_inner(), REQUESTS);
    assert_eq!(sum.into_inner(), (0..REQUESTS).sum());
}
