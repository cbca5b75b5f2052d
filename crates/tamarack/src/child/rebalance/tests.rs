use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use mpm::Scoreboard;
use rt::{Accepted, Loop};

use super::window::Window;
use super::*;

const LIMITS: Limits = Limits { room: 10, admission: Admission { most: 10, near: 9 } };

fn peers(count: usize) -> PeerLoops {
    let peer = |number| PeerLoop {
        number,
        slot: Scoreboard::of_one_loop().unwrap().1,
        load: Arc::default(),
        inbox: Arc::new(Inbox::new(2)),
        limits: LIMITS,
    };
    PeerLoops { all: (0..count).map(peer).collect(), own: 0 }
}

fn migration() -> Migration {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let peer = listener.local_addr().unwrap();
    Migration::Accepted(Accepted { fd: client.into(), peer, local: None })
}

/// Runs `what` while a loop with this load is stuck in one long turn.
fn while_stuck(load: &Arc<Load>, what: impl FnOnce()) {
    let (end, ended) = mpsc::channel::<()>();
    let of_loop = load.clone();
    let stuck = std::thread::spawn(move || {
        let main = async move |_| {
            let _ = ended.recv();
        };
        Loop::new("stuck").load(of_loop).start(main)
    });
    while load.turn_us() < STUCK_US {
        std::thread::sleep(Duration::from_millis(10));
    }
    what();
    drop(end);
    stuck.join().unwrap().unwrap();
}

#[test]
fn a_stuck_loop_is_handed_nothing_and_what_it_has_not_taken_comes_back() {
    let peers = peers(2);
    let other = &peers.all[1];
    let mut window = Window::new(0);
    window.begin(&peers, 1_000);
    assert_eq!(window.other(&peers, 2_000).map(|(at, _)| at), Some(1));
    other.inbox.put(migration()).unwrap();
    assert_eq!(peers.unclaimed().count(), 0);
    while_stuck(&other.load, || {
        assert!(!other.can_take());
        assert!(window.other(&peers, 2_000).is_none());
        assert_eq!(peers.unclaimed().count(), 1);
        assert_eq!(other.inbox.waiting(), 0);
    });
}

#[test]
fn a_loop_that_is_full_or_ends_is_handed_nothing() {
    let peers = peers(4);
    for _ in 0..LIMITS.room {
        peers.all[1].slot.connections().open.up();
        peers.all[2].slot.connections().writing.up();
    }
    let willing = || peers.all.iter().map(PeerLoop::can_take).collect::<Vec<_>>();
    assert_eq!(willing(), [true, false, false, true]);
    peers.all[3].inbox.close();
    assert_eq!(willing(), [true, false, false, false]);
    peers.all[2].slot.connections().writing.down();
    assert_eq!(willing(), [true, false, true, false]);
    (0..2).for_each(|_| peers.all[2].inbox.put(migration()).unwrap());
    assert_eq!(willing(), [true, false, false, false]);
}

#[test]
fn two_others_are_looked_at_and_never_the_loop_itself() {
    let mut peers = peers(5);
    peers.own = 3;
    let mut window = Window::new(3);
    let mut chosen = [0; 5];
    // All but one are full, so that this one is chosen whenever it is sampled.
    for only in [0, 1, 2, 4] {
        for (at, peer) in peers.all.iter().enumerate() {
            let open = peer.slot.connections().open;
            let wanted = if at == only { 0 } else { LIMITS.room as u64 };
            while open.now() != wanted {
                if open.now() < wanted { open.up() } else { open.down() }
            }
        }
        for _ in 0..200 {
            window.begin(&peers, 0);
            if let Some((at, _)) = window.other(&peers, 1) {
                chosen[at] += 1;
            }
        }
    }
    // Each is sampled with a chance of two in four.
    assert_eq!(chosen[3], 0);
    assert!([0, 1, 2, 4].iter().all(|at| (60..140).contains(&chosen[*at])), "{chosen:?}");
}

#[test]
fn the_one_with_less_work_is_chosen_and_then_the_one_with_fewer_connections() {
    let peers = peers(3);
    let mut window = Window::new(0);
    let chosen = |window: &Window| window.other(&peers, 1_000_000).map(|(at, _)| at);
    window.begin(&peers, 0);
    peers.all[1].slot.connections().open.up();
    assert_eq!(chosen(&window), Some(2));
    let work = async move |_| std::thread::sleep(Duration::from_millis(20));
    Loop::new("busy").load(peers.all[2].load()).start(work).unwrap();
    assert_eq!(chosen(&window), Some(1));
    // Activity before a window does not count.
    window.begin(&peers, 0);
    assert_eq!(chosen(&window), Some(2));
}
