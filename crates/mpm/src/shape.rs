//! Processes × loops: what an MPM amounts to here.

/// A shape: the number of processes, and of loops or threads in each.
///
/// The process in slot `s` has [`Shape::loops_of`]`(s)` loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// `event`: processes with several loops, each with many connections and its own listening
    /// sockets.
    Event {
        /// Number of processes.
        processes: usize,
        /// Loops of all processes together.
        loops: usize,
    },
    /// `worker`: processes × threads, one connection each, one shared listener.
    Worker {
        /// Number of processes.
        processes: usize,
        /// Threads of each process.
        threads: usize,
    },
    /// `prefork`: processes with one connection each, one shared listener.
    Prefork {
        /// Number of processes.
        processes: usize,
    },
    /// One process with one loop.
    Loop,
}

/// Apache's `StartServers` default for event and worker is 3, Debian's is 2. With 2, one crash does
/// not take the whole service down.
pub const DEFAULT_EVENT_PROCESSES: usize = 2;

/// Loops per process at most.
pub const LOOPS_PER_PROCESS_MAX: usize = 1024;

impl Shape {
    /// The event shape for `cpus` allowed CPUs: one loop per CPU, distributed over `start_servers`
    /// processes (default [`DEFAULT_EVENT_PROCESSES`]), but never a process without a loop.
    ///
    /// `server_limit` caps the processes. `ThreadsPerChild` and `MaxRequestWorkers` bound the
    /// connections that Apache works on at once; a loop has no such bound, so they don't determine
    /// the number of loops (docs/decisions/2026-11-20-event-shape.md).
    pub fn event(cpus: usize, start_servers: Option<usize>, server_limit: Option<usize>) -> Self {
        let wanted = start_servers.unwrap_or(DEFAULT_EVENT_PROCESSES);
        let allowed = wanted.min(server_limit.unwrap_or(usize::MAX)).max(1);
        let loops = cpus.max(1);
        let processes = allowed.min(loops).max(loops.div_ceil(LOOPS_PER_PROCESS_MAX));
        Self::Event { processes, loops }
    }

    /// Number of processes, at least 1.
    pub fn processes(&self) -> usize {
        match *self {
            Self::Event { processes, .. }
            | Self::Worker { processes, .. }
            | Self::Prefork { processes } => processes.max(1),
            Self::Loop => 1,
        }
    }

    /// Loops (or threads) of the process in `slot`, at least 1. If the loops don't divide evenly,
    /// the first processes have one more than the others.
    pub fn loops_of(&self, slot: usize) -> usize {
        match *self {
            Self::Event { processes, loops } => {
                let processes = processes.max(1);
                let extra = usize::from(slot < loops % processes);
                (loops / processes + extra).max(1)
            }
            Self::Worker { threads, .. } => threads.max(1),
            Self::Prefork { .. } | Self::Loop => 1,
        }
    }

    /// The largest number of loops in a process.
    pub fn loops_per_process(&self) -> usize {
        self.loops_of(0)
    }

    /// Loops of all processes together.
    pub fn total_loops(&self) -> usize {
        (0..self.processes()).map(|slot| self.loops_of(slot)).sum()
    }

    /// The number of the first loop of the process in `slot`, counted over all processes.
    pub fn first_loop_of(&self, slot: usize) -> usize {
        (0..slot).map(|earlier| self.loops_of(earlier)).sum()
    }

    /// Whether a thread serves one connection at a time and blocks in its system calls.
    pub fn blocks_in_place(&self) -> bool {
        matches!(self, Self::Worker { .. } | Self::Prefork { .. })
    }

    /// Whether each loop has its own listening sockets (SO_REUSEPORT). Otherwise all accept from
    /// one shared socket per address.
    pub fn has_own_listeners(&self) -> bool {
        matches!(self, Self::Event { .. } | Self::Loop)
    }

    /// This shape, limited to `processes` and to `loops_each` per process.
    pub(crate) fn cut_to(self, processes: usize, loops_each: usize) -> Self {
        let count = self.processes().min(processes.max(1));
        match self {
            Self::Event { loops, .. } => {
                Self::Event { processes: count, loops: loops.min(count * loops_each.max(1)) }
            }
            Self::Worker { threads, .. } => {
                Self::Worker { processes: count, threads: threads.min(loops_each.max(1)) }
            }
            Self::Prefork { .. } => Self::Prefork { processes: count },
            Self::Loop => Self::Loop,
        }
    }

    /// The MPM's name in Apache.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Event { .. } => "event",
            Self::Worker { .. } => "worker",
            Self::Prefork { .. } => "prefork",
            Self::Loop => "loop",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_spreads_one_loop_per_cpu() {
        assert_eq!(Shape::event(1, None, None), Shape::Event { processes: 1, loops: 1 });
        assert_eq!(Shape::event(0, Some(0), None), Shape::Event { processes: 1, loops: 1 });
        assert_eq!(Shape::event(64, Some(3), Some(16)), Shape::Event { processes: 3, loops: 64 });
        assert_eq!(Shape::event(8, Some(40), Some(5)), Shape::Event { processes: 5, loops: 8 });
        let shape = Shape::event(3, None, None);
        assert_eq!((shape.loops_of(0), shape.loops_of(1)), (2, 1));
        assert_eq!((shape.total_loops(), shape.first_loop_of(1)), (3, 2));
        assert_eq!(shape.loops_per_process(), 2);
    }

    #[test]
    fn cutting_keeps_at_least_one_loop() {
        let shape = Shape::event(64, Some(4), None).cut_to(2, 8);
        assert_eq!((shape.processes(), shape.total_loops()), (2, 16));
        assert_eq!(Shape::Loop.cut_to(0, 0).total_loops(), 1);
    }
}
