//! Children: forks, orders, reports, kills and replacements.
#![expect(unsafe_code, reason = "fork")]

use std::os::fd::OwnedFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{ForkResult, Pid, fork};

use super::full::Fullness;
use super::inheritance::HandedChild;
use super::upgrade::Upgrade;
use super::{STOP_DEADLINE, Supervisor, signals};
use crate::CHILD_FATAL;
use crate::affinity::{MaskApplier, Unit};
use crate::child::{Child, Control, ControlLine, LoopSpec, Order, Report};
use crate::privileges::{drop_privileges, is_root};
use crate::program::Level;
use crate::scoreboard::{Event, ProcessState};
use crate::settings::Settings;
use crate::shape::Shape;

/// The scoreboard slot of a child that uses the previous executable's scoreboard: none.
const OFF_BOARD: usize = usize::MAX;

/// The supervisor's record of a child.
pub(super) struct ChildRecord {
    pub pid: Pid,
    pub generation: u32,
    pub slot: usize,
    pub board_slot: usize,
    pub line: ControlLine,
    /// Its end of the line is closed: nothing more can be read.
    pub is_line_closed: bool,
    state: ProcessState,
    pub is_exhausted: bool,
    pub forked: Instant,
    /// A pending order.
    order: Option<(Order, Instant)>,
    /// When to kill it.
    kill_at: Option<Instant>,
    pub was_killed: bool,
}

impl ChildRecord {
    /// Schedules an order to finish or stop at `when`. A pending stronger order is kept.
    pub(super) fn order_later(&mut self, order: Order, when: Instant) {
        match self.state {
            ProcessState::Stopping => {}
            ProcessState::Quiescing if order != Order::Stop => {}
            _ => self.order = Some(order.after(self.order, when)),
        }
    }

    /// Whether it serves, or is about to, and has not been ordered to end.
    pub(super) fn is_staying(&self) -> bool {
        matches!(self.state, ProcessState::Starting | ProcessState::Serving) && self.order.is_none()
    }

    /// Whether it serves and has not been ordered to end.
    pub(super) fn is_ready_to_serve(&self) -> bool {
        self.state == ProcessState::Serving && self.is_staying() && !self.is_exhausted
    }

    /// Whether this executable has forked it.
    pub(super) fn is_on_board(&self) -> bool {
        self.board_slot != OFF_BOARD
    }

    /// Schedules its kill at `when`, unless an earlier one is scheduled.
    pub(super) fn kill_by(&mut self, when: Instant) {
        self.kill_at = Some(self.kill_at.map_or(when, |at| at.min(when)));
    }

    pub(super) fn state(&self) -> ProcessState {
        self.state
    }

    fn next_turn(&self) -> impl Iterator<Item = Instant> {
        self.order.map(|(_, when)| when).into_iter().chain(self.kill_at)
    }
}

/// What Apache's children say that have no `User`, too (`set_group_privs`).
const STAYS_ROOT: &str = "getpwuid: couldn't determine user name from uid 4294967295, you \
                          probably need to modify the User directive: this child stays root";

