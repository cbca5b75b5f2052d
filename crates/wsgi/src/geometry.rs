//! Where what is in a region.

/// Bytes of the stream from a loop to a worker.
pub const DOWN_BYTES: u32 = 256 << 10;

/// Bytes of the stream from a worker to a loop.
pub const UP_BYTES: u32 = 32 << 10;

/// The most slots.
pub const SLOTS_MAX: u32 = 4096;

/// The most lanes: loops of all children.
pub const LANES_MAX: u32 = 2048;

/// The most places for worker processes.
pub const PROCESSES_MAX: u32 = 2048;

/// Slots come in whole words of a lane's set.
const SLOTS_STEP: u32 = 64;

/// The counter of tickets, and on a line of their own the flag that requests wait and the time when
/// a loop looked after them.
const HEADER_BYTES: usize = 128;
const LINE: usize = 64;
const PAGE: usize = 4096;

/// A worker process's three words.
const PLACE_BYTES: usize = 16;

/// A slot's words: a line that the loop writes, and one that the worker writes.
const WORDS_BYTES: usize = 2 * LINE;

/// The size of a region. Both sides know it by other ways than the region itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    slots: u32,
    lanes: u32,
    processes: u32,
}

impl Geometry {
    /// At least so many, within the limits.
    pub fn new(slots: usize, lanes: usize, processes: usize) -> Geometry {
        let limited = |count: usize, most: u32| u32::try_from(count).unwrap_or(most).clamp(1, most);
        Geometry {
            slots: limited(slots, SLOTS_MAX).next_multiple_of(SLOTS_STEP),
            lanes: limited(lanes, LANES_MAX),
            processes: limited(processes, PROCESSES_MAX),
        }
    }

    /// The number of slots.
    pub fn slots(&self) -> u32 {
        self.slots
    }

    /// The number of lanes.
    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    /// The number of worker processes.
    pub fn processes(&self) -> u32 {
        self.processes
    }

    /// The size in bytes.
    pub fn bytes(&self) -> usize {
        self.data_start() + self.slots as usize * (DOWN_BYTES + UP_BYTES) as usize
    }

    pub(crate) fn ticket(&self) -> usize {
        0
    }

    pub(crate) fn starving(&self) -> usize {
        LINE
    }

    pub(crate) fn looked(&self) -> usize {
        LINE + 4
    }

    pub(crate) fn place(&self, process: u32) -> usize {
        debug_assert!(process < self.processes);
        HEADER_BYTES + process as usize * PLACE_BYTES
    }

    fn lanes_start(&self) -> usize {
        (HEADER_BYTES + self.processes as usize * PLACE_BYTES).next_multiple_of(LINE)
    }

    fn lane_bytes(&self) -> usize {
        LINE + (self.set_words() * size_of::<u64>()).next_multiple_of(LINE)
    }

    /// The words of a lane's set.
    pub(crate) fn set_words(&self) -> usize {
        (self.slots / SLOTS_STEP) as usize
    }

    pub(crate) fn rung(&self, lane: u32) -> usize {
        debug_assert!(lane < self.lanes);
        self.lanes_start() + lane as usize * self.lane_bytes()
    }

    /// Whether a lane's loop looks without its bell.
    pub(crate) fn looks(&self, lane: u32) -> usize {
        self.rung(lane) + 4
    }

    pub(crate) fn set_word(&self, lane: u32, word: usize) -> usize {
        debug_assert!(word < self.set_words());
        self.rung(lane) + LINE + word * size_of::<u64>()
    }

    fn states_start(&self) -> usize {
        self.lanes_start() + self.lanes as usize * self.lane_bytes()
    }

    pub(crate) fn state(&self, slot: u32) -> usize {
        debug_assert!(slot < self.slots);
        self.states_start() + slot as usize * size_of::<u64>()
    }

    fn words_start(&self) -> usize {
        (self.states_start() + self.slots as usize * size_of::<u64>()).next_multiple_of(LINE)
    }

    /// The words of a slot that the loop writes.
    pub(crate) fn loop_words(&self, slot: u32) -> usize {
        debug_assert!(slot < self.slots);
        self.words_start() + slot as usize * WORDS_BYTES
    }

    /// The words of a slot that the worker writes.
    pub(crate) fn worker_words(&self, slot: u32) -> usize {
        self.loop_words(slot) + LINE
    }

    fn data_start(&self) -> usize {
        (self.words_start() + self.slots as usize * WORDS_BYTES).next_multiple_of(PAGE)
    }

    pub(crate) fn down(&self, slot: u32) -> usize {
        debug_assert!(slot < self.slots);
        self.data_start() + slot as usize * (DOWN_BYTES + UP_BYTES) as usize
    }

    pub(crate) fn up(&self, slot: u32) -> usize {
        self.down(slot) + DOWN_BYTES as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps() {
        for (slots, lanes, processes) in [(1, 1, 1), (200, 7, 3), (5000, 5000, 5000)] {
            let it = Geometry::new(slots, lanes, processes);
            let (slot, lane, process) = (it.slots() - 1, it.lanes() - 1, it.processes() - 1);
            assert!(it.place(process) + PLACE_BYTES <= it.rung(0));
            assert!(it.set_word(lane, it.set_words() - 1) + 8 <= it.state(0));
            assert!(lane == 0 || it.set_word(0, it.set_words() - 1) + 8 <= it.rung(1));
            assert!(it.state(slot) + 8 <= it.loop_words(0));
            assert!(it.worker_words(slot) + LINE <= it.down(0));
            assert_eq!(it.up(slot) + UP_BYTES as usize, it.bytes());
            assert_eq!(it.slots() % 64, 0);
        }
    }
}
