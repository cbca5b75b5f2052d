//! What both forms of the page tell.

use std::sync::OnceLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use mpm::scoreboard::{LoopSnapshot, ProcessSnapshot, ProcessState, Snapshot, Status};
use server::request::Request;
use server::version::{FOLLOWS, PRODUCT, VERSION};

/// Microseconds in a second.
pub(super) const SECOND_US: u64 = 1_000_000;

/// The most letters for loops that are not there yet.
const LETTERS_MAX: usize = 4096;

/// The server at one moment.
pub(super) struct Report {
    /// The host's name, as the client asked for it.
    pub server_name: Vec<u8>,
    /// Our address that the client came to.
    pub local: String,
    /// Whether single requests are shown.
    pub extended: bool,
    /// The scoreboard.
    pub board: Snapshot,
    /// Its letters, one for each loop that there is or is to be.
    pub letters: Vec<u8>,
    /// Loops that answer, are told to finish, and wait.
    pub loops: [u64; 3],
    /// Connections: all, waiting for input, writing, kept, closing.
    pub connections: [u64; 5],
    /// The present, microseconds since the epoch.
    pub now_us: u64,
    /// The system's load.
    pub load: [f64; 3],
}

impl Report {
    /// Reads the scoreboard.
    pub(super) fn gather(request: &Request, extended: bool) -> Report {
        let engine = &request.engine;
        let board = engine.scoreboard.snapshot();
        let mut letters = Vec::new();
        let mut loops = [0; 3];
        let mut connections = [0; 5];
        for process in &board.processes {
            letters.extend(process.loops.iter().map(|seen| seen.status as u8));
            let [busy, graceful, idle] = count_loops(process);
            loops = [loops[0] + busy, loops[1] + graceful, loops[2] + idle];
            for (sum, part) in connections.iter_mut().zip(count_connections(process)) {
                *sum += part;
            }
        }
        // Room that no process has is not told: there is a lot of it, and it costs nothing.
        letters.resize(letters.len().max(board.planned_loops.min(LETTERS_MAX)), b'.');
        Report {
            server_name: request.server_name().to_vec(),
            local: request.client.local.ip().to_string(),
            extended,
            letters,
            loops,
            connections,
            now_us: engine.handle.clock().precise_wall_us(),
            load: load(),
            board,
        }
    }

    /// Seconds since the serving generation took over.
    pub(super) fn uptime_s(&self) -> u64 {
        self.now_us.saturating_sub(self.board.restarted_us) / SECOND_US
    }

    /// Generations before this one, counted from 0 as Apache does.
    pub(super) fn generation(&self) -> u32 {
        self.board.generation.saturating_sub(1)
    }

    /// User and system CPU seconds of all children.
    pub(super) fn cpu_s(&self) -> [f64; 2] {
        [self.board.cpu_user_us, self.board.cpu_system_us].map(|us| us as f64 / SECOND_US as f64)
    }

    /// Milliseconds that all requests took.
    pub(super) fn duration_ms(&self) -> u64 {
        self.board.duration_us / 1000
    }

    /// Processes that serve or finish, and those that finish.
    pub(super) fn processes(&self) -> [usize; 2] {
        let stopping = self.board.processes.iter().filter(|process| is_stopping(process)).count();
        [self.board.processes.len(), stopping]
    }
}

/// Whether a process takes no new connections.
pub(super) fn is_stopping(process: &ProcessSnapshot) -> bool {
    matches!(process.state, ProcessState::Quiescing | ProcessState::Stopping)
}

/// A process's loops: those that answer, that are told to finish, that wait.
pub(super) fn count_loops(process: &ProcessSnapshot) -> [u64; 3] {
    let mut counts = [0; 3];
    for seen in &process.loops {
        let kind = match seen.status {
            Status::Ready if !is_stopping(process) => 2,
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

/// A process's connections: all, waiting for input, writing, kept, closing.
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

fn load() -> [f64; 3] {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let mut numbers = text.split(' ').map(|number| number.parse().unwrap_or(0.0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0.0))
}

/// The product, and what it follows.
pub(super) fn server_version() -> String {
    format!("{PRODUCT}/{VERSION} ({FOLLOWS})")
}

/// The time stamp of the program.
pub(super) fn built() -> &'static str {
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

/// A time as the page shows it, with the zone's name.
pub(super) fn date(time_us: u64) -> String {
    let time = i64::try_from(time_us).ok().and_then(|us| Timestamp::from_microsecond(us).ok());
    let time = time.unwrap_or_default().to_zoned(TimeZone::system());
    time.strftime("%A, %d-%b-%Y %H:%M:%S %Z").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_counted_by_what_they_do() {
        let of = |status| LoopSnapshot { status, ..LoopSnapshot::default() };
        let mut process = ProcessSnapshot {
            state: ProcessState::Serving,
            loops: [Status::Writing, Status::Ready, Status::Graceful, Status::Starting]
                .map(of)
                .to_vec(),
            ..ProcessSnapshot::default()
        };
        assert_eq!(count_loops(&process), [1, 1, 1]);
        process.state = ProcessState::Stopping;
        assert_eq!(count_loops(&process), [1, 1, 0]);
    }

    #[test]
    fn dates_are_as_apache_writes_them() {
        let shown = date(1_795_223_088 * SECOND_US);
        assert!(shown.contains("-Nov-2026 "), "{shown}");
        assert!(built().len() >= 7 && server_version().contains("Apache/2.4"));
    }
}
