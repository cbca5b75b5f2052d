use super::*;
use crate::affinity::Affinity;
use crate::affinity::tests::Tree;
use crate::listeners::tests::settings;
use crate::shape::Shape;

/// A fake machine with as many CPUs as this thread may really use, at least two.
fn machine(name: &str) -> Option<(Tree, CpuSet)> {
    let real = mask::current().unwrap();
    let last = real.iter().last()?;
    let tree = Tree::new(name, &[("proc/self/cgroup", "0::/\n"), ("proc/stat", "cpu 0\n")]);
    tree.machine(last + 1, |cpu| (cpu, 0, 0, 1024));
    (real.len() > 1).then_some((tree, real))
}

struct Server {
    placement: Placement,
    settings: Settings,
    board: Scoreboard,
    serving: Vec<Serving>,
    now: Instant,
}

impl Server {
    fn new(tree: &Tree, affinity: Affinity) -> Self {
        let mut settings = settings(2, &[]);
        settings.shape = Shape::Event { processes: 1, loops: 2 };
        settings.affinity = affinity;
        let board = Scoreboard::new(2, 2).unwrap();
        let board_slot = board.claim(1, 0, &settings.shape).unwrap();
        let serving = vec![Serving { pid: 1, slot: 0, board_slot }];
        let placement = Placement::new(tree.roots());
        Self { placement, settings, board, serving, now: Instant::now() }
    }

    /// Advances by more than the interval of checks.
    fn turn(&mut self) -> Decided {
        self.now += 2 * LOOK_INTERVAL;
        self.placement.turn(self.now, (1, &self.settings), &self.serving, &self.board)
    }

    fn masks(&self) -> Vec<String> {
        let slots = (0..2).filter_map(|index| self.board.loop_slot(0, index));
        slots.map(|slot| CpuSet::from_words(&slot.mask()).to_string()).collect()
    }
}

#[test]
fn changes_of_what_is_allowed_are_followed() {
    // With one CPU there is nothing to plan.
    let Some((tree, real)) = machine("follow") else { return };
    let two: CpuSet = real.iter().take(2).collect();
    let (one, other) = (two.first().unwrap(), two.iter().last().unwrap());
    tree.write("cg/cpuset.cpus.effective", &two.to_string());
    tree.write("cg/cpu.max", "max 100000\n");
    let mut server = Server::new(&tree, Affinity::default());
    server.placement.prepare(1, &server.settings.clone());
    assert_eq!(server.turn().lines.len(), 2);
    assert!(server.turn().lines.is_empty());

    // A quota: loops are no longer bound.
    tree.write("cg/cpu.max", "100000 100000\n");
    let decided = server.turn();
    assert!(decided.lines[0].1.contains("a quota of 1.000"), "{decided:?}");
    assert_eq!(decided.moved, [0]);
    assert_eq!(server.masks(), [two.to_string(), two.to_string()]);

    // It is gone again: each loop has its CPU.
    tree.write("cg/cpu.max", "max 100000\n");
    assert_eq!(server.turn().moved, [0]);
    assert_eq!(server.masks(), [one.to_string(), other.to_string()]);

    // A CPU goes offline and comes back.
    tree.write("cpu/online", &format!("{other}\n"));
    assert_eq!(server.turn().moved, [0]);
    assert_eq!(server.masks(), [other.to_string(), other.to_string()]);
    tree.write("cpu/online", &format!("0-{other}\n"));
    assert_eq!(server.turn().moved, [0]);
    assert_eq!(server.masks(), [one.to_string(), other.to_string()]);

    // The cpuset shrinks.
    tree.write("cg/cpuset.cpus.effective", &one.to_string());
    assert_eq!(server.turn().moved, [0]);
    assert_eq!(server.masks(), [one.to_string(), one.to_string()]);
    let snapshot = server.board.snapshot();
    assert_eq!(snapshot.decision(Decision::Replanned), 5);
}

#[test]
fn a_change_that_a_restart_has_seen_first_is_followed() {
    let Some((tree, real)) = machine("restart") else { return };
    let two: CpuSet = real.iter().take(2).collect();
    let first: CpuSet = two.first().into_iter().collect();
    tree.write("cg/cpuset.cpus.effective", &two.to_string());
    let mut server = Server::new(&tree, Affinity::default());
    server.turn();
    tree.write("cg/cpuset.cpus.effective", &first.to_string());
    server.placement.prepare(2, &server.settings.clone());
    let decided = server.turn();
    assert!(decided.is_replanned, "{decided:?}");
    assert_eq!(server.masks(), [first.to_string(), first.to_string()]);
    assert!(!server.turn().is_replanned);
}

#[test]
fn nothing_is_followed_where_it_is_off() {
    let Some((tree, _)) = machine("off") else { return };
    for (setting, bound) in [(Setting::Auto, 2), (Setting::Off, 0)] {
        let mut server = Server::new(&tree, Affinity { setting: setting.clone(), adapt: false });
        assert_eq!(server.turn().lines.len(), bound);
        let is_watched = server.placement.next_turn().is_some();
        assert_eq!(is_watched, setting != Setting::Off, "loops are published");
        tree.write("cg/cpu.max", "100000 100000\n");
        let decided = server.turn();
        assert!(decided.lines.is_empty() && decided.moved.is_empty());
        tree.write("cg/cpu.max", "max 100000\n");
    }
}
