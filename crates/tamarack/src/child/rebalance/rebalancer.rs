//! One loop's part in rebalancing: what it hands over to others, and what it is handed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use http::connection::{self, Migration};
use http::service::Service;
use messages::Message;
use mpm::affinity::rebalance::{IDLE, Quota, RebalancePolicy, WINDOW, WINDOW_IDLE, WindowSample};
use mpm::scoreboard::Decision;
use rt::Accepted;
use server::log::Level;

use super::window::Window;
use super::{PeerLoop, PeerLoops};

/// The unit of shares of accepted connections: parts of this.
const WHOLE: u32 = 1 << 16;

/// Hands connections over to a loop's peers, and serves those it is handed.
pub(in crate::child) struct Rebalancer {
    peers: PeerLoops,
    service: Rc<Service>,
    /// The share of accepted connections to hand over, of [`WHOLE`]; 0 most of the time.
    share: Cell<u32>,
    /// The part of a connection still owed to the peer, of [`WHOLE`].
    owed: Cell<u32>,
    /// The peer that takes over connections.
    to: Cell<Option<usize>>,
    /// Idle connections that have migrated here since the last decision.
    arrived: Cell<u64>,
    policy: RefCell<RebalancePolicy>,
}

impl Rebalancer {
    /// Creates the rebalancer of loop `own` of its process.
    pub(in crate::child) fn new(
        all: Arc<[PeerLoop]>,
        own: usize,
        service: Rc<Service>,
    ) -> Rc<Rebalancer> {
        Rc::new(Rebalancer {
            peers: PeerLoops { all, own },
            service,
            share: Cell::new(0),
            owed: Cell::new(0),
            to: Cell::new(None),
            arrived: Cell::new(0),
            policy: RefCell::default(),
        })
    }

    /// Hands an accepted connection over if one is due; else returns it.
    pub(in crate::child) fn route(&self, accepted: Accepted) -> Option<Accepted> {
        if self.share.get() == 0 {
            return Some(accepted);
        }
        let owed = self.owed.get() + self.share.get();
        self.owed.set(owed % WHOLE);
        if owed < WHOLE {
            return Some(accepted);
        }
        let to = self.to.get().and_then(|to| self.peers.all.get(to));
        let Some(to) = to.filter(|to| to.can_take()) else { return Some(accepted) };
        match to.inbox.put(Migration::Accepted(accepted)) {
            Ok(()) => {
                self.service.slot.add_accepted(1);
                self.service.slot.add_handed_over(1);
                None
            }
            Err(Migration::Accepted(accepted)) => Some(accepted),
            Err(Migration::Idle(_)) => None,
        }
    }

    /// Serves what peers hand over, until the inbox is closed.
    pub(in crate::child) async fn receive(self: Rc<Self>) {
        let Some(own) = self.peers.own() else { return };
        while let Some(migration) = own.inbox.take().await {
            if matches!(migration, Migration::Idle(_)) {
                self.arrived.set(self.arrived.get() + 1);
            }
            self.serve(migration);
        }
    }

    /// Ends rebalancing, for a loop that is about to end. What is already in the inbox is served.
    pub(in crate::child) fn close(&self) {
        self.stop();
        if let Some(own) = self.peers.own() {
            own.inbox.close();
            while let Some(migration) = own.inbox.take_now() {
                self.serve(migration);
            }
        }
    }

    /// Decides at the end of each window, for as long as the loop serves.
    pub(in crate::child) async fn decide(self: Rc<Self>) {
        let mut window = Window::new(self.peers.own);
        let mut length = WINDOW_IDLE;
        loop {
            window.begin(&self.peers, self.now_us());
            self.service.handle.sleep(length).await;
            length = if self.turn(&window) { WINDOW_IDLE } else { WINDOW };
        }
    }

    /// Makes one decision, at the end of a window; returns whether the loop was idle.
    fn turn(&self, window: &Window) -> bool {
        self.peers.unclaimed().for_each(|migration| self.serve(migration));
        let now_us = self.now_us();
        let connections = &self.service.connections;
        let own = WindowSample {
            share: window.own_share(&self.peers, now_us),
            connections: connections.open(),
            active: connections.active_now(),
            arrived: self.arrived.take(),
            is_full: self.peers.own().is_some_and(PeerLoop::is_full),
        };
        let other = window.other(&self.peers, now_us);
        let quota = self.policy.borrow_mut().turn(&own, other.as_ref().map(|(_, sample)| sample));
        match other {
            Some((to, sample)) => self.apply(&quota, &own, (to, &sample)),
            None => self.stop(),
        }
        own.share < IDLE
    }

    fn stop(&self) {
        self.share.set(0);
        self.to.set(None);
        self.service.migration_order.clear();
    }

    fn apply(&self, quota: &Quota, own: &WindowSample, (at, sample): (usize, &WindowSample)) {
        let all = &self.peers.all;
        let (Some(here), Some(to)) = (self.peers.own(), all.get(at)) else { return };
        let service = &self.service;
        let share = (quota.accepted * f64::from(WHOLE)) as u32;
        let had = self.share.replace(share);
        self.to.set(Some(at));
        let loads = || {
            let percent = |share: f64| (share * 100.0).round();
            let (number, used) = (here.number, percent(own.share));
            let (other, used_there) = (to.number, percent(sample.share));
            format!("loop {number} is busy {used}% of the time, loop {other} {used_there}%")
        };
        if (had == 0) != (share == 0) {
            let does = if share > 0 { "hands over part" } else { "no longer hands over any" };
            self.say(
                Message::HandsOver.number(),
                &format!("{}: it {does} of its accepted connections", loads()),
            );
        }
        if had == 0 && share > 0 {
            service.scoreboard.count_decision(Decision::Handing);
        }
        if !quota.has_migrations() {
            return service.migration_order.clear();
        }
        let (active, quiet) = (quota.active, quota.quiet);
        service.migration_order.set(to.inbox.clone(), active, quiet);
        service.handle.rouse(quiet);
        service.scoreboard.count_decision(Decision::Moving);
        let text = format!(
            "{}: up to {active} active and {quiet} quiet connections may migrate there between two \
             requests",
            loads()
        );
        self.say(Message::Migrates.number(), &text);
    }

    fn serve(&self, migration: Migration) {
        self.service
            .handle
            .spawn_local(connection::serve_migrated(self.service.clone(), migration));
    }

    fn now_us(&self) -> u64 {
        self.service.handle.clock().precise_us()
    }

    fn say(&self, number: u32, text: &str) {
        server::errorlog::of_process(Some(&self.service.server), Level::Debug, number, text);
    }
}
