use std::io;

use super::*;
use crate::affinity::tests::Tree;
use crate::affinity::{CpuSet, Cpus, Setting, Topology};
use crate::shape::Shape;

/// A server of two processes with one loop each, on two CPUs, whose times are simulated.
struct Machine {
    tree: Tree,
    board: Scoreboard,
    plan: Plan,
    serving: Vec<Serving>,
    adapter: Adapter,
    now: Instant,
    /// Run and wait of each loop, and busy and idle of each CPU, in ms.
    loops: [(u64, u64); 2],
    cpus: [(u64, u64); 2],
}

impl Machine {
    fn new(name: &str) -> Self {
        let tree = Tree::new(name, &[]);
        let board = Scoreboard::new(4, 2).unwrap();
        let shape = Shape::Event { processes: 2, loops: 2 };
        let cpus = Cpus { allowed: CpuSet::from_kernel("0-1"), quota_thousandths: None };
        let plan = Plan::new(&Topology::default(), &cpus, shape, &Setting::Auto);
        let serving = (0..2usize).map(|slot| {
            let board_slot = board.claim(1, slot, &shape).unwrap();
            let first = board.loop_slot(board_slot, 0).unwrap();
            first.set_thread(200 + slot as u32);
            // Their heartbeats last for the whole test.
            first.heartbeat(crate::scoreboard::now_us() + 3_600_000_000);
            Serving { pid: 100 + slot as u32, slot, board_slot }
        });
        let serving = serving.collect();
        let now = Instant::now();
        // The threads don't exist.
        let mask_of = MaskOf(|_| Err(io::ErrorKind::NotFound.into()));
        let adapter = Adapter { mask_of, ..Adapter::default() };
        let (loops, cpus) = ([(0, 0); 2], [(0, 0); 2]);
        let machine = Self { tree, board, plan, serving, adapter, now, loops, cpus };
        machine.write();
        machine
    }

    fn write(&self) {
        for (slot, (run_ms, wait_ms)) in self.loops.iter().enumerate() {
            let file = format!("proc/{}/task/{}/schedstat", 100 + slot, 200 + slot);
            self.tree.write(&file, &format!("{}000000 {}000000 1\n", run_ms, wait_ms));
        }
        let [(busy0, idle0), (busy1, idle1)] = self.cpus;
        let stat = format!("cpu 0\ncpu0 {busy0} 0 0 {idle0} 0\ncpu1 {busy1} 0 0 {idle1} 0\n");
        self.tree.write("proc/stat", &stat);
    }

    /// Advances by a turn: `loops` are the shares that each ran and waited, `busy` the CPUs'.
    fn turn(&mut self, loops: [(f64, f64); 2], busy: [f64; 2]) -> Decided {
        let of = |share: f64| (share * 250.0) as u64;
        self.now += TURN;
        for index in 0..2 {
            self.loops[index].0 += of(loops[index].0);
            self.loops[index].1 += of(loops[index].1);
            self.cpus[index].0 += of(busy[index]);
            self.cpus[index].1 += of(1.0 - busy[index]);
        }
        self.write();
        let roots = self.tree.roots();
        let (serving, plan, board) = (&self.serving, &self.plan, &self.board);
        self.adapter.turn(self.now, View { serving, plan, board, roots: &roots })
    }

    fn replan(&mut self, plan: &Plan) -> Decided {
        let (serving, board, roots) = (&self.serving, &self.board, self.tree.roots());
        self.adapter.replan(self.now, View { serving, plan, board, roots: &roots })
    }

    fn turns(&mut self, turns: u32, loops: [(f64, f64); 2], busy: [f64; 2]) -> Vec<String> {
        let decided = (0..turns).flat_map(|_| self.turn(loops, busy).lines);
        // The distribution of connections is tested separately.
        let of_masks = decided.filter(|(number, _)| !(20104..20108).contains(number));
        of_masks.map(|(_, line)| line).collect()
    }

    fn mask(&self, slot: usize) -> String {
        let slot = self.board.loop_slot(self.serving[slot].board_slot, 0).unwrap();
        CpuSet::from_words(&slot.mask()).to_string()
    }
}

