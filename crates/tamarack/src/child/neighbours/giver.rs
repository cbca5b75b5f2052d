//! One loop, and what it gives to the others of its process.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use mpm::affinity::relief::{Giving, IDLE, Relief, Seen, WINDOW, WINDOW_IDLE};
use mpm::scoreboard::Decision;
use rt::Accepted;
use server::connection::{self, Gift};
use server::engine::Engine;
use server::log::Level;

use super::window::Window;
use super::{Neighbour, Neighbours};

/// Of a whole: shares of accepted connections are counted in these.
const WHOLE: u32 = 1 << 16;

/// What a loop gives and is given.
pub(in crate::child) struct Giver {
    neighbours: Neighbours,
    engine: Rc<Engine>,
    /// The share of accepted connections that is given away, of [`WHOLE`]; 0 most of the time.
    share: Cell<u32>,
    /// What is still to be given of the connections that were accepted, of [`WHOLE`].
    owed: Cell<u32>,
    /// Who is given something.
    to: Cell<Option<usize>>,
    /// Idle connections that moved here since it was looked last.
    arrived: Cell<u64>,
    relief: RefCell<Relief>,
}

impl Giver {
    /// The giver of loop `own` of its process, which is given to as well.
    pub(in crate::child) fn new(
        all: Arc<[Neighbour]>,
        own: usize,
        engine: Rc<Engine>,
    ) -> Rc<Giver> {
        Rc::new(Giver {
            neighbours: Neighbours { all, own },
            engine,
            share: Cell::new(0),
            owed: Cell::new(0),
            to: Cell::new(None),
            arrived: Cell::new(0),
            relief: RefCell::default(),
        })
    }

    /// Gives an accepted connection away, if it is the turn of one; else it is for this loop.
    pub(in crate::child) fn pass_on(&self, accepted: Accepted) -> Option<Accepted> {
        if self.share.get() == 0 {
            return Some(accepted);
        }
        let owed = self.owed.get() + self.share.get();
        self.owed.set(owed % WHOLE);
        if owed < WHOLE {
            return Some(accepted);
        }
        let to = self.to.get().and_then(|to| self.neighbours.all.get(to));
        let Some(to) = to.filter(|to| to.is_willing()) else { return Some(accepted) };
        match to.inbox.put(Gift::Accepted(accepted)) {
            Ok(()) => {
                self.engine.slot.add_accepted(1);
                self.engine.slot.add_handed_over(1);
                None
            }
            Err(Gift::Accepted(accepted)) => Some(accepted),
            Err(Gift::Kept(_)) => None,
        }
    }

    /// Serves what others give, until the loop takes nothing any more.
    pub(in crate::child) async fn receive(self: Rc<Self>) {
        let Some(own) = self.neighbours.own() else { return };
        while let Some(gift) = own.inbox.take().await {
            if matches!(gift, Gift::Kept(_)) {
                self.arrived.set(self.arrived.get() + 1);
            }
            self.serve(gift);
        }
    }

    /// The loop ends: it gives nothing any more, and is given nothing. What is on its way is still
    /// taken.
    pub(in crate::child) fn close(&self) {
        self.give_nothing();
        if let Some(own) = self.neighbours.own() {
            own.inbox.close();
            while let Some(gift) = own.inbox.take_now() {
                self.serve(gift);
            }
        }
    }

    /// Decides window by window, as long as the loop serves.
    pub(in crate::child) async fn decide(self: Rc<Self>) {
        let mut window = Window::new(self.neighbours.own);
        let mut length = WINDOW_IDLE;
        loop {
            window.begin(&self.neighbours, self.now_us());
            self.engine.handle.sleep(length).await;
            length = if self.turn(&window) { WINDOW_IDLE } else { WINDOW };
        }
    }

    /// One decision, at the end of a window; whether the loop has had no work.
    fn turn(&self, window: &Window) -> bool {
        self.neighbours.unclaimed().for_each(|gift| self.serve(gift));
        let now_us = self.now_us();
        let connections = &self.engine.connections;
        let own = Seen {
            share: window.own_share(&self.neighbours, now_us),
            connections: connections.open(),
            active: connections.active_now(),
            arrived: self.arrived.take(),
            is_full: self.neighbours.own().is_some_and(Neighbour::is_full),
        };
        let other = window.other(&self.neighbours, now_us);
        let giving = self.relief.borrow_mut().turn(&own, other.as_ref().map(|(_, seen)| seen));
        match other {
            Some((to, seen)) => self.give(&giving, &own, (to, &seen)),
            None => self.give_nothing(),
        }
        own.share < IDLE
    }

    fn give_nothing(&self) {
        self.share.set(0);
        self.to.set(None);
        self.engine.leaving.forbid();
    }

    fn give(&self, giving: &Giving, own: &Seen, (at, seen): (usize, &Seen)) {
        let all = &self.neighbours.all;
        let (Some(here), Some(to)) = (self.neighbours.own(), all.get(at)) else { return };
        let engine = &self.engine;
        let share = (giving.accepted * f64::from(WHOLE)) as u32;
        let had = self.share.replace(share);
        self.to.set(Some(at));
        let loads = || {
            let percent = |share: f64| (share * 100.0).round();
            let (number, used) = (here.number, percent(own.share));
            let (other, used_there) = (to.number, percent(seen.share));
            format!("loop {number} is busy {used}% of the time, loop {other} {used_there}%")
        };
        if (had == 0) != (share == 0) {
            let does = if share > 0 { "hands a part" } else { "hands nothing any more" };
            self.say(20108, &format!("{}: it {does} of what it accepts to others", loads()));
        }
        if had == 0 && share > 0 {
            engine.scoreboard.count_decision(Decision::Handing);
        }
        if !giving.moves() {
            return engine.leaving.forbid();
        }
        let (active, quiet) = (giving.active, giving.quiet);
        engine.leaving.allow(to.inbox.clone(), active, quiet);
        engine.handle.rouse(quiet);
        engine.scoreboard.count_decision(Decision::Moving);
        let text = format!(
            "{}: up to {active} of its connections in use and {quiet} of the others move there \
             between two requests",
            loads()
        );
        self.say(20109, &text);
    }

    fn serve(&self, gift: Gift) {
        self.engine.handle.spawn_local(connection::settle(self.engine.clone(), gift));
    }

    fn now_us(&self) -> u64 {
        self.engine.handle.clock().precise_us()
    }

    fn say(&self, number: u32, text: &str) {
        server::log::of_process(Some(&self.engine.server), Level::Debug, number, text);
    }
}
