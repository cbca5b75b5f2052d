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

/// The memory for the events of a request, in bytes: that of a hundred thousand short ones.
const BYTES_LIMIT: usize = 32 * 1024 * 1024;

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
    /// The memory that is left for events, in bytes.
    left: Cell<usize>,
    /// The events that there was no memory for.
    left_out: Cell<u64>,
    /// Whether something was not asked.
    is_uncertain: Cell<bool>,
    /// The user that counts as authenticated.
    user: RefCell<Option<Vec<u8>>>,
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
            left: Cell::new(BYTES_LIMIT),
            left_out: Cell::new(0),
            is_uncertain: Cell::new(false),
            user: RefCell::new(user),
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
    pub(super) fn user(&self) -> Option<Vec<u8>> {
        self.user.borrow().clone()
    }

    /// Requests that follow count as that user's if they have to authenticate.
    pub fn set_user(&self, user: Option<Vec<u8>>) {
        self.user.replace(user);
    }

    /// Begins an event: the events that follow are inside it, until it ends. The outermost one
    /// begins a recording.
    pub fn begin(self: &Rc<Self>, event: Event) -> Begun {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            self.left.set(BYTES_LIMIT);
            self.left_out.set(0);
            self.is_uncertain.set(false);
        }
        open.push(event);
        Begun { recorder: self.clone(), depth: open.len() }
    }

    /// Adds an event to the one that began last, if there is memory for it.
    pub fn add(&self, event: Event) {
        let mut open = self.open.borrow_mut();
        let is_kept = self.left.get() > 0 || is_essential(&open, &event);
        let Some(last) = open.last_mut() else { return };
        if !is_kept {
            self.left_out.set(self.left_out.get() + 1);
            return;
        }
        self.left.set(self.left.get().saturating_sub(event.size()));
        let before = last.events.last_mut().filter(|_| self.left.get() == 0);
        match before.filter(|before| before.kind == Kind::Log && event.kind == Kind::Log) {
            Some(before) => {
                self.left_out.set(self.left_out.get() + 1);
                *before = event;
            }
            None => last.events.push(event),
        }
    }

    /// The number of events inside the one that began last.
    pub fn count(&self) -> usize {
        self.open.borrow().last().map_or(0, |last| last.events.len())
    }

    /// Removes the events inside the one that began last, but for the first `count`.
    pub fn keep_first(&self, count: usize) {
        let mut open = self.open.borrow_mut();
        let Some(last) = open.last_mut() else { return };
        self.take_back(last.events.drain(count.min(last.events.len())..));
    }

    /// Counts the memory of events that were added and are not kept.
    fn take_back(&self, events: impl IntoIterator<Item = Event>) {
        let mut size = 0;
        for event in events {
            event.each(&mut |event| size += event.size());
        }
        self.left.set(BYTES_LIMIT.min(self.left.get() + size));
    }

    /// The number of events that there was no memory for, since the recording began.
    pub fn left_out(&self) -> u64 {
        self.left_out.get()
    }

    /// Whether the response may depend on something that was not asked.
    pub fn is_uncertain(&self) -> bool {
        self.is_uncertain.get()
    }

    /// Notes a directive that had an effect: on a field, or on a path.
    pub fn directive(&self, about: &[u8], span: Span) {
        self.add(Event::new(Kind::Directive, super::state::shown(about)).at(span));
    }

    /// Notes a line that has changed a field of the response, whose values in `table` are these
    /// now; `replaces` if the line has replaced all of them. The values have no line breaks.
    pub fn field_line(
        &self,
        (name, span): (&[u8], Span),
        table: &'static str,
        values: &[&[u8]],
        replaces: bool,
    ) {
        let event = Event::new(Kind::Directive, super::state::shown(name)).at(span);
        let event = event.with("table", table);
        let event = if replaces { event.with("replaces", "yes") } else { event };
        self.add(event.with_values(values.iter().copied()));
    }

    /// Notes a look-up that a server would send to the network or to a program.
    pub fn not_asked(&self, what: &str) {
        self.is_uncertain.set(true);
        self.add(Event::new(Kind::Note, what).came_to("not asked"));
    }

    /// Notes a connection that a server would open to another one, whose response is unknown.
    pub fn not_connected(&self, to: &str) {
        self.is_uncertain.set(true);
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

/// Whether an event is recorded even if there is no memory for steps: the hooks of a request are
/// few.
fn is_essential(open: &[Event], event: &Event) -> bool {
    let is_one = match event.kind {
        Kind::Request | Kind::Hook | Kind::Log => true,
        Kind::Note => event.outcome == "not asked" || event.name == "cached",
        _ => false,
    };
    let is_step =
        |outer: &Event| matches!(outer.kind, Kind::Subrequest | Kind::Rule | Kind::Filter);
    is_one && !open.iter().any(is_step)
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
        let left_open = open.drain(self.depth..);
        self.recorder.take_back(left_open.flat_map(|event| event.events));
        let mut event = open.pop()?;
        finish(&mut event);
        Some(event)
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut open = self.recorder.open.borrow_mut();
        let outer = self.depth.saturating_sub(1).min(open.len());
        // The event itself counts only once it has ended.
        self.recorder.take_back(open.drain(outer..).flat_map(|event| event.events));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn recorded(record: impl FnOnce(&Rc<Recorder>)) -> Event {
        let recorder = Recorder::new(0, None);
        let begun = recorder.begin(Event::new(Kind::Request, "/"));
        record(&recorder);
        begun.into_event().unwrap()
    }

    #[test]
    fn memory_has_a_limit() {
        let event = recorded(|recorder| {
            for number in 0..1_000_000 {
                recorder.add(Event::new(Kind::Rule, number.to_string()));
            }
            assert!(recorder.left_out() > 800_000);
            for number in ["1", "2"] {
                recorder.add(Event::new(Kind::Log, number));
            }
            recorder.begin(Event::new(Kind::Hook, "a.c")).end(|_| {});
            recorder.begin(Event::new(Kind::Subrequest, "/")).end(|_| {});
        });
        let mut last = event.events.iter().rev();
        assert_eq!((last.next().unwrap().kind, &*last.next().unwrap().name), (Kind::Hook, "2"));
        assert_eq!(last.next().unwrap().kind, Kind::Rule);
        assert!(event.events.iter().map(Event::size).sum::<usize>() < BYTES_LIMIT + 1024);
    }

    #[test]
    fn removed_events_take_no_memory() {
        let event = recorded(|recorder| {
            for _ in 0..1_000 {
                recorder.keep_first(1);
                let rule = recorder.begin(Event::new(Kind::Rule, "x".repeat(100_000)));
                recorder.add(Event::new(Kind::Condition, "y".repeat(100_000)));
                rule.end(|_| {});
            }
            assert_eq!((recorder.count(), recorder.left_out()), (2, 0));
        });
        assert_eq!(event.events.len(), 2);
    }
    #[test]
    fn steps_that_run_again_take_no_memory() {
        let event = recorded(|recorder| {
            for _ in 0..1_000 {
                let outer = recorder.begin(Event::new(Kind::Rule, "/"));
                recorder.add(Event::new(Kind::Condition, "x".repeat(100_000)));
                let inner = recorder.begin(Event::new(Kind::Subrequest, "/"));
                recorder.add(Event::new(Kind::Condition, "y".repeat(100_000)));
                // The outer one ends first.
                drop(outer);
                drop(inner);
            }
            assert_eq!((recorder.count(), recorder.left_out()), (0, 0));
            let outer = recorder.begin(Event::new(Kind::Rule, "/"));
            let inner = recorder.begin(Event::new(Kind::Subrequest, "/"));
            recorder.add(Event::new(Kind::Condition, "z"));
            outer.end(|_| {});
            drop(inner);
        });
        let kinds: Vec<Kind> = event.events.iter().map(|event| event.kind).collect();
        assert_eq!((kinds, event.events[0].events.len()), (vec![Kind::Rule], 0));
    }
}
