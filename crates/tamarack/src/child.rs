//! A child process: its loops, one per thread, and the orders it gets.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mpm::{Child, Control, LoopSeat, Order, ProcessSlot, Scoreboard};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike;
use rt::{AcceptError, Acceptor, BlockingLimits, BlockingPool, Handle, Loop, Watcher};
use server::connection;
use server::engine::Engine;
use server::host::Server;
use server::log::Level;
use tokio::sync::watch;

/// How long a loop that has no room for connections waits before it looks again.
const FULL_PAUSE: Duration = Duration::from_millis(20);
/// How often it says so.
const FULL_TOLD_EVERY: Duration = Duration::from_secs(10);
/// Descriptors that are kept for files, logs and pipes: an eighth of all, within these bounds.
const RESERVED_LEAST: usize = 8;
/// See [`RESERVED_LEAST`].
const RESERVED_MOST: usize = 1024;
/// Descriptors that a loop needs for itself.
const PER_LOOP: usize = 4;
/// The limit on open files where the system does not tell it.
const FALLBACK_LIMIT: u64 = 1024;

/// What a loop is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serve,
    Finish,
    Stop,
}

/// Runs the child's loops until it is told to end; the exit status.
pub fn run(server: Arc<Server>, child: Child) -> i32 {
    server.call(server.registry.hooks.child_started());
    let (orders, state) = watch::channel(State::Serve);
    let watcher = Watcher::new().ok().map(Arc::new);
    // The pool's threads may run on any CPU, whichever loop they were started by.
    let blocking = BlockingPool::starting_with(BlockingLimits::default(), Some(unpin));
    let blocking = Arc::new(blocking);
    let Child { loops, control, scoreboard, settings, process, .. } = child;
    let limit = settings.max_connections_per_child;
    let room = room_for_connections(loops.len());
    let mut threads = Vec::new();
    for seat in loops {
        let task = Seat {
            server: server.clone(),
            scoreboard,
            state: state.clone(),
            control: control.clone(),
            connection_limit: limit,
            room,
            process: (seat.index == 0).then_some(process),
        };
        let mut builder = Loop::new(format!("loop-{}", seat.number)).blocking(blocking.clone());
        if let Some(watcher) = &watcher {
            builder = builder.watcher(watcher.clone());
        }
        let thread = std::thread::Builder::new().name(format!("loop-{}", seat.number));
        let run = move || {
            seat.take();
            builder.start(|handle| task.run(handle, seat))
        };
        match thread.spawn(run) {
            Ok(thread) => threads.push(thread),
            Err(_) => return 1,
        }
    }
    drop(state);
    control.report_ready();
    let obeying = std::thread::Builder::new().name("orders".to_owned());
    let obeying = obeying.spawn(move || obey(&control, &orders));
    let mut status = i32::from(obeying.is_err());
    for thread in threads {
        if !matches!(thread.join(), Ok(Ok(()))) {
            status = 1;
        }
    }
    status
}

fn unpin() {
    // Where it fails the thread stays on its loop's CPUs.
    let _ = mpm::affinity::mask::unpin();
}

/// Hands the supervisor's orders on to the loops. Ends with the process.
fn obey(control: &Control, orders: &watch::Sender<State>) {
    loop {
        match control.wait_order(None) {
            Some(Order::Stop) => {
                orders.send_replace(State::Stop);
                return;
            }
            Some(Order::Graceful) => {
                orders.send_replace(State::Finish);
                if control.is_orphan() {
                    return;
                }
            }
            None => {}
        }
    }
}

/// What a loop is started with.
struct Seat {
    server: Arc<Server>,
    scoreboard: Scoreboard,
    state: watch::Receiver<State>,
    control: Control,
    connection_limit: u64,
    /// The most connections that it holds open.
    room: usize,
    /// The process's slot, for the one loop that writes it.
    process: Option<ProcessSlot>,
}

