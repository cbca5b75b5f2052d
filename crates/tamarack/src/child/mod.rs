//! A child process: its loops, one per thread, and the supervisor's orders.

mod loops;
mod rebalance;
mod threads;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http::service::Service;
use messages::Message;
use mpm::{Child, Control, LoopSpec, Order, ProcessSlot, Scoreboard};
use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike;
use rt::{AcceptError, BlockingLimits, BlockingPool, Handle, Loop, WakeAll, Watcher};
use server::engine::Engine;
use server::files::mirror::BYTES_LIMIT_OF_ONE;
use server::host::Server;
use server::log::Level;
use tokio::sync::watch;

use rebalance::{Limits, PeerLoop};

/// Descriptors reserved for files, logs and pipes: an eighth of all, within these bounds.
const RESERVED_LEAST: usize = 8;
/// See [`RESERVED_LEAST`].
const RESERVED_MOST: usize = 1024;
/// Descriptors that a loop needs for itself.
const PER_LOOP: usize = 4;
/// The limit on open files if the system does not report it.
const FALLBACK_LIMIT: u64 = 1024;

/// What the loops are ordered to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Serve,
    /// Accept what is queued, and finish.
    Finish,
    /// Finish the open connections.
    Leave,
    Stop,
}

/// Runs the child's loops until it is ordered to end; returns the exit status.
///
/// `watcher` is the file watch that it shares with all processes; `None` if there is none.
pub fn run(server: Arc<Server>, child: Child, watcher: Option<Arc<Watcher>>) -> i32 {
    server.call(server.registry.hooks.child_started());
    let (orders, state) = watch::channel(State::Serve);
    let control = child.control.clone();
    let in_place = child.settings.shape.blocks_in_place();
    let wake_all = match WakeAll::new() {
        Ok(wake_all) => Arc::new(wake_all),
        Err(_) => return 1,
    };
    // Started before all other threads: a process that serves but receives no orders would never
    // end.
    let obeying = std::thread::Builder::new().name("orders".to_owned());
    let (line, waker) = (control.clone(), wake_all.clone());
    if let Err(error) = obeying.spawn(move || obey(&line, &orders, &waker)) {
        tell_no_thread(&server, &error);
        return 1;
    }
    let Some(threads) = start(server, child, watcher, &state, &wake_all) else { return 1 };
    drop(state);
    if !in_place {
        control.report_ready();
    }
    let mut status = 0;
    for thread in threads {
        if !matches!(thread.join(), Ok(Ok(()))) {
            status = 1;
        }
    }
    status
}

type Thread = JoinHandle<std::io::Result<()>>;

/// Starts a thread per spec; `None` if the system refuses one.
fn start(
    server: Arc<Server>,
    child: Child,
    watcher: Option<Arc<Watcher>>,
    state: &watch::Receiver<State>,
    wake_all: &Arc<WakeAll>,
) -> Option<Vec<Thread>> {
    let Child { loops, control, scoreboard, settings, process, reserve, .. } = child;
    let in_place = settings.shape.blocks_in_place();
    if in_place && loops.len() == 1 {
        server.files.limit(BYTES_LIMIT_OF_ONE, BYTES_LIMIT_OF_ONE, BYTES_LIMIT_OF_ONE);
    }
    // In place there is no other connection that blocking work would delay.
    let blocking = blocking_pool(if in_place { 0 } else { settings.blocking_threads.max(1) });
    let starting = Arc::new(AtomicUsize::new(loops.len()));
    let taken = Arc::new(AtomicU64::new(0));
    let limits = Limits {
        room: room_for_connections(loops.len()),
        admission: loops::Admission::of(&settings),
    };
    let peers = if in_place { None } else { PeerLoop::all_of(&loops, limits) };
    let mut threads = Vec::new();
    for spec in loops {
        let common = Common {
            server: server.clone(),
            scoreboard,
            state: state.clone(),
            control: control.clone(),
            connection_limit: settings.max_connections_per_child,
            taken: taken.clone(),
            process: (spec.index == 0).then_some(process),
        };
        let name = format!("{}-{}", if in_place { "thread" } else { "loop" }, spec.number);
        let mut thread = std::thread::Builder::new().name(name.clone());
        if let Some(bytes) = settings.thread_stack_bytes {
            thread = thread.stack_size(bytes);
        }
        let mut builder = Loop::new(name).blocking(blocking.clone());
        if let Some(watcher) = &watcher {
            builder = builder.watcher(watcher.clone());
        }
        let started = if in_place {
            let (reserve, wake_all, starting) =
                (reserve.clone(), wake_all.clone(), starting.clone());
            let task = threads::ThreadTask { common, reserve, wake_all, starting };
            thread.spawn(move || {
                spec.enter_thread();
                builder.jobs_in(spec.slot.jobs()).in_place().start(|handle| task.run(handle, spec))
            })
        } else {
            let peers = peers.clone();
            if let Some(own) = peers.as_ref().and_then(|all| all.get(spec.index)) {
                builder = builder.load(own.load());
            }
            let task = loops::LoopTask { common, limits, peers };
            thread.spawn(move || {
                spec.enter_thread();
                builder.start(|handle| task.run(handle, spec))
            })
        };
        match started {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                tell_no_thread(&server, &error);
                return None;
            }
        }
    }
    Some(threads)
}

