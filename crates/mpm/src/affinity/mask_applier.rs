//! The child's side: binds its threads as the supervisor has decided, including threads that serve
//! no connections. A thread with any other mask was bound by another program and is left alone.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::cpu_set::CpuSet;
use super::mask;
use super::plan::Unit;
use crate::scoreboard::LoopSlot;

/// The directory with an entry per thread of the process.
const THREADS: &str = "/proc/self/task";

/// Applies masks to the threads of a process.
pub(crate) struct MaskApplier {
    /// The slots of the process's loops, which hold their masks.
    slots: Box<[LoopSlot]>,
    /// What is placed: if whole processes are, threads without a loop follow the loops.
    unit: Unit,
    given: Mutex<Given>,
}

/// The masks set so far.
struct Given {
    loops: Vec<Put>,
    /// The mask of all threads that belong to no loop.
    others: Put,
}

/// The masks set for one loop, or for the other threads.
#[derive(Clone)]
struct Put {
    /// The last mask that was set successfully.
    done: CpuSet,
    /// The last mask requested, whether or not the thread existed. If another program sets this
    /// mask, the thread counts as given back.
    wanted: CpuSet,
}

impl MaskApplier {
    /// Creates the applier for loops with these slots, each of which starts on its CPUs, or on all
    /// of the process's. Must precede the binding of the process itself.
    pub(crate) fn new(loops: Vec<(LoopSlot, Option<CpuSet>)>, unit: Unit) -> Self {
        let whole = mask::current().unwrap_or_default();
        let (slots, cpus): (Vec<LoopSlot>, Vec<Option<CpuSet>>) = loops.into_iter().unzip();
        let process = cpus.first().cloned().flatten().filter(|_| unit == Unit::Process);
        let others = Put::new(process.unwrap_or_else(|| whole.clone()));
        let loops = cpus.into_iter().map(|cpus| Put::new(cpus.unwrap_or_else(|| whole.clone())));
        let given = Mutex::new(Given { loops: loops.collect(), others });
        Self { slots: slots.into(), unit, given }
    }

    /// Binds the threads to the masks in their loops' slots, and the others accordingly. The slots
    /// of a process that is finishing are not updated: its threads keep those of their CPUs that
    /// are still allowed.
    pub(crate) fn apply(&self) {
        if let Some(whole) = mask::whole() {
            self.move_all(&whole, threads());
        }
    }

    fn move_all(&self, whole: &CpuSet, threads: impl Iterator<Item = i32>) {
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let Given { loops, others } = &mut *given;
        let mut serving = BTreeSet::new();
        for (slot, put) in self.slots.iter().zip(loops.iter_mut()) {
            let thread = slot.thread().and_then(|thread| i32::try_from(thread).ok());
            serving.extend(thread);
            let told = CpuSet::from_words(&slot.mask());
            let wanted = within(if told.is_empty() { &put.wanted } else { &told }, whole);
            if thread.is_some_and(|thread| put.move_thread(thread, &wanted, whole)) {
                put.done = wanted.clone();
            }
            put.wanted = wanted;
        }
        let first = loops.first().filter(|_| self.unit == Unit::Process);
        let wanted = first.map_or_else(|| whole.clone(), |first| first.wanted.clone());
        if wanted != others.wanted {
            for thread in threads.filter(|thread| !serving.contains(thread)) {
                others.move_thread(thread, &wanted, whole);
            }
            *others = Put::new(wanted);
        }
    }
}

impl Put {
    fn new(cpus: CpuSet) -> Self {
        Self { done: cpus.clone(), wanted: cpus }
    }

    /// Binds a thread to the CPUs in `wanted`, unless another program has bound it. Returns whether
    /// it is bound to them. The kernel removes CPUs that are no longer allowed or online, and gives
    /// a thread that has none left all of them.
    fn move_thread(&self, thread: i32, wanted: &CpuSet, whole: &CpuSet) -> bool {
        let Ok(now) = mask::of_thread(thread) else { return false };
        let is_own = [&self.done, &self.wanted, &self.done.and(whole), whole].contains(&&now);
        // CPUs that were just taken away are missing from the next mask.
        now == *wanted || is_own && mask::pin_thread(thread, wanted).is_ok()
    }
}

/// The part of `cpus` within `whole`, or `whole` if there is none.
fn within(cpus: &CpuSet, whole: &CpuSet) -> CpuSet {
    let both = cpus.and(whole);
    if both.is_empty() { whole.clone() } else { both }
}

/// The threads of the process. Read through instead of held open: see [`super::meter`].
fn threads() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(THREADS).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
