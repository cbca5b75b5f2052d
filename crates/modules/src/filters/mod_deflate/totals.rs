//! How much a compressor has read and written, as notes for the log.

use std::cell::Cell;
use std::rc::Rc;

use server::hooks::Step;
use server::request::Request;

/// Total input and output of compression, for the log; available once it is complete.
#[derive(Clone, Default)]
pub(in crate::filters) struct Totals(Rc<Cell<Option<(u64, u64)>>>);

impl Totals {
    pub(super) fn set(&self, totals: (u64, u64)) {
        self.0.set(Some(totals));
    }

    /// Bytes of input and output, if the body is complete.
    pub(in crate::filters) fn get(&self) -> Option<(u64, u64)> {
        self.0.get()
    }
}

/// The names of notes with totals, for the log.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    ratio: Option<Vec<u8>>,
}

impl Notes {
    /// Whether there are any.
    pub(in crate::filters) fn is_any(&self) -> bool {
        self.input.is_some() || self.output.is_some() || self.ratio.is_some()
    }

    /// Names the note of a kind, which by default is the ratio; returns whether there is such a
    /// kind.
    pub(in crate::filters) fn add(&mut self, kind: Option<&[u8]>, name: &[u8]) -> bool {
        let note = match kind.map(<[u8]>::to_ascii_lowercase).as_deref() {
            Some(b"ratio") | None => &mut self.ratio,
            Some(b"input") => &mut self.input,
            Some(b"output") => &mut self.output,
            Some(_) => return false,
        };
        *note = Some(name.to_vec());
        true
    }

    /// Sets the notes of a response that was compressed.
    pub(in crate::filters) fn set(&self, request: &mut Request) -> Step<'static> {
        let Some((input, output)) = request.kept::<Totals>().and_then(Totals::get) else {
            return Step::DECLINED;
        };
        let shown = |value: u64| match input {
            0 => "-".to_owned(),
            _ => value.to_string(),
        };
        let ratio = output.saturating_mul(100).checked_div(input).unwrap_or(0);
        let notes = [(&self.input, input), (&self.output, output), (&self.ratio, ratio)];
        for (name, value) in notes {
            if let Some(name) = name {
                request.notes.set(name, shown(value).as_bytes());
            }
        }
        Step::OK
    }
}
