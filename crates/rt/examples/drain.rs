//! The cost of draining the file watch: 64 tasks stand for 64 connections that became ready in one
//! turn, each awaiting `drained()`. Prints the time per request, beside that of a drain alone.

use std::sync::Arc;
use std::time::Instant;

use rt::{Loop, Watcher};

const TASKS: u32 = 64;
const ROUNDS: u32 = 20_000;

fn main() -> std::io::Result<()> {
    let watcher = Arc::new(Watcher::new()?);
    for name in ["a", "b", "c"] {
        watcher.watch_name(&std::env::temp_dir(), name.as_bytes());
    }
    let alone = Instant::now();
    for _ in 0..ROUNDS {
        watcher.drain();
    }
    println!("drain alone: {:.3} us", micros(alone) / f64::from(ROUNDS));
    for tasks in [1, 4, 16, TASKS] {
        let with = measure(Some(watcher.clone()), tasks)?;
        let without = measure(None, tasks)?;
        println!(
            "{tasks} ready at once: {:.3} us per request (a bare turn of the task is {without:.3})",
            with - without
        );
    }
    Ok(())
}

/// Time per round and task, in µs.
fn measure(watcher: Option<Arc<Watcher>>, tasks: u32) -> std::io::Result<f64> {
    let mut engine = Loop::new("bench");
    if let Some(watcher) = watcher {
        engine = engine.watcher(watcher);
    }
    engine.start(|handle| async move {
        let rounds = ROUNDS / tasks;
        let started = Instant::now();
        let running: Vec<_> = (0..tasks)
            .map(|_| {
                let handle = handle.clone();
                handle.clone().spawn_local(async move {
                    for _ in 0..rounds {
                        handle.drained().await;
                        tokio::task::yield_now().await;
                    }
                })
            })
            .collect();
        for task in running {
            let _ = task.await;
        }
        micros(started) / f64::from(rounds * tasks)
    })
}

fn micros(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e6
}