fn tell_no_thread(server: &Arc<Server>, error: &std::io::Error) {
    let text = format!("child can't start a thread: {error}");
    server::errorlog::of_process(Some(server), Level::Alert, Message::NoThread.number(), &text);
}

/// The pool's threads may run on any CPU, whichever loop starts them.
fn blocking_pool(threads: usize) -> Arc<BlockingPool> {
    let limits = BlockingLimits { threads, ..BlockingLimits::default() };
    Arc::new(BlockingPool::starting_with(limits, Some(unpin)))
}

fn unpin() {
    // If this fails, the thread stays on its loop's CPUs.
    let _ = mpm::affinity::mask::unpin();
}

/// Forwards the supervisor's orders to the loops. Ends with the process.
fn obey(control: &Control, orders: &watch::Sender<State>, wake_all: &WakeAll) {
    loop {
        let state = match control.wait_order(None) {
            None => continue,
            Some(Order::Stop) => State::Stop,
            Some(Order::Graceful) => State::Finish,
            Some(Order::Leave) => State::Leave,
        };
        orders.send_replace(state);
        wake_all.wake();
        if state == State::Stop || control.is_orphan() {
            return;
        }
    }
}

/// What loops and threads of all shapes are started with.
#[derive(Clone)]
struct Common {
    server: Arc<Server>,
    scoreboard: Scoreboard,
    state: watch::Receiver<State>,
    control: Control,
    /// `MaxConnectionsPerChild`; 0 for no limit.
    connection_limit: u64,
    /// Connections that the process has accepted.
    taken: Arc<AtomicU64>,
    /// The process's slot, for the one loop that writes it.
    process: Option<ProcessSlot>,
}

impl Common {
    fn service(&self, handle: &Handle, spec: &LoopSpec) -> Rc<Service> {
        let engine = Engine::new(self.server.clone(), handle.clone(), spec.slot, self.scoreboard);
        Service::new(engine)
    }

    /// Counts an accepted connection.
    fn counted(&self) {
        if self.connection_limit > 0
            && self.taken.fetch_add(1, Ordering::Relaxed) + 1 == self.connection_limit
        {
            self.control.exhausted();
        }
    }
}

/// How many connections each of `loops` loops may hold, so that enough descriptors remain for
/// files.
fn room_for_connections(loops: usize) -> usize {
    let limit = getrlimit(Resource::RLIMIT_NOFILE).map_or(FALLBACK_LIMIT, |(soft, _)| soft);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let in_use = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let reserve = (limit / 8).clamp(RESERVED_LEAST, RESERVED_MOST) + loops * PER_LOOP;
    (limit.saturating_sub(in_use + reserve) / loops.max(1)).max(1)
}

fn report(service: &Service, error: &AcceptError) {
    service.log_main(
        Level::Crit,
        Message::AcceptFailed.number(),
        format_args!("accept failed: {error}"),
    );
}

/// Publishes that the loop still turns, and its counters.
async fn heartbeat(service: Rc<Service>, process: Option<ProcessSlot>) {
    let mut busy = 0;
    loop {
        let counters = service.handle.counters();
        service.slot.heartbeat(mpm::scoreboard::now_us());
        service.slot.add_busy_us(counters.busy_us.saturating_sub(busy));
        busy = counters.busy_us;
        service.slot.set_cpu(mpm::affinity::mask::current_cpu());
        service.publish();
        if let Some(process) = &process {
            publish_cpu_times(process);
        }
        service.every_second();
        // Polls the lingering closes of a thread that has been busy with one connection since.
        service.handle.poll_lingering_closes();
        service.handle.sleep(Duration::from_secs(1)).await;
    }
}

fn publish_cpu_times(process: &ProcessSlot) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return };
    let us = |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
    process.set_cpu_times(us(usage.user_time()), us(usage.system_time()));
}