const ALONE: [(f64, f64); 2] = [(0.6, 0.02), (0.6, 0.02)];

#[test]
fn a_loop_leaves_the_cpu_that_another_program_takes_and_returns() {
    let mut machine = Machine::new("leaves");
    let said = machine.turns(8, ALONE, [0.6, 0.6]);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[1].ends_with("loop 1 (process 101) is bound to CPU 1"), "{said:?}");
    // Another program takes half of CPU 1.
    let held_up = [(0.6, 0.02), (0.5, 0.5)];
    let said = machine.turns(8, held_up, [0.6, 1.0]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("loop 1 (process 101) waits 50% of its runnable time"), "{said:?}");
    assert_eq!((machine.mask(1).as_str(), machine.mask(0).as_str()), ("0-1", ""));
    // It now runs on both, and the program goes on: nothing more is done.
    assert!(machine.turns(40, [(0.6, 0.1), (0.7, 0.1)], [0.9, 1.0]).is_empty());
    // The program is gone.
    let said = machine.turns(40, ALONE, [0.6, 0.6]);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("loop 1 (process 101) is bound to CPU 1 again"), "{said:?}");
    assert_eq!(machine.mask(1), "1");
    let snapshot = machine.board.snapshot();
    assert_eq!(snapshot.decision(Decision::Pinned), 2);
    assert_eq!(snapshot.decision(Decision::Widened), 1);
    assert_eq!(snapshot.decision(Decision::Returned), 1);
}

#[test]
fn a_loop_stays_on_a_shared_cpu_while_all_cpus_are_used_up() {
    let mut machine = Machine::new("used-up");
    machine.turns(8, ALONE, [0.6, 0.6]);
    // Another program takes half of CPU 1, and a client the rest of CPU 0.
    let held_up = [(0.6, 0.2), (0.5, 0.5)];
    assert!(machine.turns(40, held_up, [1.0, 1.0]).is_empty());
    // The client needs less: there is idle time, until both loops run on that CPU.
    let said = machine.turns(2, held_up, [0.7, 1.0]);
    assert_eq!(said.len(), 1, "{said:?}");
    let said = machine.turns(4, [(0.5, 0.3), (0.5, 0.5)], [1.0, 1.0]);
    let told = "loop 1 (process 101) is bound to CPU 1 again: no other CPU has idle time";
    assert_eq!(said, [told]);
    assert_eq!(machine.mask(1), "1");
}

#[test]
fn a_loop_bound_by_another_program_is_left_there() {
    let mut machine = Machine::new("outside");
    machine.turns(2, ALONE, [0.6, 0.6]);
    // The plan has it on CPU 1.
    machine.adapter.mask_of = MaskOf(|thread| match thread {
        201 => Ok(CpuSet::from_kernel("0")),
        _ => Err(io::ErrorKind::NotFound.into()),
    });
    let held_up = [(0.6, 0.02), (0.5, 0.5)];
    let said = machine.turns(8, held_up, [0.6, 1.0]);
    let told = "loop 1 (process 101) was bound to CPUs 0 by another program and is left there";
    assert_eq!(said, [told]);
    assert_eq!(machine.mask(1), "", "nothing was ordered");
    // It is returned.
    machine.adapter.mask_of = MaskOf(|_| Ok(CpuSet::from_kernel("1")));
    let said = machine.turns(8, held_up, [0.6, 1.0]);
    assert!(said[0].starts_with("loop 1 (process 101) waits 50% of its runnable time"), "{said:?}");
}

#[test]
fn the_servers_own_load_unpins_no_loop() {
    let mut machine = Machine::new("own");
    machine.turn(ALONE, [0.6, 0.6]);
    // Only the loops run; they wait for each other and for interrupts.
    assert!(machine.turns(40, [(0.97, 0.4), (0.95, 0.4)], [1.0, 1.0]).is_empty());
    // Other programs run, on both CPUs alike.
    assert!(machine.turns(40, [(0.5, 0.5), (0.5, 0.5)], [1.0, 1.0]).is_empty());
    // Other programs run, and the loops are idle.
    assert!(machine.turns(40, [(0.0, 0.0), (0.01, 0.01)], [0.0, 1.0]).is_empty());
}

