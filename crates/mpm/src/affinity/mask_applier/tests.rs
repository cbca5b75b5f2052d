use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use super::*;
use crate::scoreboard::Scoreboard;
use crate::shape::Shape;

/// A thread that does nothing until it is dropped.
struct Idle {
    id: i32,
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Idle {
    fn new() -> Self {
        let (tell, told) = channel();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            let _ = ended.recv();
        });
        Self { id: told.recv().unwrap(), end: Some(end), thread: Some(thread) }
    }

    fn mask(&self) -> CpuSet {
        mask::of_thread(self.id).unwrap()
    }

    fn bind(&self, cpus: &CpuSet) {
        mask::pin_thread(self.id, cpus).unwrap();
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.end = None;
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A process with two loops on a CPU each, and two threads without a loop.
struct Process {
    board: Scoreboard,
    loops: [Idle; 2],
    others: [Idle; 2],
    mask_applier: MaskApplier,
    /// The allowed CPUs, and two of them.
    whole: CpuSet,
    cpus: [CpuSet; 2],
}

impl Process {
    /// `None` if there is only one CPU.
    fn new(unit: Unit) -> Option<Self> {
        let whole = mask::current().unwrap();
        let cpus: Vec<CpuSet> = whole.iter().take(2).map(|cpu| CpuSet::from_iter([cpu])).collect();
        let cpus: [CpuSet; 2] = cpus.try_into().ok()?;
        let board = Scoreboard::new(1, 2).unwrap();
        board.claim(1, 0, &Shape::Event { processes: 1, loops: 2 }).unwrap();
        let (loops, others) = ([Idle::new(), Idle::new()], [Idle::new(), Idle::new()]);
        let of_process = unit == Unit::Process;
        let homes = [0, 1].map(|at: usize| cpus[if of_process { 0 } else { at }].clone());
        for (at, (thread, home)) in loops.iter().zip(&homes).enumerate() {
            let slot = board.loop_slot(0, at).unwrap();
            slot.set_thread(u32::try_from(thread.id).unwrap());
            slot.set_place(&home.to_words(), None, false);
            thread.bind(home);
            if of_process {
                others[at].bind(home);
            }
        }
        let place = |(at, home)| (board.loop_slot(0, at).unwrap(), Some(home));
        let places = homes.into_iter().enumerate().map(place).collect();
        let mask_applier = MaskApplier::new(places, unit);
        Some(Self { board, loops, others, mask_applier, whole, cpus })
    }

    fn order(&self, at: usize, cpus: &CpuSet) {
        self.board.loop_slot(0, at).unwrap().set_place(&cpus.to_words(), None, false);
    }

    /// Applies the masks to the threads of this process only: other tests run concurrently.
    fn apply(&self, whole: &CpuSet) {
        let all = self.loops.iter().chain(&self.others).map(|thread| thread.id);
        self.mask_applier.move_all(whole, all);
    }

    fn loops(&self) -> [CpuSet; 2] {
        self.loops.each_ref().map(Idle::mask)
    }

    fn others(&self) -> [CpuSet; 2] {
        self.others.each_ref().map(Idle::mask)
    }
}

/// The set, twice.
fn both(cpus: &CpuSet) -> [CpuSet; 2] {
    [cpus.clone(), cpus.clone()]
}

#[test]
fn threads_without_a_loop_follow() {
    let Some(process) = Process::new(Unit::Loop) else { return };
    let (whole, [one, other]) = (&process.whole, &process.cpus);
    // Unpinning a loop doesn't concern the others.
    process.order(0, whole);
    process.apply(whole);
    assert_eq!(process.loops(), [whole.clone(), other.clone()]);
    assert_eq!(process.others(), both(whole));
    // One CPU is left.
    process.order(0, one);
    process.order(1, one);
    process.apply(one);
    assert_eq!((process.loops(), process.others()), (both(one), both(one)));
    // All is as before.
    process.order(1, other);
    process.apply(whole);
    assert_eq!((process.loops(), process.others()), (process.cpus.clone(), both(whole)));
}

#[test]
fn a_thread_bound_by_another_program_is_not_moved() {
    let Some(process) = Process::new(Unit::Loop) else { return };
    let (whole, [one, other]) = (&process.whole, &process.cpus);
    process.loops[1].bind(one);
    process.others[1].bind(one);
    process.order(1, whole);
    process.apply(whole);
    assert_eq!(process.loops(), both(one));
    process.order(0, other);
    process.order(1, other);
    process.apply(other);
    assert_eq!(process.loops(), [other.clone(), one.clone()]);
    assert_eq!(process.others(), [other.clone(), one.clone()]);
    // It is returned, and moves with the others.
    process.loops[1].bind(other);
    process.order(1, whole);
    process.apply(whole);
    assert_eq!(process.loops(), [other.clone(), whole.clone()]);
    assert_eq!(process.others(), [whole.clone(), one.clone()]);
}

#[test]
fn a_process_as_a_whole_goes_with_its_threads() {
    let Some(process) = Process::new(Unit::Process) else { return };
    let (whole, [one, other]) = (&process.whole, &process.cpus);
    assert_eq!((process.loops(), process.others()), (both(one), both(one)));
    for cpus in [whole, other] {
        process.order(0, cpus);
        process.order(1, cpus);
        process.apply(whole);
        assert_eq!((process.loops(), process.others()), (both(cpus), both(cpus)));
    }
}

#[test]
fn a_finishing_process_stays_within_the_allowed_cpus() {
    let Some(process) = Process::new(Unit::Loop) else { return };
    let [one, other] = &process.cpus;
    // Its loops' slots are no longer updated.
    process.apply(other);
    assert_eq!((process.loops(), process.others()), (both(other), both(other)));
    process.apply(one);
    assert_eq!((process.loops(), process.others()), (both(one), both(one)));
}
