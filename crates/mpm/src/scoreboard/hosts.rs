//! Counters by virtual host: responses by status class, bytes, and a histogram of latencies.
//!
//! There is one cell per loop and host, written by that loop alone. A host's number belongs to its
//! label for as long as the server runs: a restart that adds a host adds a number, so counts are
//! never lost or mixed up. Nothing is mapped before a configuration requires it, and a host that a
//! loop never served costs that loop no memory.

use std::collections::HashMap;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::ProcessCells;
use super::segment::{gap, is_free};
use crate::shared::{load_bytes, map_cells, store_bytes};

/// Hosts with their own counters; those beyond share the counters of [`OTHER`].
pub const HOSTS_MAX: usize = 1024;

/// The label of hosts beyond the limit.
const OTHER: &[u8] = b"other";

/// Upper bounds of the histogram's buckets, in microseconds; one more bucket takes the rest.
pub const LATENCY_BOUNDS_US: [u64; 17] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];

/// The number of histogram buckets.
pub const BUCKETS: usize = LATENCY_BOUNDS_US.len() + 1;

/// Status classes: 1xx to 5xx.
pub const CLASSES: usize = 5;

/// Words of a cell: classes, bytes, sum of latencies, buckets; two pairs of cache lines.
const CELL_WORDS: usize = 32;
const BYTES: usize = CLASSES;
const DURATION_US: usize = BYTES + 1;
const FIRST_BUCKET: usize = DURATION_US + 1;
const USED_WORDS: usize = FIRST_BUCKET + BUCKETS;

/// Words of a label: its length and its bytes.
const LABEL_WORDS: usize = 16;

/// Words for the cells of all loops: 512 MiB of addresses, of which only the used part is memory.
const ARENA_WORDS: usize = 64 << 20;

/// The counters of one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// The host's label.
    pub label: Vec<u8>,
    /// Responses by status class, 1xx first.
    pub classes: [u64; CLASSES],
    /// Bytes of the responses' bodies.
    pub bytes: u64,
    /// Sum of the latencies.
    pub duration_us: u64,
    /// Responses by latency, each counted in one bucket.
    pub buckets: [u64; BUCKETS],
}

impl HostCounts {
    /// The number of responses.
    pub fn requests(&self) -> u64 {
        self.buckets.iter().sum()
    }

    fn add(&mut self, cell: &[AtomicU64]) {
        let of = |word: usize| cell.get(word).map_or(0, |word| word.load(Ordering::Relaxed));
        for (class, sum) in self.classes.iter_mut().enumerate() {
            *sum = sum.wrapping_add(of(class));
        }
        self.bytes = self.bytes.wrapping_add(of(BYTES));
        self.duration_us = self.duration_us.wrapping_add(of(DURATION_US));
        for (bucket, sum) in self.buckets.iter_mut().enumerate() {
            *sum = sum.wrapping_add(of(FIRST_BUCKET + bucket));
        }
    }
}

/// The counters of one loop, for the hosts of one configuration.
pub struct HostCounters {
    row: Row,
    /// The number of each host of the configuration.
    numbers: Vec<usize>,
}

impl HostCounters {
    /// Counts a response of the host at index `host` of the configuration.
    pub fn count(&self, host: usize, status: u16, bytes: u64, duration_us: u64) {
        let Some(&number) = self.numbers.get(host) else { return };
        let Some(cell) = self.row.cell(number) else { return };
        self.row.mark(number);
        let class = usize::from(status / 100).saturating_sub(1).min(CLASSES - 1);
        let bucket = LATENCY_BOUNDS_US.partition_point(|bound| *bound < duration_us);
        let words = [(class, 1), (BYTES, bytes), (DURATION_US, duration_us)];
        for (word, amount) in words.into_iter().chain([(FIRST_BUCKET + bucket, 1)]) {
            if let Some(word) = cell.get(word) {
                let sum = word.load(Ordering::Relaxed).wrapping_add(amount);
                word.store(sum, Ordering::Relaxed);
            }
        }
    }
}

