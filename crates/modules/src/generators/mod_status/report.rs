//! The data of both forms of the page.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mpm::scoreboard::{LoopSnapshot, ProcessSnapshot, ProcessState, ShapeKind, Snapshot, Status};
use server::engine::Engine;
use server::request::Request;
use server::version::{FOLLOWS, PRODUCT, VERSION};

use crate::mpm::numbers::Numbers;

/// Microseconds in a second.
pub(super) const SECOND_US: u64 = 1_000_000;

/// Microseconds in a tick of `times()`.
const TICK_US: u64 = 10_000;

/// Most letters for workers that do not exist yet.
const LETTERS_MAX: usize = 65_536;

/// The server's state at one moment.
pub(super) struct Report {
    /// The host's name, as requested.
    pub server_name: Vec<u8>,
    /// The local address of the connection.
    pub local: String,
    /// Whether single requests are shown.
    pub extended: bool,
    /// A snapshot of the scoreboard.
    pub board: Snapshot,
    /// Its letters, one for each existing or possible loop.
    pub letters: Vec<u8>,
    /// Numbers of busy, gracefully finishing, and idle loops.
    pub loops: [u64; 3],
    /// Numbers of connections: all, waiting for input, writing, keep-alive, closing.
    pub connections: [u64; 5],
    /// The present time in microseconds since the epoch.
    pub now_us: u64,
    /// The system's load averages.
    pub load: [f64; 3],
}

impl Report {
    /// Reads the scoreboard.
    pub(super) fn gather(request: &Request, extended: bool) -> Report {
        let engine = &request.engine;
        let board = engine.scoreboard.snapshot();
        let mut loops = [0; 3];
        let mut connections = [0; 5];
        for process in &board.processes {
            let [busy, graceful, idle] = count_loops(process, board.generation);
            loops = [loops[0] + busy, loops[1] + graceful, loops[2] + idle];
            for (sum, part) in connections.iter_mut().zip(count_connections(process)) {
                *sum += part;
            }
        }
        Report {
            server_name: request.server_name().to_vec(),
            local: request.connection.local.ip().to_string(),
            extended,
            letters: letters(&board),
            loops,
            connections,
            now_us: engine.handle.clock().precise_wall_us(),
            load: load(),
            board,
        }
    }

    /// Seconds since the server was started or restarted ungracefully.
    pub(super) fn uptime_s(&self) -> u64 {
        self.now_us.saturating_sub(self.board.restarted_us) / SECOND_US
    }

    /// The generation, counted from 0 as in Apache.
    pub(super) fn generation(&self) -> u32 {
        self.board.generation.saturating_sub(1)
    }

    /// Requests since the server was started or restarted ungracefully.
    pub(super) fn accesses(&self) -> u64 {
        self.board.accesses.saturating_sub(self.board.accesses_before)
    }

    /// Bytes sent, likewise.
    pub(super) fn bytes(&self) -> u64 {
        self.board.bytes.saturating_sub(self.board.bytes_before)
    }

    /// CPU seconds: user and system of the supervisor and its children, then user and system of the
    /// children that have ended.
    pub(super) fn cpu_s(&self) -> [f64; 4] {
        let board = &self.board;
        let all_us = [
            board.supervisor_cpu_user_us + board.cpu_user_us,
            board.supervisor_cpu_system_us + board.cpu_system_us,
            board.ended_cpu_user_us,
            board.ended_cpu_system_us,
        ];
        // In clock ticks, like times().
        all_us.map(|us| (us / TICK_US) as f64 / (SECOND_US / TICK_US) as f64)
    }

    /// Total duration of all requests in milliseconds, likewise.
    pub(super) fn duration_ms(&self) -> u64 {
        self.board.duration_us.saturating_sub(self.board.duration_us_before) / 1000
    }

