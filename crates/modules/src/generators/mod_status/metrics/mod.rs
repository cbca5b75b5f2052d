//! `SetHandler tamarack-metrics`: the server's counters for Prometheus.
//!
//! A scrape reads the scoreboard, so it covers all processes, whichever responds. Counters persist
//! across restarts and the deaths of children. Those of single loops start again with their
//! process, as those of any restarted program.

mod exposition;
#[cfg(test)]
mod tests;

use mpm::scoreboard::{Decision, Event, HostCounts, LATENCY_BOUNDS_US, ProcessState};
use mpm::scoreboard::{LoopSnapshot, Snapshot};
use server::body::Body;
use server::hooks::{Bound, Step};
use server::request::Request;
use server::version::VERSION;
use wire::{Method, MethodSet};

use super::{Status, part, programs};
use exposition::Format;
pub use exposition::{Exposition, Kind, Labels, seconds};

/// Responds to a scrape.
pub(super) fn handle<'r>(_: Bound<'r, Status>, request: &'r mut Request) -> Step<'r> {
    part::after_asking(request, make)
}

fn make(request: &mut Request) -> Step<'_> {
    let get: MethodSet = [Method::GET].into_iter().collect();
    request.response.allowed = get;
    if request.head.method != Method::GET {
        return Step::DECLINED;
    }
    let format = Format::negotiate(request.head.headers_in.get(b"Accept"));
    request.response.content_type = Some(format.content_type().as_bytes().to_vec());
    request.response.headers_out.set(b"Cache-Control", b"no-store");
    request.engine.publish();
    let board = request.engine.scoreboard;
    let now_us = request.engine.handle.clock().precise_wall_us();
    let mut page = Exposition::new(format);
    write(&board.snapshot(), &board.hosts(), now_us, &mut page);
    programs::write_metrics(&board.programs(), &mut page);
    part::of(request).for_each(|part| part.metrics(request, &mut page));
    request.response.body = Body::from(page.finish());
    Step::OK
}

fn write(board: &Snapshot, hosts: &[HostCounts], now_us: u64, page: &mut Exposition) {
    write_server(board, page);
    write_traffic(board, page);
    write_processes(board, page);
    write_rare(board, page);
    write_loops(board, now_us, page);
    write_hosts(hosts, page);
}

fn write_server(board: &Snapshot, page: &mut Exposition) {
    page.family("tamarack_build_info", Kind::Gauge, "The version, as a label.");
    page.sample(&[("version", VERSION)], 1);
    page.family("tamarack_shape_info", Kind::Gauge, "The shape (MPM) that serves, as a label.");
    page.sample(&[("shape", board.shape.name())], 1);
    let started = seconds(board.started_us);
    let help = "When the server was started, seconds since 1970.";
    page.single("tamarack_start_time_seconds", Kind::Gauge, help, started);
    let help = "When the configuration that serves took over, seconds since 1970.";
    let since = seconds(board.generation_us);
    page.single("tamarack_generation_start_time_seconds", Kind::Gauge, help, since);
    let help =
        "The generation that serves: 1, and one more for each restart that succeeded or not.";
    page.single("tamarack_generation", Kind::Gauge, help, board.generation);
}

fn write_traffic(board: &Snapshot, page: &mut Exposition) {
    use Kind::Counter;
    page.single("tamarack_requests", Counter, "Requests answered.", board.accesses);
    page.single("tamarack_sent_bytes", Counter, "Bytes of the answers' bodies.", board.bytes);
    let help = "Time that requests took, where they are timed (ExtendedStatus).";
    page.single("tamarack_request_seconds", Counter, help, seconds(board.duration_us));
    page.single("tamarack_accepted", Counter, "Connections accepted.", board.accepted);
    let loops = || board.processes.iter().flat_map(|process| &process.loops);
    let sum = |of: fn(&LoopSnapshot) -> u64| loops().map(of).sum::<u64>();
    page.family("tamarack_connections", Kind::Gauge, "Open connections, by what they do.");
    for (state, count) in [
        ("reading", sum(|seen| seen.connections.reading)),
        ("writing", sum(|seen| seen.connections.writing)),
        ("keep_alive", sum(|seen| seen.connections.keep_alive)),
        ("closing", sum(|seen| seen.connections.closing)),
    ] {
        page.sample(&[("state", state)], count);
    }
    let http2 = sum(|seen| seen.connections.http2);
    page.single("tamarack_http2_connections", Kind::Gauge, "HTTP/2 connections.", http2);
    let streams = sum(|seen| seen.connections.streams);
    let help = "Requests in progress on HTTP/2 connections.";
    page.single("tamarack_http2_streams", Kind::Gauge, help, streams);
}