/// The cells of one loop. The first holds a bit per host that was ever counted, so that readers
/// skip the others: reading shared memory would allocate a page for it.
#[derive(Clone, Copy)]
pub(super) struct Row(&'static [AtomicU64]);

impl Row {
    const NONE: Row = Row(&[]);

    fn cell(&self, number: usize) -> Option<&'static [AtomicU64]> {
        let start = (number + 1) * CELL_WORDS;
        self.0.get(start..start + CELL_WORDS)
    }

    fn mark(&self, number: usize) {
        let Some(word) = self.0.get(number / 64) else { return };
        let (marks, bit) = (word.load(Ordering::Relaxed), 1 << (number % 64));
        if marks & bit == 0 {
            word.store(marks | bit, Ordering::Release);
        }
    }

    /// The hosts that have counts, with their cells.
    fn marked(self) -> impl Iterator<Item = (usize, &'static [AtomicU64])> {
        let marks = self.0.iter().take(HOSTS_MAX / 64).enumerate();
        let numbers = marks.flat_map(|(index, word)| {
            let marks = word.load(Ordering::Acquire);
            (0..64).filter(move |bit| marks >> bit & 1 == 1).map(move |bit| index * 64 + bit)
        });
        numbers.filter_map(move |number| Some((number, self.cell(number)?)))
    }

    fn clear(self) {
        for (_, cell) in self.marked() {
            cell.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        for word in self.0.iter().take(HOSTS_MAX / 64) {
            word.store(0, Ordering::Relaxed);
        }
    }
}

/// The hosts' part of the board. Empty until a configuration requires counters.
#[derive(Default)]
pub(super) struct Hosts(OnceLock<Memory>);

struct Memory {
    /// The number of labels, and the labels.
    labels: &'static [AtomicU64],
    /// The counts of dead processes, one cell per host.
    retired: &'static [AtomicU64],
    /// The rows of living processes.
    arena: &'static [AtomicU64],
}

impl Hosts {
    /// Assigns a number to every label. For the supervisor, before it forks.
    pub(super) fn know(&self, labels: &[Vec<u8>]) -> io::Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        if self.0.get().is_none() {
            let memory = Memory {
                labels: map_cells(1 + HOSTS_MAX * LABEL_WORDS)?,
                retired: map_cells(HOSTS_MAX * CELL_WORDS)?,
                arena: map_cells(ARENA_WORDS)?,
            };
            let _ = self.0.set(memory);
        }
        if let Some(memory) = self.0.get() {
            memory.know(labels);
        }
        Ok(())
    }

    /// The counters of the loop in `row`, for the hosts with these labels.
    pub(super) fn counters(&self, row: Row, labels: &[Vec<u8>]) -> Option<HostCounters> {
        let memory = self.0.get().filter(|_| !row.0.is_empty())?;
        let known = memory.numbers();
        let other = known.get(OTHER).copied().unwrap_or(HOSTS_MAX);
        let number = |label: &Vec<u8>| known.get(shown(label)).copied().unwrap_or(other);
        Some(HostCounters { row, numbers: labels.iter().map(number).collect() })
    }

    /// Allocates the rows of a process of `loops` loops: where they begin, and how many hosts they
    /// have.
    pub(super) fn room<'p>(
        &self,
        living: impl Iterator<Item = &'p ProcessCells>,
        loops: usize,
    ) -> Option<(usize, usize)> {
        let memory = self.0.get()?;
        let hosts = memory.count();
        let taken = living.filter(|cells| !is_free(cells)).map(|cells| {
            let (first, hosts) = rows_of(cells);
            let loops = cells.loops.load(Ordering::Relaxed) as usize;
            (first, if hosts == 0 { 0 } else { loops.saturating_mul(row_words(hosts)) })
        });
        let start = gap(taken.collect(), loops * row_words(hosts), memory.arena.len())?;
        Some((start, hosts))
    }

    /// The row of a process's loop; an empty one if it has none.
    pub(super) fn row(&self, cells: &ProcessCells, index: usize) -> Row {
        let (first, hosts) = rows_of(cells);
        let Some(memory) = self.0.get().filter(|_| hosts > 0) else { return Row::NONE };
        let start = first.saturating_add(index.saturating_mul(row_words(hosts)));
        memory.arena.get(start..start.saturating_add(row_words(hosts))).map_or(Row::NONE, Row)
    }

    /// The beginnings of its memory, for tests that overwrite it.
    #[cfg(test)]
    pub(super) fn beginnings(&self) -> Vec<&'static [AtomicU64]> {
        let beginning = |cells: &'static [AtomicU64]| cells.get(..4096).unwrap_or(cells);
        let memory = self.0.get().into_iter();
        memory
            .flat_map(|memory| [memory.labels, memory.retired, memory.arena].map(beginning))
            .collect()
    }

    /// Adds a dead loop's counts to the retired ones.
    pub(super) fn retire(&self, row: Row) {
        let Some(memory) = self.0.get() else { return };
        for (number, cell) in row.marked() {
            let retired = memory.retired.iter().skip(number * CELL_WORDS);
            for (total, part) in retired.zip(cell).take(USED_WORDS) {
                total.fetch_add(part.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        row.clear();
    }

    /// The sums per host over the dead processes and the given rows of living ones.
    pub(super) fn sums(&self, rows: impl Iterator<Item = Row>) -> Vec<HostCounts> {
        let Some(memory) = self.0.get() else { return Vec::new() };
        let mut all: Vec<HostCounts> = (0..memory.count())
            .map(|number| {
                let mut counts = HostCounts { label: memory.label(number), ..Default::default() };
                let start = number * CELL_WORDS;
                counts.add(memory.retired.get(start..start + CELL_WORDS).unwrap_or(&[]));
                counts
            })
            .collect();
        for (number, cell) in rows.flat_map(Row::marked) {
            if let Some(counts) = all.get_mut(number) {
                counts.add(cell);
            }
        }
        all
    }
}

impl Memory {
    fn count(&self) -> usize {
        let count = self.labels.first().map_or(0, |count| count.load(Ordering::Acquire) as usize);
        count.min(HOSTS_MAX)
    }

    fn label_words(&self, number: usize) -> &'static [AtomicU64] {
        let start = 1 + number * LABEL_WORDS;
        self.labels.get(start..start + LABEL_WORDS).unwrap_or(&[])
    }

    fn label(&self, number: usize) -> Vec<u8> {
        load_bytes(self.label_words(number))
    }

    /// The numbers of all labels.
    fn numbers(&self) -> HashMap<Vec<u8>, usize> {
        (0..self.count()).map(|number| (self.label(number), number)).collect()
    }

    fn know(&self, labels: &[Vec<u8>]) {
        let mut known = self.numbers();
        for label in labels.iter().map(|label| shown(label)) {
            let number = known.len();
            if number >= HOSTS_MAX || known.contains_key(label) {
                continue;
            }
            let label = if number == HOSTS_MAX - 1 { OTHER } else { label };
            store_bytes(self.label_words(number), label);
            known.insert(label.to_vec(), number);
        }
        if let Some(cell) = self.labels.first() {
            cell.store(known.len() as u64, Ordering::Release);
        }
    }
}

/// A label, truncated to its room.
fn shown(label: &[u8]) -> &[u8] {
    label.get(..(LABEL_WORDS - 1) * 8).unwrap_or(label)
}

/// Words of a loop's row.
fn row_words(hosts: usize) -> usize {
    hosts.saturating_add(1).saturating_mul(CELL_WORDS)
}

/// Where a process's rows begin, and how many hosts each of them has.
fn rows_of(cells: &ProcessCells) -> (usize, usize) {
    let of = |cell: &AtomicU64| cell.load(Ordering::Relaxed) as usize;
    (of(&cells.first_row), of(&cells.hosts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::Scoreboard;
    use crate::shape::Shape;

    const SHAPE: Shape = Shape::Worker { processes: 4, threads: 2 };

    fn labels(names: &[&str]) -> Vec<Vec<u8>> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    fn count(board: &Scoreboard, process: usize, index: usize, labels: &[Vec<u8>], host: usize) {
        let slot = board.loop_slot(process, index).unwrap();
        board.host_counters(&slot, labels).unwrap().count(host, 200, 10, 60);
    }

    fn requests(board: &Scoreboard) -> Vec<(String, u64)> {
        let all = board.hosts().into_iter();
        all.map(|host| (String::from_utf8_lossy(&host.label).into(), host.requests())).collect()
    }

    #[test]
    fn nothing_is_there_until_it_is_wanted() {
        let board = Scoreboard::new(2, 2).unwrap();
        board.know_hosts(&[]).unwrap();
        let index = board.claim(1, 0, &SHAPE).unwrap();
        let slot = board.loop_slot(index, 0).unwrap();
        assert!(board.host_counters(&slot, &labels(&["a:80"])).is_none());
        assert!(board.hosts().is_empty());
    }

    #[test]
    fn counts_outlive_processes_and_configurations() {
        let board = Scoreboard::new(4, 2).unwrap();
        let first = labels(&["a:80", "b:80"]);
        board.know_hosts(&first).unwrap();
        let old = board.claim(1, 0, &SHAPE).unwrap();
        count(&board, old, 0, &first, 0);
        count(&board, old, 1, &first, 1);
        // Another order, one host fewer and one more.
        let second = labels(&["c:80", "b:80"]);
        board.know_hosts(&second).unwrap();
        let new = board.claim(2, 0, &SHAPE).unwrap();
        count(&board, new, 1, &second, 0);
        count(&board, new, 1, &second, 1);
        count(&board, old, 0, &first, 1);
        let all = [("a:80".into(), 1), ("b:80".into(), 3), ("c:80".into(), 1)];
        assert_eq!(requests(&board), all);
        board.release(old);
        assert_eq!(requests(&board), all);
        board.release(new);
        assert_eq!(requests(&board), all);
        let again = board.claim(3, 0, &SHAPE).unwrap();
        count(&board, again, 0, &second, 0);
        assert_eq!(requests(&board)[2], ("c:80".into(), 2));
    }

    #[test]
    fn answers_go_into_their_class_and_bucket() {
        let (board, wanted) = (Scoreboard::new(1, 1).unwrap(), labels(&["a"]));
        board.know_hosts(&wanted).unwrap();
        board.claim(1, 0, &Shape::Loop).unwrap();
        let slot = board.loop_slot(0, 0).unwrap();
        let counters = board.host_counters(&slot, &wanted).unwrap();
        for (status, duration_us) in [(200, 0), (304, 25), (404, 26), (503, 99_000_000), (99, 1)] {
            counters.count(0, status, 100, duration_us);
        }
        counters.count(1, 200, 1, 1);
        let seen = board.hosts().remove(0);
        assert_eq!(seen.classes, [1, 1, 1, 1, 1]);
        assert_eq!((seen.buckets[0], seen.buckets[1], seen.buckets[BUCKETS - 1]), (3, 1, 1));
        assert_eq!((seen.bytes, seen.duration_us, seen.requests()), (500, 99_000_052, 5));
    }

    #[test]
    fn hosts_without_room_share_the_last_counters() {
        let board = Scoreboard::new(2, 2).unwrap();
        let many: Vec<Vec<u8>> =
            (0..HOSTS_MAX + 5).map(|n| format!("h{n}:80").into_bytes()).collect();
        board.know_hosts(&many).unwrap();
        let index = board.claim(1, 0, &SHAPE).unwrap();
        for host in [0, HOSTS_MAX - 2, HOSTS_MAX - 1, HOSTS_MAX + 4] {
            count(&board, index, 1, &many, host);
        }
        let seen = requests(&board);
        assert_eq!(seen.len(), HOSTS_MAX);
        assert_eq!(seen.last(), Some(&("other".to_owned(), 2)));
        assert_eq!(seen[HOSTS_MAX - 2].1, 1);
    }
}