    /// Numbers of all processes, and of those that are finishing.
    pub(super) fn processes(&self) -> [usize; 2] {
        let stopping = self.board.processes.iter().filter(|process| is_stopping(process)).count();
        [self.board.processes.len(), stopping]
    }
}

/// Whether a process accepts no new connections.
pub(super) fn is_stopping(process: &ProcessSnapshot) -> bool {
    matches!(process.state, ProcessState::Quiescing | ProcessState::Stopping)
}

/// The letters of all workers. If the number of processes varies, each has its slot, and free slots
/// are shown; in other shapes loops are adjacent.
fn letters(board: &Snapshot) -> Vec<u8> {
    let of = |process: &ProcessSnapshot| -> Vec<u8> {
        process.loops.iter().map(|seen| seen.status as u8).collect()
    };
    if board.shape.is_async() {
        let mut letters: Vec<u8> = board.processes.iter().flat_map(of).collect();
        letters.resize(letters.len().max(board.planned_loops.min(LETTERS_MAX)), b'.');
        return letters;
    }
    let most = board.processes.iter().map(|process| process.loops.len()).max();
    let each = most.unwrap_or(0).max(board.loops_each).max(1);
    let places = board.processes.last().map_or(0, |process| process.index + 1);
    let places = places.max(board.process_limit.min(LETTERS_MAX / each));
    let mut letters = vec![b'.'; places * each];
    for process in &board.processes {
        let start = process.index * each;
        for (place, letter) in letters.iter_mut().skip(start).zip(of(process)) {
            *place = letter;
        }
    }
    letters
}

/// Numbers of a process's busy, gracefully finishing, and idle loops. Except in prefork, the loops
/// of a finishing process count as neither (`status_handler`).
pub(super) fn count_loops(process: &ProcessSnapshot, generation: u32) -> [u64; 3] {
    let mut counts = [0; 3];
    if is_stopping(process) && process.shape != ShapeKind::Prefork {
        return counts;
    }
    for seen in &process.loops {
        let kind = match seen.status {
            Status::Ready if process.generation == generation => 2,
            Status::Graceful => 1,
            Status::Reading
            | Status::Writing
            | Status::KeepAlive
            | Status::Dns
            | Status::Closing
            | Status::Logging => 0,
            Status::Ready | Status::Dead | Status::Starting | Status::IdleKill => continue,
        };
        if let Some(count) = counts.get_mut(kind) {
            *count += 1;
        }
    }
    counts
}

/// The numbers of busy and idle threads of the running generation. A process whose loops have many
/// connections each counts as one of Apache's, with ThreadsPerChild threads, a connection for each.
pub(crate) fn busy_and_idle(engine: &Engine) -> [u64; 2] {
    let numbers = Numbers::of(&engine.server);
    let threads = numbers.map_or(1, |(_, numbers)| numbers.threads_per_child as u64);
    let board = engine.scoreboard.snapshot();
    let is_running = |process: &&ProcessSnapshot| {
        let is_there =
            |seen: &LoopSnapshot| !matches!(seen.status, Status::Dead | Status::Starting);
        let is_current = process.generation == board.generation && !is_stopping(process);
        is_current && process.loops.iter().any(is_there)
    };
    let mut counts = [0, 0];
    for process in board.processes.iter().filter(is_running) {
        let [busy, idle] = match process.shape {
            ShapeKind::Prefork | ShapeKind::Worker => {
                let [busy, graceful, idle] = count_loops(process, board.generation);
                [busy + graceful, idle]
            }
            ShapeKind::Event | ShapeKind::Loop => {
                let [_, _, writing, _, closing] = count_connections(process);
                let busy = writing + closing;
                [busy, threads.saturating_sub(busy)]
            }
        };
        counts = [counts[0] + busy, counts[1] + idle];
    }
    counts
}

