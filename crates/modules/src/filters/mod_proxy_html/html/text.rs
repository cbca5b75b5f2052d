//! Runs of text, and references in them.

use super::cursor::{Cursor, Starved, char_at, is_blank, is_char, put};
use super::reference::{self, Reference};
use super::{Parser, Sink, State};

/// libxml2 reports text in segments of this length, and decides for each whether it is only blanks.
const SEGMENT_BYTES: usize = 1000;

/// What follows a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// A tag or the like.
    Tag,
    /// A reference, or more text.
    Text,
    /// The end of the document.
    End,
}

/// A run of text that has begun.
#[derive(Default)]
pub struct Run {
    is_on: bool,
    /// The length of the current segment.
    length: usize,
    /// Whether it has more than blanks.
    is_solid: bool,
    /// What of it is not reported.
    held: Vec<u8>,
}

impl Run {
    /// Whether one has begun.
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Begins one.
    pub fn begin(&mut self) {
        self.is_on = true;
    }

    /// Adds a character; returns whether the segment is full.
    fn add(&mut self, char: &[u8], value: u32) -> bool {
        match value {
            0 => self.held.push(b' '),
            value if !is_char(value) => return false,
            _ => self.held.extend_from_slice(char),
        }
        self.is_solid |= !matches!(char, [byte] if *byte == 0 || is_blank(*byte));
        self.length += char.len();
        self.length >= SEGMENT_BYTES
    }
}

impl Parser {
    /// Continues a run of text. Source: `htmlParseCharData`.
    pub(super) fn text(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let is_last = self.input.is_last();
        let mut at = 0;
        let mut run = std::mem::take(&mut self.run);
        let outcome = loop {
            let rest = self.input.rest().get(at..).unwrap_or_default();
            let Some((value, length)) = char_at(rest) else {
                break if is_last { Ok(Before::End) } else { Err(Starved) };
            };
            match rest.first() {
                Some(b'<') => break Ok(Before::Tag),
                Some(b'&') => break Ok(Before::Text),
                _ => {}
            }
            let char = rest.get(..length).unwrap_or_default();
            if run.add(char, value) {
                // libxml2 looks at the segment's own last character here, instead of the next.
                let before = if value == 0 { Before::End } else { Before::Text };
                self.report(&mut run, before, sink);
            }
            at += length;
        };
        if outcome.is_err() && run.is_solid {
            self.open.check_paragraph(sink);
            sink.text(&run.held);
            run.held.clear();
        }
        self.run = run;
        self.input.consume(at);
        match outcome? {
            Before::Text if self.state == State::Content => {
                self.finish_segment(Before::Text, sink);
                self.reference(sink)
            }
            before => {
                self.finish_run(before, sink);
                Ok(())
            }
        }
    }

    /// Reports the end of a run, if one has begun.
    pub(super) fn finish_run(&mut self, before: Before, sink: &mut impl Sink) {
        if !self.run.is_on {
            return;
        }
        self.finish_segment(before, sink);
        self.run.is_on = false;
        if let State::Epilog { had_text } = self.state {
            let again = State::Epilog { had_text: true };
            self.state = if had_text { State::Done } else { again };
        }
    }

    fn finish_segment(&mut self, before: Before, sink: &mut impl Sink) {
        let mut run = std::mem::take(&mut self.run);
        self.report(&mut run, before, sink);
        self.run = run;
    }

    /// Reports a segment, unless it is blanks that do not count. Source: `areBlanks`.
    fn report(&mut self, run: &mut Run, before: Before, sink: &mut impl Sink) {
        let is_dropped = !run.is_solid
            && match before {
                Before::End => true,
                Before::Tag => self.open.drops_blanks(),
                Before::Text => false,
            };
        if run.length > 0 && !is_dropped {
            self.open.check_paragraph(sink);
            sink.text(&run.held);
        }
        run.held.clear();
        (run.length, run.is_solid) = (0, false);
    }

    /// Reports the reference at which the text is. Source: `htmlParseReference`.
    fn reference(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let mut cursor = Cursor::new(self.input.rest(), self.input.is_last());
        if cursor.is_at_end() {
            return Ok(());
        }
        let mut text = Vec::new();
        match reference::read(&mut cursor)? {
            Reference::Char(0) => {}
            Reference::Char(value) => put(value, &mut text),
            Reference::Ampersand => text.push(b'&'),
            Reference::Name(name) => {
                text.push(b'&');
                text.extend_from_slice(name);
            }
        }
        let length = cursor.at;
        self.input.consume(length);
        if !text.is_empty() {
            self.open.check_paragraph(sink);
            sink.text(&text);
        }
        Ok(())
    }
}
