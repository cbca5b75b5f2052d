//! A child process: its loops, one per thread, and the orders it gets.

use std::rc::Rc;
use std::sync::Arc;

use mpm::{Child, Control, LoopSeat, Order, ProcessSlot, Scoreboard};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rt::{AcceptError, Acceptor, BlockingPool, Handle, Loop, Watcher};
use server::connection;
use server::engine::Engine;
use server::host::Server;
use tokio::sync::watch;

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
    let blocking = Arc::new(BlockingPool::default());
    let Child { loops, control, scoreboard, settings, process, .. } = child;
    let limit = settings.max_connections_per_child;
    let mut threads = Vec::new();
    for seat in loops {
        let task = Seat {
            server: server.clone(),
            scoreboard: scoreboard.clone(),
            state: state.clone(),
            control: control.clone(),
            connection_limit: limit,
            process: (seat.index == 0).then_some(process),
        };
        let mut builder = Loop::new(format!("loop-{}", seat.number)).blocking(blocking.clone());
        if let Some(watcher) = &watcher {
            builder = builder.watcher(watcher.clone());
        }
        let thread = std::thread::Builder::new().name(format!("loop-{}", seat.number));
        match thread.spawn(move || builder.start(|handle| task.run(handle, seat))) {
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
    /// The process's slot, for the one loop that writes it.
    process: Option<ProcessSlot>,
}

impl Seat {
    async fn run(mut self, handle: Handle, seat: LoopSeat) {
        let engine =
            Engine::new(self.server.clone(), handle.clone(), seat.slot, self.scoreboard.clone());
        let count = Rc::new(std::cell::Cell::new(0u64));
        let mut accepting = Vec::new();
        for socket in seat.sockets {
            let Ok(acceptor) = Acceptor::from_fd(socket.socket.into()) else { continue };
            let (engine, control, count) = (engine.clone(), self.control.clone(), count.clone());
            let (state, limit) = (self.state.clone(), self.connection_limit);
            accepting.push(handle.spawn_local(async move {
                accept(&engine, acceptor, state, || {
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
                handle.sleep(std::time::Duration::from_millis(20)).await;
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
    mut counted: impl FnMut(),
) {
    loop {
        tokio::select! {
            biased;
            changed = state.changed() => {
                if changed.is_err() || *state.borrow() != State::Serve {
                    break;
                }
            }
            accepted = acceptor.accept() => match accepted {
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

fn report(engine: &Engine, error: &AcceptError) {
    engine.log_main(server::log::Level::Crit, 20001, format_args!("accept failed: {error}"));
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
        engine.handle.sleep(std::time::Duration::from_secs(1)).await;
    }
}

fn publish_cpu_times(process: &ProcessSlot) {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return };
    let us = |time: nix::sys::time::TimeVal| u64::try_from(time.num_microseconds()).unwrap_or(0);
    process.set_cpu_times(us(usage.user_time()), us(usage.system_time()));
}