fn write_processes(board: &Snapshot, page: &mut Exposition) {
    page.family("tamarack_processes", Kind::Gauge, "Child processes, by what they do.");
    for (name, state) in [
        ("starting", ProcessState::Starting),
        ("serving", ProcessState::Serving),
        ("quiescing", ProcessState::Quiescing),
        ("stopping", ProcessState::Stopping),
    ] {
        let count = board.processes.iter().filter(|process| process.state == state).count();
        page.sample(&[("state", name)], count);
    }
    let help = "CPU time of the supervisor and of all children, those that have ended included.";
    page.family("tamarack_cpu_seconds", Kind::Counter, help);
    let user_us = board.cpu_user_us + board.ended_cpu_user_us;
    let system_us = board.cpu_system_us + board.ended_cpu_system_us;
    for (process, mode, us) in [
        ("supervisor", "user", board.supervisor_cpu_user_us),
        ("supervisor", "system", board.supervisor_cpu_system_us),
        ("children", "user", user_us),
        ("children", "system", system_us),
    ] {
        page.sample(&[("process", process), ("mode", mode)], seconds(us));
    }
    let help = "Time that loops were not waiting for events.";
    page.single("tamarack_busy_seconds", Kind::Counter, help, seconds(board.busy_us));
    let help = "Time that loops waited for a CPU.";
    page.single("tamarack_run_delay_seconds", Kind::Counter, help, seconds(board.run_delay_us));
    let help = "How often the kernel moved a loop to another CPU.";
    page.single("tamarack_cpu_migrations", Kind::Counter, help, board.migrations);
    let help = "Accepted connections that were handed to another loop.";
    page.single("tamarack_connections_handed_over", Kind::Counter, help, board.handed_over);
    let help = "Connections that came from another loop, new or idle.";
    page.single("tamarack_connections_taken_over", Kind::Counter, help, board.taken_over);
    let help = "Idle connections that were moved to another loop.";
    page.single("tamarack_connections_moved", Kind::Counter, help, board.moved);
}

fn write_rare(board: &Snapshot, page: &mut Exposition) {
    page.family(
        "tamarack_events",
        Kind::Counter,
        "Children that crashed, were replaced, hung or could not be forked; times that the shape \
         was full; companions that were replaced.",
    );
    for event in Event::ALL {
        page.sample(&[("event", event.name())], board.event(event));
    }
    let help = "Decisions on where loops run and connections go.";
    page.family("tamarack_affinity_decisions", Kind::Counter, help);
    for decision in Decision::ALL {
        page.sample(&[("decision", decision.name())], board.decision(decision));
    }
    let help = "Log lines dropped, because a pipe or disk was full.";
    page.single("tamarack_log_lines_dropped", Kind::Counter, help, board.log_lines_dropped);
}

/// A family with a sample for each loop.
type OfLoop = (&'static str, Kind, &'static str, fn(&LoopSnapshot, u64) -> Option<String>);

const LOOP_FAMILIES: &[OfLoop] = &[
    ("tamarack_loop_requests", Kind::Counter, "Requests answered.", |seen, _| {
        Some(seen.accesses.to_string())
    }),
    ("tamarack_loop_connections", Kind::Gauge, "Open connections.", |seen, _| {
        Some(seen.connections.total.to_string())
    }),
    ("tamarack_loop_busy_seconds", Kind::Counter, "Time that it was not waiting.", |seen, _| {
        Some(seconds(seen.busy_us))
    }),
    ("tamarack_loop_taken_over", Kind::Counter, "Connections from another loop.", |seen, _| {
        Some(seen.taken_over.to_string())
    }),
    (
        "tamarack_loop_run_delay_seconds",
        Kind::Counter,
        "Time that it waited for a CPU.",
        |seen, _| Some(seconds(seen.run_delay_us)),
    ),
    ("tamarack_loop_cpu_migrations", Kind::Counter, "Moves to another CPU.", |seen, _| {
        Some(seen.migrations.to_string())
    }),
    ("tamarack_loop_cpu", Kind::Gauge, "The CPU that it ran on last.", |seen, _| {
        seen.cpu.map(|cpu| cpu.to_string())
    }),
    ("tamarack_loop_pinned_cpu", Kind::Gauge, "The CPU that the plan gave it.", |seen, _| {
        seen.planned_cpu.map(|cpu| cpu.to_string())
    }),
    ("tamarack_loop_widened", Kind::Gauge, "Whether it may leave its CPU for now.", |seen, _| {
        seen.planned_cpu.map(|_| u8::from(seen.is_widened).to_string())
    }),
    (
        "tamarack_loop_heartbeat_age_seconds",
        Kind::Gauge,
        "Since it last turned.",
        |seen, now_us| {
            (seen.heartbeat_us > 0).then(|| seconds(now_us.saturating_sub(seen.heartbeat_us)))
        },
    ),
];

fn write_loops(board: &Snapshot, now_us: u64, page: &mut Exposition) {
    for (name, kind, help, value) in LOOP_FAMILIES {
        page.family(name, *kind, help);
        for process in &board.processes {
            let number = process.index.to_string();
            for (index, seen) in process.loops.iter().enumerate() {
                let Some(value) = value(seen, now_us) else { continue };
                page.sample(&[("process", &number), ("loop", &index.to_string())], value);
            }
        }
    }
}

fn write_hosts(hosts: &[HostCounts], page: &mut Exposition) {
    /// Labels of status classes.
    const CLASSES: [&str; mpm::scoreboard::CLASSES] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
    let labels: Vec<_> = hosts.iter().map(|host| String::from_utf8_lossy(&host.label)).collect();
    let all = || hosts.iter().zip(&labels);
    let help = "Answers by virtual host and status class.";
    page.family("tamarack_host_requests", Kind::Counter, help);
    for (host, label) in all() {
        for (class, count) in CLASSES.into_iter().zip(host.classes) {
            page.sample(&[("host", label), ("class", class)], count);
        }
    }
    let help = "Bytes of the answers' bodies, by virtual host.";
    page.family("tamarack_host_sent_bytes", Kind::Counter, help);
    for (host, label) in all() {
        page.sample(&[("host", label)], host.bytes);
    }
    let help = "Time from a request's first byte to the end of its answer, by virtual host.";
    page.family("tamarack_host_request_duration_seconds", Kind::Histogram, help);
    for (host, label) in all() {
        page.histogram(("host", label), &LATENCY_BOUNDS_US, &host.buckets, host.duration_us);
    }
}