#[test]
fn idle_loops_are_looked_at_less_often() {
    let mut machine = Machine::new("idle");
    machine.turn(ALONE, [0.6, 0.6]);
    machine.turn(ALONE, [0.6, 0.6]);
    assert_eq!(machine.adapter.due(), Some(machine.now + TURN));
    machine.turn([(0.0, 0.0); 2], [0.0, 0.0]);
    assert_eq!(machine.adapter.due(), Some(machine.now + TURN_IDLE));
}

#[test]
fn children_come_and_go() {
    let mut machine = Machine::new("come");
    machine.turn(ALONE, [0.6, 0.6]);
    let gone = machine.serving.pop().unwrap();
    assert!(machine.turns(2, ALONE, [0.6, 0.6]).is_empty());
    assert_eq!(machine.adapter.leaving.len(), 1, "it still runs");
    machine.tree.write("proc/101/task/201/schedstat", "");
    machine.adapter.leaving.retain_mut(|meter| meter.elapsed().is_some());
    assert_eq!(machine.adapter.leaving.len(), 0);
    machine.serving.push(Serving { pid: 77, ..gone });
    let said = machine.turns(2, ALONE, [0.6, 0.6]);
    assert_eq!(said, ["loop 1 (process 77) is bound to CPU 1"]);
    // The kernel reports nothing about this one.
    assert!(machine.turns(20, [(0.5, 0.0), (0.5, 0.5)], [0.5, 1.0]).is_empty());
}

#[test]
fn a_new_plan_moves_all_but_not_who_is_loose() {
    let mut machine = Machine::new("replan");
    machine.turns(2, ALONE, [0.6, 0.6]);
    machine.turns(8, [(0.6, 0.02), (0.5, 0.5)], [0.6, 1.0]);
    let cpus = Cpus { allowed: CpuSet::from_kernel("0-3"), quota_thousandths: Some(1000) };
    let shape = Shape::Event { processes: 2, loops: 2 };
    let free = Plan::new(&Topology::default(), &cpus, shape, &Setting::Auto);
    assert_eq!(machine.replan(&free).moved, [0, 1]);
    assert_eq!((machine.mask(0).as_str(), machine.mask(1).as_str()), ("0-3", "0-3"));
    let cpus = Cpus { quota_thousandths: None, ..cpus };
    let bound = Plan::new(&Topology::default(), &cpus, shape, &Setting::Auto);
    machine.replan(&bound);
    assert_eq!((machine.mask(0).as_str(), machine.mask(1).as_str()), ("0", "0-3"));
}

#[test]
fn a_loop_started_by_an_earlier_plan_is_moved() {
    let mut machine = Machine::new("fetched");
    for at in 0..2 {
        let slot = machine.board.loop_slot(machine.serving[at].board_slot, 0).unwrap();
        slot.set_place(&CpuSet::from_kernel("0").to_words(), None, false);
    }
    assert_eq!(machine.turn(ALONE, [0.6, 0.6]).moved, [1]);
    assert_eq!((machine.mask(0).as_str(), machine.mask(1).as_str()), ("0", "1"));
    assert!(machine.turn(ALONE, [0.6, 0.6]).moved.is_empty());
}

#[test]
fn a_new_plan_leaves_who_was_bound_from_outside() {
    let mut machine = Machine::new("replan-outside");
    for (at, mask) in [(0, "0"), (1, "1")] {
        let slot = machine.board.loop_slot(machine.serving[at].board_slot, 0).unwrap();
        slot.set_place(&CpuSet::from_kernel(mask).to_words(), None, false);
    }
    machine.turns(2, ALONE, [0.6, 0.6]);
    let cpus = Cpus { allowed: CpuSet::from_kernel("1-2"), quota_thousandths: None };
    let shape = Shape::Event { processes: 2, loops: 2 };
    let plan = Plan::new(&Topology::default(), &cpus, shape, &Setting::Auto);
    // The kernel lets the first loop run anywhere: its CPU is no longer allowed.
    machine.adapter.mask_of = MaskOf(|thread| match thread {
        200 => Ok(CpuSet::from_kernel("1-2")),
        _ => Ok(CpuSet::from_kernel("2")),
    });
    let told = "loop 1 (process 101) was bound to CPUs 2 by another program and is left there";
    assert_eq!(machine.replan(&plan).lines, [(20111, told.to_owned())]);
    // It is logged once.
    assert!(machine.replan(&plan).lines.is_empty());
}

