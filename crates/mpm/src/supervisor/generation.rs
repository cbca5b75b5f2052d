//! Generations: a configuration and the children that serve it. A new one is loaded, bound, started
//! and ready before the old one is retired.

use std::sync::Arc;
use std::time::Instant;

use messages::Message;

use super::spare::Balance;
use super::{DRAIN_DELAY, Supervisor, bind_failure, use_standard_error};
use crate::child::Order;
use crate::notify;
use crate::program::{Level, LoadFailure, Logs};
use crate::settings::Settings;

/// A generation is abandoned when one of its places has failed this often before all were ready.
pub(super) const ATTEMPTS_MAX: u32 = 3;

/// A configuration, with a place for each of its processes.
pub(super) struct Generation {
    pub number: u32,
    pub settings: Arc<Settings>,
    pub places: Vec<Place>,
    /// The order for the previous generation once this one is ready.
    pub retire_order: Order,
    pub logs: Logs,
    pub balance: Balance,
}

/// A process's place in the shape.
#[derive(Clone, Default)]
pub(super) struct Place {
    /// Deaths in quick succession.
    pub failures: u32,
    /// When the next child may be started; `None`: at once.
    pub start_at: Option<Instant>,
    /// Takes no child: the server now needs fewer processes.
    pub is_closed: bool,
}

impl Place {
    /// A place that takes no child.
    pub(super) fn closed() -> Self {
        Self { is_closed: true, ..Self::default() }
    }
}

impl Generation {
    pub(super) fn new(number: u32, settings: Arc<Settings>, retire_order: Order) -> Self {
        let places = vec![Place::default(); settings.shape.processes()];
        Self {
            number,
            settings,
            places,
            retire_order,
            logs: Logs::default(),
            balance: Balance::default(),
        }
    }
}