impl Seat {
    async fn run(mut self, handle: Handle, seat: LoopSeat) {
        let engine = Engine::new(self.server.clone(), handle.clone(), seat.slot, self.scoreboard);
        let count = Rc::new(std::cell::Cell::new(0u64));
        let mut accepting = Vec::new();
        for socket in seat.sockets {
            let Ok(acceptor) = Acceptor::from_fd(socket.socket.into()) else { continue };
            let (engine, control, count) = (engine.clone(), self.control.clone(), count.clone());
            let (state, limit) = (self.state.clone(), self.connection_limit);
            let room = self.room;
            accepting.push(handle.spawn_local(async move {
                accept(&engine, acceptor, state, room, || {
                    count.set(count.get() + 1);
                    if limit > 0 && count.get() == limit {
                        control.exhausted();
                    }
                })
                .await;
            }));
        }
        let beat = handle.spawn_local(heartbeat(engine.clone(), self.process));
        let told = self.state.changed().await;
        if told.is_ok() && *self.state.borrow() == State::Finish {
            engine.draining.set(true);
            for task in accepting {
                let _ = task.await;
            }
            while engine.connections.open() > 0 && *self.state.borrow() != State::Stop {
                handle.sleep(Duration::from_millis(20)).await;
            }
        }
        beat.abort();
        engine.every_second();
    }
}

/// Accepts until the loop is to finish; then what is queued already, and no more.
async fn accept(
    engine: &Rc<Engine>,
    acceptor: Acceptor,
    mut state: watch::Receiver<State>,
    room: usize,
    mut counted: impl FnMut(),
) {
    let mut told_at = None;
    loop {
        let is_full = engine.connections.open() >= room;
        if is_full {
            tell_full(engine, room, &mut told_at);
        }
        tokio::select! {
            biased;
            changed = state.changed() => {
                if changed.is_err() || *state.borrow() != State::Serve {
                    break;
                }
            }
            () = engine.handle.sleep(FULL_PAUSE), if is_full => {}
            accepted = acceptor.accept(), if !is_full => match accepted {
                Ok(accepted) => {
                    counted();
                    engine.handle.spawn_local(connection::serve(engine.clone(), accepted));
                }
                Err(error) => {
                    report(engine, &error);
                    if matches!(error, AcceptError::Broken(_)) {
                        return;
                    }
                }
            },
        }
    }
    while let Ok(Some(accepted)) = acceptor.try_accept() {
        engine.handle.spawn_local(connection::serve(engine.clone(), accepted));
    }
}

/// Says that connections have to wait, from time to time.
fn tell_full(engine: &Engine, room: usize, told_at: &mut Option<Instant>) {
    if told_at.is_none_or(|at| at.elapsed() >= FULL_TOLD_EVERY) {
        *told_at = Some(Instant::now());
        engine.log_main(
            Level::Error,
            20003,
            format_args!(
                "{room} connections are open, more wait: the limit on open files (ulimit -n) \
                 leaves no room for them"
            ),
        );
    }
}

/// How many connections each of `loops` loops may hold, so that descriptors are left for the
/// files that are served.
fn room_for_connections(loops: usize) -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(FALLBACK_LIMIT, |(soft, _)| soft);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let in_use = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let reserve = (limit / 8).clamp(RESERVED_LEAST, RESERVED_MOST) + loops * PER_LOOP;
    (limit.saturating_sub(in_use + reserve) / loops.max(1)).max(1)
}

fn report(engine: &Engine, error: &AcceptError) {
    engine.log_main(Level::Crit, 20001, format_args!("accept failed: {error}"));
}

/// Publishes that the loop still turns, and what it has done.
async fn heartbeat(engine: Rc<Engine>, process: Option<ProcessSlot>) {
    let mut busy = 0;
    loop {
        let counters = engine.handle.counters();
        engine.slot.heartbeat(mpm::scoreboard::now_us());
        engine.slot.add_busy_us(counters.busy_us.saturating_sub(busy));
        busy = counters.busy_us;
        engine.publish();
        if let Some(process) = &process {
            publish_cpu_times(process);
        }
        engine.every_second();
        engine.handle.sleep(Duration::from_secs(1)).await;
    }
}

fn publish_cpu_times(process: &ProcessSlot) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return };
    let us = |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
    process.set_cpu_times(us(usage.user_time()), us(usage.system_time()));
}
