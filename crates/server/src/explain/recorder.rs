//! The recorder of an engine.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use conf::{Span, Tree};
use hashbrown::HashMap;

use super::meter::{Measured, Meter, Running};
use super::{Event, Kind};
use crate::config::section::Section;

/// Text numbers reserved for each `.htaccess`: macros expand to further texts.
const TEXTS_OF_FILE: u32 = 4096;

/// What an engine records.
pub struct Recorder {
    /// The events that have begun, each inside the one before.
    open: RefCell<Vec<Event>>,
    /// By the id of a merged configuration: the ids of what it was merged from.
    merges: RefCell<HashMap<u64, (u64, u64)>>,
    /// The `.htaccess` files that were read.
    files: RefCell<Vec<Rc<HtaccessFile>>>,
    /// The number of the next file's first text.
    next_text: Cell<u32>,
    /// The user that counts as authenticated.
    user: Option<Vec<u8>>,
    /// The time that phases take, while that is measured instead of events.
    meter: Meter,
}

/// An `.htaccess` file.
pub struct HtaccessFile {
    /// [`Section::id`]
    pub section: u64,
    /// Its directives, with their text.
    pub tree: Tree,
}

impl Recorder {
    /// Returns a recorder for a configuration of so many texts. If there is a `user`, requests that
    /// have to authenticate count as that user's.
    pub fn new(texts: u32, user: Option<Vec<u8>>) -> Rc<Recorder> {
        Rc::new(Recorder {
            open: RefCell::default(),
            merges: RefCell::default(),
            files: RefCell::default(),
            next_text: Cell::new(texts.saturating_add(1)),
            user,
            meter: Meter::default(),
        })
    }

    /// Measures the requests that follow, without recording events.
    pub fn begin_to_measure(&self) {
        self.meter.begin();
    }

    /// Ends measuring, and returns what was measured since it began.
    pub fn end_measuring(&self) -> Measured {
        self.meter.end()
    }

    /// Whether requests are measured and not recorded.
    pub fn is_measuring(&self) -> bool {
        self.meter.is_on()
    }

    /// Counts the time of a phase until the result is dropped.
    pub(super) fn measure(&self, phase: &'static str) -> Running<'_> {
        self.meter.run(phase)
    }

    /// The user that counts as authenticated.
    pub(super) fn user(&self) -> Option<&[u8]> {
        self.user.as_deref()
    }

    /// Begins an event: the events that follow are inside it, until it ends.
    pub fn begin(self: &Rc<Self>, event: Event) -> Begun {
        let mut open = self.open.borrow_mut();
        open.push(event);
        Begun { recorder: self.clone(), depth: open.len() }
    }

    /// Adds an event to the one that began last.
    pub fn add(&self, event: Event) {
        if let Some(last) = self.open.borrow_mut().last_mut() {
            last.events.push(event);
        }
    }

    /// Notes a directive that had an effect: on a field, or on a path.
    pub fn directive(&self, about: &[u8], span: Span) {
        self.add(Event::new(Kind::Directive, super::state::shown(about)).at(span));
    }

    /// Notes a look-up that a server would send to the network or to a program.
    pub fn not_asked(&self, what: &str) {
        self.add(Event::new(Kind::Note, what).came_to("not asked"));
    }

    /// Notes a connection that a server would open to another one, whose response is unknown.
    pub fn not_connected(&self, to: &str) {
        let event = Event::new(Kind::Note, format!("would connect to {to}"));
        self.add(event.came_to("not asked").with("connection", to));
    }

    /// The number of the first text of a file that is about to be read.
    pub(crate) fn number_file(&self) -> u32 {
        let number = self.next_text.get();
        self.next_text.set(number.saturating_add(TEXTS_OF_FILE));
        number
    }

    /// Keeps an `.htaccess` that was read.
    pub(crate) fn keep_file(&self, section: u64, tree: Tree) {
        self.files.borrow_mut().push(Rc::new(HtaccessFile { section, tree }));
    }

    /// The `.htaccess` files that were read.
    pub fn files(&self) -> Vec<Rc<HtaccessFile>> {
        self.files.borrow().clone()
    }

    /// Notes what a configuration was merged from.
    pub(crate) fn merged(&self, made: u64, from: (u64, u64)) {
        self.merges.borrow_mut().insert(made, from);
    }

    /// The ids of the sections that a configuration was merged from, in order. Ids without a
    /// section belong to hosts.
    pub fn parts_of(&self, made: u64) -> Vec<u64> {
        let merges = self.merges.borrow();
        let (mut waiting, mut parts) = (vec![made], Vec::new());
        while let Some(id) = waiting.pop() {
            match merges.get(&id) {
                Some((outer, inner)) => waiting.extend([*inner, *outer]),
                None => parts.push(id),
            }
        }
        parts
    }

    /// The sections among `all` that were merged into `after` and not into `before`, in order.
    pub(super) fn matched(&self, all: &[Arc<Section>], before: u64, after: u64) -> Vec<u64> {
        let outer = self.parts_of(before);
        let parts = self.parts_of(after).into_iter().skip(outer.len());
        let is_file = |id: &u64| self.files.borrow().iter().any(|file| file.section == *id);
        parts.filter(|id| all.iter().any(|one| one.id == *id) || is_file(id)).collect()
    }
}

/// An event that has begun. If it is dropped before it ends, it leaves no trace: the same step will
/// run again.
pub struct Begun {
    recorder: Rc<Recorder>,
    depth: usize,
}

impl Begun {
    /// Ends the event, and returns it after its last change.
    pub fn end(self, finish: impl FnOnce(&mut Event)) {
        if let Some(event) = self.take(finish) {
            self.recorder.add(event);
        }
    }

    /// Ends the outermost event.
    pub fn into_event(self) -> Option<Event> {
        self.take(|_| {})
    }

    fn take(&self, finish: impl FnOnce(&mut Event)) -> Option<Event> {
        let mut open = self.recorder.open.borrow_mut();
        if open.len() < self.depth {
            return None;
        }
        open.truncate(self.depth);
        let mut event = open.pop()?;
        finish(&mut event);
        Some(event)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.recorder.open.borrow_mut().truncate(self.depth.saturating_sub(1));
    }
}