impl Supervisor<'_> {
    /// SIGHUP or SIGUSR1: `retire_order` is what the old children are sent in the end.
    pub(super) fn restart(&mut self, retire_order: Order) {
        if self.stopping.is_some() {
            return;
        }
        let (number, text) = match retire_order {
            Order::Graceful | Order::Leave => (493, "SIGUSR1 received.  Doing graceful restart"),
            Order::Stop => (494, "SIGHUP received.  Attempting to restart"),
        };
        self.program.log(Level::Notice, number, text);
        if self.staged.is_some() {
            // A restart is in progress: another follows it, and the stronger order wins.
            let is_stop = retire_order == Order::Stop || self.pending == Some(Order::Stop);
            self.pending = Some(if is_stop { Order::Stop } else { Order::Graceful });
            return;
        }
        notify::reloading();
        self.last_generation += 1;
        if let Err(failure) = self.stage(self.last_generation, retire_order) {
            self.reject(&failure);
        }
    }

    fn stage(&mut self, number: u32, retire_order: Order) -> Result<(), LoadFailure> {
        let settings = self.program.load(number, &self.shared)?;
        self.stage_loaded(number, settings, retire_order)
    }

    /// Stages a generation for a configuration that is already loaded.
    pub(super) fn stage_loaded(
        &mut self,
        number: u32,
        settings: Settings,
        retire_order: Order,
    ) -> Result<(), LoadFailure> {
        let prepared = self.prepare(number, settings, retire_order);
        match prepared {
            Ok(generation) => {
                self.staged = Some(generation);
                Ok(())
            }
            Err(failure) => {
                self.program.discard(number);
                self.listeners.roll_back();
                let now = Instant::now();
                self.pipes.end(|generation| generation == number, now);
                self.companions.end(|generation| generation == number, now);
                Err(failure)
            }
        }
    }

    fn prepare(
        &mut self,
        number: u32,
        settings: Settings,
        retire_order: Order,
    ) -> Result<Generation, LoadFailure> {
        if settings.listeners.is_empty() {
            return Err(LoadFailure::new("no listening sockets available"));
        }
        self.listeners.prepare(&settings).map_err(|failures| bind_failure(&failures))?;
        self.count_hosts(&settings);
        let logs = self.open_logs(number)?;
        self.pipes.start_all().map_err(|text| {
            LoadFailure::new(format!("AH00089: Couldn't start piped log process {text}"))
        })?;
        let settings = Arc::new(settings);
        self.start_companions(number, &settings)?;
        let mut generation = Generation::new(number, settings, retire_order);
        generation.logs = logs;
        self.reserves.begin(number);
        Ok(generation)
    }

    /// Allocates counters by virtual host. The server also runs without them.
    pub(super) fn count_hosts(&mut self, settings: &Settings) {
        if let Err(error) = self.board.know_hosts(&settings.counted_hosts) {
            let text = format!("no memory for counters by virtual host: {error}");
            self.program.log(Level::Warning, 0, &text);
        }
    }

    pub(super) fn reject(&mut self, failure: &LoadFailure) {
        for line in failure.text.lines().filter(|line| !line.trim().is_empty()) {
            self.program.log(Level::Error, 0, line);
        }
        let text = "the new configuration can't be used; still serving the old one";
        self.program.log(Level::Error, 0, text);
        notify::ready(std::process::id(), "Serving the old configuration: the new one is faulty");
    }

    /// Commits the staged generation once every place has a ready child.
    pub(super) fn commit_when_ready(&mut self) {
        let Some(staged) = &self.staged else { return };
        if !(0..staged.places.len()).all(|slot| self.has_ready_child(staged.number, slot)) {
            return;
        }
        let Some(mut generation) = self.staged.take() else { return };
        let number = generation.number;
        self.program.commit(number);
        use_standard_error(&generation.logs);
        self.board.begin_generation(number, &generation.settings, generation.retire_order);
        self.move_pid_file(&generation.settings);
        let has_removed = self.listeners.retire(&generation.settings);
        self.listeners.commit();
        let now = Instant::now();
        let retire_at = if has_removed { now + DRAIN_DELAY } else { now };
        if has_removed {
            self.close_retired_at = Some(retire_at + DRAIN_DELAY);
        }
        let retire_order = match (generation.retire_order, &self.current) {
            // The new children accept from the same sockets.
            (Order::Graceful, Some(old)) if !has_removed => self.retire_order(old.number),
            (retire_order, _) => retire_order,
        };
        for child in self.children.iter_mut().filter(|child| child.generation != number) {
            child.order_later(retire_order, retire_at);
        }
        generation.balance.begin(now);
        let unheeded = self.placement.warning(number, &generation.settings);
        self.current = Some(generation);
        self.announce();
        if let Some(text) = unheeded {
            self.program.log(Level::Warning, Message::AffinityUnheeded.number(), &text);
        }
        self.successor_serves();
        if let Some(retire_order) = self.pending.take() {
            self.restart(retire_order);
        }
    }

    /// The order that retires a replaced child of `generation`: if processes share their sockets,
    /// it leaves what is queued to the others.
    pub(super) fn retire_order(&self, generation: u32) -> Order {
        let mut generations = self.current.iter().chain(&self.staged);
        let of = generations.find(|candidate| candidate.number == generation);
        match of.is_some_and(|of| !of.settings.shape.has_own_listeners()) {
            true => Order::Leave,
            false => Order::Graceful,
        }
    }

    /// Abandons the staged generation: stops its children; the old one continues to serve. At start
    /// there is no old one, and the server ends.
    pub(super) fn abandon_staged(&mut self, reason: &str) {
        let Some(generation) = self.staged.take() else { return };
        if self.current.is_none() && !self.upgrade.is_successor {
            self.fail_start(reason);
            return;
        }
        self.program.discard(generation.number);
        let now = Instant::now();
        for child in &mut self.children {
            if child.generation == generation.number {
                child.order_later(Order::Stop, now);
            }
        }
        self.listeners.roll_back();
        self.reject(&LoadFailure::new(reason));
        if self.upgrade.is_successor {
            self.successor_failed();
        }
        if let Some(retire_order) = self.pending.take() {
            self.restart(retire_order);
        }
    }

    /// Moves the pid file if `PidFile` has changed.
    fn move_pid_file(&mut self, settings: &Settings) {
        let is_same = self.pid_file.as_ref().is_some_and(|file| file.path() == settings.pid_file);
        if is_same {
            return;
        }
        match super::write_pid_file(settings) {
            Ok((pid_file, _)) => {
                self.remove_pid_file();
                self.pid_file = Some(pid_file);
            }
            Err(failure) => self.program.log(Level::Error, 99, &failure.text),
        }
    }

    /// Ends the log readers and companions of generations without children.
    pub(super) fn end_old_readers(&mut self, now: Instant) {
        let current = self.current.as_ref().map(|generation| generation.number);
        let staged = self.staged.as_ref().map(|generation| generation.number);
        let children = &self.children;
        let is_over = |number| {
            Some(number) != current
                && Some(number) != staged
                && !children.iter().any(|child| child.generation == number)
        };
        self.pipes.end(is_over, now);
        self.companions.end(is_over, now);
    }
}