/// Numbers of a process's connections: all, waiting for input, writing, keep-alive, closing.
pub(super) fn count_connections(process: &ProcessSnapshot) -> [u64; 5] {
    let sum = |part: fn(&LoopSnapshot) -> u64| process.loops.iter().map(part).sum();
    [
        sum(|seen| seen.connections.total),
        sum(|seen| seen.connections.reading),
        sum(|seen| seen.connections.writing),
        sum(|seen| seen.connections.keep_alive),
        sum(|seen| seen.connections.closing),
    ]
}

/// Most bytes of `/proc/loadavg`.
const LOADAVG_BYTES_MAX: u64 = 4096;

fn load() -> [f64; 3] {
    let text = regular::read("/proc/loadavg", LOADAVG_BYTES_MAX).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0.0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// The product, and the version of Apache that it follows.
pub(crate) fn server_version() -> String {
    format!("{PRODUCT}/{VERSION} ({FOLLOWS})")
}

/// The time stamp of the executable.
pub(crate) fn built() -> &'static str {
    static BUILT: OnceLock<String> = OnceLock::new();
    BUILT.get_or_init(|| {
        let file = std::env::current_exe().and_then(std::fs::metadata);
        let stamp = file.and_then(|file| file.modified()).ok();
        let time = stamp.and_then(|stamp| Timestamp::try_from(stamp).ok());
        time.map_or_else(
            || "unknown".to_owned(),
            |time| time.strftime("%Y-%m-%dT%H:%M:%S").to_string(),
        )
    })
}

/// Formats a time as on the page, with the zone's name.
pub(super) fn date(time_us: u64) -> String {
    let time = i64::try_from(time_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    let time = time.unwrap_or_default().to_zoned(TimeZone::system());
    time.strftime("%A, %d-%b-%Y %H:%M:%S %Z").to_string()
}

#[cfg(test)]
mod tests {
    use mpm::Scoreboard;

    use super::*;

    fn process(shape: ShapeKind, index: usize, all: &[Status]) -> ProcessSnapshot {
        let of = |status: &Status| LoopSnapshot { status: *status, ..LoopSnapshot::default() };
        ProcessSnapshot {
            index,
            shape,
            generation: 2,
            state: ProcessState::Serving,
            loops: all.iter().map(of).collect(),
            ..ProcessSnapshot::default()
        }
    }

    #[test]
    fn loops_are_counted_by_what_they_do() {
        let all = [Status::Writing, Status::Ready, Status::Graceful, Status::Starting];
        let mut seen = process(ShapeKind::Worker, 0, &all);
        assert_eq!(count_loops(&seen, 2), [1, 1, 1]);
        assert_eq!(count_loops(&seen, 3), [1, 1, 0], "idle ones of another generation");
        seen.state = ProcessState::Quiescing;
        assert_eq!(count_loops(&seen, 3), [0, 0, 0]);
        seen.shape = ShapeKind::Prefork;
        assert_eq!(count_loops(&seen, 3), [1, 1, 0]);
    }

    #[test]
    fn every_process_has_its_place_and_free_places_show() {
        let (ready, writing) = (Status::Ready, Status::Writing);
        let mut board = Scoreboard::new(1, 1).unwrap().snapshot();
        (board.shape, board.process_limit) = (ShapeKind::Worker, 4);
        (board.loops_each, board.planned_loops) = (3, 6);
        board.processes = vec![
            process(ShapeKind::Worker, 0, &[ready, writing, ready]),
            process(ShapeKind::Worker, 2, &[writing, ready, ready]),
        ];
        assert_eq!(letters(&board), b"_W_...W__...");
        board.process_limit = 1;
        assert_eq!(letters(&board), b"_W_...W__");
        board.shape = ShapeKind::Event;
        board.planned_loops = 7;
        assert_eq!(letters(&board), b"_W_W__.");
    }

    #[test]
    fn dates_are_as_apache_writes_them() {
        let shown = date(1_795_223_088 * SECOND_US);
        assert!(shown.contains("-Nov-2026 "), "{shown}");
        assert!(built().len() >= 7 && server_version().contains("Apache/2.4"));
    }
}
