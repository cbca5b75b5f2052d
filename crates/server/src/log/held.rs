//! Lines of a look-up that may have to be made again: they are written once it is known that it
//! need not be.

use std::cell::RefCell;

use super::sinks::{SinkId, Sinks};

/// Lines that are not written yet, in their order.
#[derive(Debug, Default)]
pub struct HeldLines(RefCell<Vec<Held>>);

#[derive(Debug)]
struct Held {
    sink: Option<SinkId>,
    line: Vec<u8>,
    severity: u8,
}

impl HeldLines {
    /// Holds a line for a sink, or for the standard error.
    pub(crate) fn hold(&self, sink: Option<SinkId>, line: Vec<u8>, severity: u8) {
        self.0.borrow_mut().push(Held { sink, line, severity });
    }

    /// The number of lines.
    pub(crate) fn count(&self) -> usize {
        self.0.borrow().len()
    }

    /// Drops all lines but the first `count`.
    pub(crate) fn keep_first(&self, count: usize) {
        self.0.borrow_mut().truncate(count);
    }

    /// Writes the lines.
    pub(crate) fn write(&self, sinks: &Sinks) {
        for Held { sink, line, severity } in self.0.take() {
            sinks.write(sink, &line, severity);
        }
    }
}