impl Supervisor<'_> {
    /// Whether the generation has a ready child in this place.
    pub(super) fn has_ready_child(&self, generation: u32, slot: usize) -> bool {
        self.children.iter().any(|child| {
            child.generation == generation
                && child.slot == slot
                && child.state == ProcessState::Serving
        })
    }

    /// Starts a child in every place without one.
    pub(super) fn fill_places(&mut self, now: Instant) {
        if self.stopping.is_some() {
            return;
        }
        let mut due: Vec<(u32, usize, Arc<Settings>)> = Vec::new();
        for generation in self.current.iter().chain(&self.staged) {
            for (slot, place) in generation.places.iter().enumerate() {
                let is_taken = self.children.iter().any(|child| {
                    child.generation == generation.number
                        && child.slot == slot
                        && child.is_staying()
                        && !child.is_exhausted
                });
                if !is_taken && !place.is_closed && place.start_at.is_none_or(|at| at <= now) {
                    due.push((generation.number, slot, Arc::clone(&generation.settings)));
                }
            }
        }
        for (generation, slot, settings) in due {
            // The generation may have been abandoned meanwhile.
            if self.place(generation, slot).is_some()
                && let Err(text) = self.fork_child(generation, slot, settings)
            {
                self.fork_failed(generation, slot, &text);
            }
        }
    }

    /// When the next place without a child may get one.
    pub(super) fn next_fill(&self) -> Option<Instant> {
        let generations = self.current.iter().chain(&self.staged);
        let places = generations.flat_map(|generation| &generation.places);
        places.filter(|place| !place.is_closed).filter_map(|place| place.start_at).min()
    }

    fn fork_child(
        &mut self,
        generation: u32,
        slot: usize,
        settings: Arc<Settings>,
    ) -> Result<(), String> {
        self.placement.prepare(generation, &settings);
        let Some(board_slot) = self.board.claim(generation, slot, &settings.shape) else {
            self.make_room();
            return Err("no room in the scoreboard for another process".to_owned());
        };
        let forked = ControlLine::pair().and_then(|(line, control)| {
            // SAFETY: the supervisor has one thread, so the child is a complete copy in which no
            // lock is held by a missing thread.
            Ok((line, control, unsafe { fork() }?))
        });
        match forked {
            Ok((line, control, ForkResult::Child)) => {
                drop(line);
                self.be_child(generation, slot, board_slot, settings, control)
            }
            Ok((line, _, ForkResult::Parent { child: pid })) => {
                self.board.set_pid(board_slot, pid.as_raw());
                self.children.push(ChildRecord {
                    pid,
                    generation,
                    slot,
                    board_slot,
                    line,
                    is_line_closed: false,
                    state: ProcessState::Starting,
                    is_exhausted: false,
                    forked: Instant::now(),
                    order: None,
                    kill_at: None,
                    was_killed: false,
                });
                if self.has_predecessor(generation, slot) {
                    self.board.count(Event::Replaced);
                }
                self.clear_start(generation, slot);
                Ok(())
            }
            Err(error) => {
                self.board.release(board_slot);
                Err(format!("fork: Unable to fork new process: {error}"))
            }
        }
    }

    /// Takes over a child forked by the previous executable.
    pub(super) fn adopt_child(&mut self, child: HandedChild<OwnedFd>) {
        let is_stopping = child.state == ProcessState::Stopping;
        self.children.push(ChildRecord {
            pid: child.pid,
            generation: child.generation,
            slot: child.slot,
            board_slot: OFF_BOARD,
            line: ControlLine::from(child.line),
            is_line_closed: false,
            state: child.state,
            is_exhausted: false,
            forked: Instant::now(),
            order: None,
            kill_at: is_stopping.then(|| Instant::now() + STOP_DEADLINE),
            was_killed: false,
        });
    }

    /// Runs the child; doesn't return to the supervisor's loop.
    fn be_child(
        &mut self,
        generation: u32,
        slot: usize,
        board_slot: usize,
        settings: Arc<Settings>,
        control: Control,
    ) -> ! {
        // Drops what belongs to the supervisor alone, above all the lines to other children, which
        // must end when the supervisor dies.
        self.children.clear();
        self.pipes.forget();
        self.companions.leave_to_child(generation);
        self.placement.forget();
        self.pid_file = None;
        self.starter = None;
        self.terminal = None;
        self.upgrade = Upgrade::default();
        // Closes the other generation's error log: the reader of a piped log must see its end.
        self.current = None;
        self.staged = None;
        let reset = signals::reset_in_child();
        let child = self.make_child(generation, slot, board_slot, settings, control);
        self.listeners = Default::default();
        let status = match (reset, child) {
            (Ok(()), Ok(child)) => self.run_child(child),
            (Err(error), _) | (_, Err(error)) => {
                self.program.log(Level::Alert, 0, &format!("child could not start: {error}"));
                1
            }
        };
        std::process::exit(status)
    }

    pub(super) fn make_child(
        &mut self,
        generation: u32,
        slot: usize,
        board_slot: usize,
        settings: Arc<Settings>,
        control: Control,
    ) -> std::io::Result<Child> {
        let missing = || std::io::Error::other("no such slot in the scoreboard");
        let shape = settings.shape;
        let spare = settings.spare.as_ref();
        let reserve = spare.and_then(|spare| {
            self.reserves.of_child(generation, board_slot, spare.least, &control)
        });
        let first = shape.first_loop_of(slot);
        let mut loops = Vec::new();
        for index in 0..shape.loops_of(slot) {
            let number = first + index;
            loops.push(LoopSpec {
                index,
                number,
                sockets: self.listeners.sockets_of(&settings, slot, number)?,
                slot: self.board.loop_slot(board_slot, index).ok_or_else(missing)?,
                cpus: self.placement.cpus(generation, &settings, slot, number),
            });
        }
        let places = loops.iter().map(|spec| (spec.slot, spec.cpus.clone())).collect();
        let control = control.with_mask_applier(MaskApplier::new(places, Unit::of(shape)));
        Ok(Child {
            slot,
            generation,
            loops,
            process: self.board.process(board_slot).ok_or_else(missing)?,
            control,
            scoreboard: self.board,
            shared: self.shared.clone(),
            settings,
            reserve,
        })
    }

    /// Drops privileges and runs the program's part of the child.
    pub(super) fn run_child(&mut self, child: Child) -> i32 {
        if let Err(failure) = drop_privileges(&child.settings) {
            self.program.log(Level::Alert, failure.number, &failure.to_string());
            return CHILD_FATAL;
        }
        if is_root() && child.settings.identity.is_none() {
            self.program.log(Level::Alert, 2155, STAYS_ROOT);
        }
        self.placement.pin_process(&child);
        if matches!(child.settings.shape, Shape::Prefork { .. } | Shape::Worker { .. }) {
            // With transparent huge pages, the allocator's requests would give each thread a 2 MiB
            // page for what amounts to a hundred small ones. Clearing it takes longer than the rest
            // of a start, and 256 threads would occupy half a gigabyte. Executed programs inherit
            // the setting: undo it before exec.
            let _ = nix::sys::prctl::set_thp_disable(true);
        }
        // A panic must not unwind into the supervisor's frames, of which this process has a copy.
        catch_unwind(AssertUnwindSafe(|| self.program.child(child))).unwrap_or(1)
    }

    /// Handles the reports of child `position`.
    pub(super) fn read_reports(&mut self, position: usize) {
        let Some(child) = self.children.get_mut(position) else { return };
        let (reports, is_closed) = child.line.reports();
        child.is_line_closed = is_closed;
        let (generation, slot) = (child.generation, child.slot);
        for report in reports {
            match report {
                Report::Ready => self.became_ready(position),
                Report::Exhausted => {
                    if let Some(child) = self.children.get_mut(position) {
                        child.is_exhausted = true;
                    }
                    self.clear_start(generation, slot);
                }
                Report::Low => self.look_at_reserve(),
                Report::Full => self.loop_is_full(Fullness::Reached),
                Report::NearlyFull => self.loop_is_full(Fullness::Near),
            }
        }
    }

    fn became_ready(&mut self, position: usize) {
        let Some(child) = self.children.get_mut(position) else { return };
        if child.state != ProcessState::Starting {
            return;
        }
        child.state = ProcessState::Serving;
        self.board.set_state(child.board_slot, ProcessState::Serving);
        let (pid, generation, slot) = (child.pid, child.generation, child.slot);
        self.look_at_reserve();
        let retire_order = self.retire_order(generation);
        let now = Instant::now();
        for other in &mut self.children {
            let is_predecessor = other.pid != pid
                && other.generation == generation
                && other.slot == slot
                && other.is_exhausted;
            if is_predecessor {
                other.order_later(retire_order, now);
            }
        }
    }

    /// Sends the orders that are due, and kills children that have not obeyed in time.
    pub(super) fn give_orders(&mut self, now: Instant) {
        let mut killed = Vec::new();
        for child in &mut self.children {
            if let Some((order, when)) = child.order
                && when <= now
            {
                child.order = None;
                child.line.send(order);
                child.state = match order {
                    Order::Graceful | Order::Leave => ProcessState::Quiescing,
                    Order::Stop => ProcessState::Stopping,
                };
                if order == Order::Stop {
                    child.kill_at = Some(now + STOP_DEADLINE);
                }
                self.board.set_state(child.board_slot, child.state);
            }
            if child.kill_at.is_some_and(|at| at <= now) {
                child.kill_at = None;
                child.was_killed = true;
                let _ = kill(child.pid, Signal::SIGKILL);
                killed.push(child.pid);
            }
        }
        for pid in killed {
            let text = format!("child process {pid} still did not exit, sending a SIGKILL");
            self.program.log(Level::Error, 46, &text);
        }
    }

    pub(super) fn next_order(&self) -> Option<Instant> {
        self.children.iter().flat_map(ChildRecord::next_turn).min()
    }

    /// Stops the child that has been finishing for the longest time: it occupies room that a
    /// serving one needs.
    fn make_room(&mut self) {
        let now = Instant::now();
        let oldest = self
            .children
            .iter_mut()
            .filter(|child| child.state == ProcessState::Quiescing && child.order.is_none())
            .min_by_key(|child| child.forked);
        if let Some(child) = oldest {
            child.order_later(Order::Stop, now);
        }
    }
}
