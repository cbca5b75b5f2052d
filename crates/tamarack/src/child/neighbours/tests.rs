use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::Duration;

use mpm::Scoreboard;
use rt::{Accepted, Loop};

use super::window::Window;
use super::*;

const LIMITS: Limits = Limits { room: 10, admission: Admission { most: 10, near: 9 } };

fn neighbours(count: usize) -> Neighbours {
    let neighbour = |number| Neighbour {
        number,
        slot: Scoreboard::of_one_loop().unwrap().1,
        load: Arc::default(),
        inbox: Arc::new(Inbox::new(2)),
        limits: LIMITS,
    };
    Neighbours { all: (0..count).map(neighbour).collect(), own: 0 }
}

fn gift() -> Gift {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let peer = listener.local_addr().unwrap();
    Gift::Accepted(Accepted { fd: client.into(), peer, local: None })
}

/// Runs `what` while a loop with this load stands still: it is in the middle of one long turn.
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
fn who_stands_still_is_given_nothing_and_what_it_has_not_taken_comes_back() {
    let neighbours = neighbours(2);
    let other = &neighbours.all[1];
    let mut window = Window::new(0);
    window.begin(&neighbours, 1_000);
    assert_eq!(window.other(&neighbours, 2_000).map(|(at, _)| at), Some(1));
    other.inbox.put(gift()).unwrap();
    assert_eq!(neighbours.unclaimed().count(), 0);
    while_stuck(&other.load, || {
        assert!(!other.is_willing());
        assert!(window.other(&neighbours, 2_000).is_none());
        assert_eq!(neighbours.unclaimed().count(), 1);
        assert_eq!(other.inbox.waiting(), 0);
    });
}

#[test]
fn who_is_full_or_ends_is_given_nothing() {
    let neighbours = neighbours(4);
    for _ in 0..LIMITS.room {
        neighbours.all[1].slot.connections().open.up();
        neighbours.all[2].slot.connections().writing.up();
    }
    let willing = || neighbours.all.iter().map(Neighbour::is_willing).collect::<Vec<_>>();
    assert_eq!(willing(), [true, false, false, true]);
    neighbours.all[3].inbox.close();
    assert_eq!(willing(), [true, false, false, false]);
    neighbours.all[2].slot.connections().writing.down();
    assert_eq!(willing(), [true, false, true, false]);
    (0..2).for_each(|_| neighbours.all[2].inbox.put(gift()).unwrap());
    assert_eq!(willing(), [true, false, false, false]);
}

#[test]
fn two_others_are_looked_at_and_never_the_loop_itself() {
    let mut neighbours = neighbours(5);
    neighbours.own = 3;
    let mut window = Window::new(3);
    let mut seen = [0; 5];
    // All but one are full, so that this one is found whenever it is looked at.
    for only in [0, 1, 2, 4] {
        for (at, neighbour) in neighbours.all.iter().enumerate() {
            let open = neighbour.slot.connections().open;
            let wanted = if at == only { 0 } else { LIMITS.room as u64 };
            while open.now() != wanted {
                if open.now() < wanted { open.up() } else { open.down() }
            }
        }
        for _ in 0..200 {
            window.begin(&neighbours, 0);
            if let Some((at, _)) = window.other(&neighbours, 1) {
                seen[at] += 1;
            }
        }
    }
    // Each is one of two out of four.
    assert_eq!(seen[3], 0);
    assert!([0, 1, 2, 4].iter().all(|at| (60..140).contains(&seen[*at])), "{seen:?}");
}

#[test]
fn the_one_with_less_work_is_chosen_and_then_the_one_with_fewer_connections() {
    let neighbours = neighbours(3);
    let mut window = Window::new(0);
    let chosen = |window: &Window| window.other(&neighbours, 1_000_000).map(|(at, _)| at);
    window.begin(&neighbours, 0);
    neighbours.all[1].slot.connections().open.up();
    assert_eq!(chosen(&window), Some(2));
    let work = async move |_| std::thread::sleep(Duration::from_millis(20));
    Loop::new("busy").load(neighbours.all[2].load()).start(work).unwrap();
    assert_eq!(chosen(&window), Some(1));
    // What was done before a window is not of it.
    window.begin(&neighbours, 0);
    assert_eq!(chosen(&window), Some(2));
}
