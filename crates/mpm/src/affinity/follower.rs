//! The child's side: its threads go where the supervisor has moved them, those too that serve
//! nobody. A thread that is not where it was put was bound by somebody else, and stays there.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Mutex, PoisonError};

use super::cpu_set::CpuSet;
use super::mask;
use super::plan::Unit;
use crate::scoreboard::LoopSlot;

/// Where each thread of the process has its name.
const THREADS: &str = "/proc/self/task";

/// Moves the threads of a process.
pub(crate) struct Follower {
    /// The slots of the process's loops, which say where they are to run.
    slots: Box<[LoopSlot]>,
    /// What is placed: with whole processes the threads that serve nobody go with the others.
    unit: Unit,
    given: Mutex<Given>,
}

/// Where the threads were put.
struct Given {
    loops: Vec<Put>,
    /// All threads that are no loop's.
    others: Put,
}

/// The CPUs that threads were given.
#[derive(Clone)]
struct Put {
    /// Last, with success.
    done: CpuSet,
    /// Last, whether they were there to be moved or not: who binds them so has given them back.
    wanted: CpuSet,
}

impl Follower {
    /// For loops with these slots, each of which begins on the CPUs beside it, or where the process
    /// may run. To be made before the process binds itself.
    pub(crate) fn new(loops: Vec<(LoopSlot, Option<CpuSet>)>, unit: Unit) -> Self {
        let whole = mask::current().unwrap_or_default();
        let (slots, cpus): (Vec<LoopSlot>, Vec<Option<CpuSet>>) = loops.into_iter().unzip();
        let process = cpus.first().cloned().flatten().filter(|_| unit == Unit::Process);
        let others = Put::new(process.unwrap_or_else(|| whole.clone()));
        let loops = cpus.into_iter().map(|cpus| Put::new(cpus.unwrap_or_else(|| whole.clone())));
        let given = Mutex::new(Given { loops: loops.collect(), others });
        Self { slots: slots.into(), unit, given }
    }

    /// Moves the threads to where their loops' slots say, and the others to where they belong then.
    /// The slots of a process that is left to finish say nothing new: of their CPUs its threads
    /// keep those that are allowed still.
    pub(crate) fn follow(&self) {
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

    /// Binds a thread to the CPUs that are `wanted` now, unless somebody else has bound it. Whether
    /// it is there. The kernel takes away what is no longer allowed or online, and gives a thread
    /// that has nothing left all there is.
    fn move_thread(&self, thread: i32, wanted: &CpuSet, whole: &CpuSet) -> bool {
        let Ok(now) = mask::of_thread(thread) else { return false };
        let is_own = [&self.done, &self.wanted, &self.done.and(whole), whole].contains(&&now);
        // CPUs that have just been taken away are not in the next mask.
        now == *wanted || is_own && mask::pin_thread(thread, wanted).is_ok()
    }
}

/// What of `cpus` is in `whole`; all of that where nothing is.
fn within(cpus: &CpuSet, whole: &CpuSet) -> CpuSet {
    let both = cpus.and(whole);
    if both.is_empty() { whole.clone() } else { both }
}

/// The threads that the process has. Read through, not held open: see [`super::meter`].
fn threads() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir(THREADS).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