#[test]
fn new_connections_go_to_who_has_time_and_turns() {
    let mut machine = Machine::new("steer");
    let spread = |machine: &mut Machine, turns: u32, loops, busy| {
        (0..turns).filter_map(|_| machine.turn(loops, busy).weights).collect::<Vec<_>>()
    };
    assert!(spread(&mut machine, 4, ALONE, [0.6, 0.6]).is_empty());
    let uneven = [(0.95, 0.0), (0.2, 0.0)];
    let said = spread(&mut machine, 8, uneven, [0.95, 0.2]);
    assert!(!said.is_empty() && said.windows(2).all(|two| two[0][0] > two[1][0]), "{said:?}");
    let last = spread(&mut machine, 40, [(0.2, 0.0), (0.95, 0.0)], [0.2, 0.95]);
    assert!(last.last().is_some_and(|weights| weights[0] > weights[1]), "{last:?}");
    spread(&mut machine, 20, [(0.02, 0.0); 2], [0.02, 0.02]);
    spread(&mut machine, 8, ALONE, [0.6, 0.6]);
    let steered = machine.board.snapshot().decision(Decision::Steered);
    // One has been silent for long.
    let slot = machine.board.loop_slot(machine.serving[1].board_slot, 0).unwrap();
    slot.heartbeat(crate::scoreboard::now_us() - 5_000_000);
    assert_eq!(spread(&mut machine, 4, ALONE, [0.6, 0.6]), [[16, 0]]);
    slot.heartbeat(crate::scoreboard::now_us() + 3_600_000_000);
    assert_eq!(spread(&mut machine, 4, ALONE, [0.6, 0.6]), [[]; 1]);
    // One has died.
    machine.serving.remove(0);
    assert_eq!(spread(&mut machine, 4, ALONE, [0.6, 0.6]), [[0, 16]]);
    let snapshot = machine.board.snapshot();
    assert_eq!(snapshot.decision(Decision::Steered), steered + 3);
    assert_eq!(snapshot.decision(Decision::Avoided), 2);
    assert_eq!(snapshot.decision(Decision::Readmitted), 1);
}

#[test]
fn a_loop_that_never_turned_is_stalled_too() {
    let mut machine = Machine::new("newborn");
    let slot = machine.board.loop_slot(machine.serving[1].board_slot, 0).unwrap();
    slot.heartbeat(0);
    let said = |machine: &mut Machine, turns: u32| -> Vec<u32> {
        let decided = (0..turns).flat_map(|_| machine.turn(ALONE, [0.6, 0.6]).lines);
        decided.map(|(number, _)| number).filter(|number| *number > 20103).collect()
    };
    // It may just have been forked.
    let turns = (tracked::STALLED.as_millis() / TURN.as_millis()) as u32;
    assert!(said(&mut machine, turns).is_empty());
    assert_eq!(said(&mut machine, 2), [20104, 20105]);
    slot.heartbeat(crate::scoreboard::now_us() + 3_600_000_000);
    assert_eq!(said(&mut machine, 2), [20104, 20106]);
}

#[test]
fn what_loops_waited_and_moved_is_told() {
    let mut machine = Machine::new("told");
    machine.tree.write("proc/101/task/201/sched", "se.nr_migrations  :   17\n");
    machine.turns(8, [(0.6, 0.02), (0.5, 0.5)], [0.6, 1.0]);
    let snapshot = machine.board.snapshot();
    let second = &snapshot.processes[1].loops[0];
    assert_eq!((second.migrations, snapshot.processes[0].loops[0].migrations), (17, 0));
    // Once a second: in the first of these turns, and in the fifth.
    assert_eq!(second.run_delay_us, 5 * 125_000);
}
