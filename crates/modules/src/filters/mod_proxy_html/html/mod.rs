//! A parser of HTML that reports what libxml2's push parser reports to its SAX handler: it closes
//! and adds elements by the rules of HTML 4, and leaves out what those leave out.
//!
//! The events do not depend on how the document is cut: they are those of libxml2 for a document
//! that arrives as a whole. Source: `htmlParseTryOrFinish`.

mod charset_name;
mod cursor;
mod elements;
mod entities;
mod input;
mod markup;
mod open;
mod reference;
mod script;
mod table;
mod tag;
mod text;

#[cfg(test)]
mod tests;

use crate::filters::mod_xml2enc::charset::Charset;

pub use elements::{Element, Name, Standing};
pub use tag::Attribute;

use cursor::{Cursor, Starved, char_at, is_blank, is_char};
use input::Input;
use open::Open;
use text::{Before, Run};

/// Most bytes of a tag or a comment, and of a document that waits for its end.
pub const TOKEN_BYTES: usize = 4 << 20;

/// Below this length, a token is read again with each piece of the document.
const PATIENT_BYTES: usize = 4096;

/// What the parser reports.
pub trait Sink {
    /// An element begins.
    fn start(&mut self, name: &Name, attributes: &[Attribute]);
    /// An element ends.
    fn end(&mut self, name: &Name);
    /// Text, without references.
    fn text(&mut self, text: &[u8]);
    /// The text of a script or a style sheet.
    fn cdata(&mut self, text: &[u8]);
    /// A comment, without its delimiters.
    fn comment(&mut self, text: &[u8]);
}

/// A token or the nesting exceeds its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an HTML document has a token of more than {TOKEN_BYTES} bytes, or too many open elements")]
pub struct TooLarge;

/// Where in the document the parser is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// At its first byte that is no blank.
    Start,
    /// Before the document type.
    Misc,
    /// Behind the document type.
    Prolog,
    /// In the content.
    Content,
    /// Behind the end of all elements.
    Epilog {
        /// Whether text was there: a second one ends the document.
        had_text: bool,
    },
    /// What follows does not count.
    Done,
}

/// The parser of a document.
pub struct Parser {
    input: Input,
    state: State,
    open: Open,
    /// Whether a run of text has begun.
    run: Run,
    /// Whether a part of the current script has been reported.
    in_script: bool,
    /// Whether the document has named its character set.
    has_charset: bool,
    /// Bytes that must be there before the parser tries again.
    patience: usize,
}

impl Parser {
    /// Returns a parser of a document in a character set, if it is known.
    pub fn new(charset: Option<Charset>) -> Parser {
        Parser {
            input: Input::new(charset),
            state: State::Start,
            open: Open::default(),
            run: Run::default(),
            in_script: false,
            has_charset: false,
            patience: 0,
        }
    }

    /// Parses a piece of the document.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub fn push(&mut self, bytes: &[u8], sink: &mut impl Sink) -> Result<(), TooLarge> {
        if self.state == State::Done {
            return Ok(());
        }
        self.input.push(bytes);
        if self.input.held_bytes() < self.patience {
            return Ok(());
        }
        self.parse(sink)
    }

    /// Parses what is left: the document is complete.
    ///
    /// # Errors
    /// [`TooLarge`]
    pub fn end(&mut self, sink: &mut impl Sink) -> Result<(), TooLarge> {
        self.input.end();
        self.parse(sink)
    }

    fn parse(&mut self, sink: &mut impl Sink) -> Result<(), TooLarge> {
        while self.state != State::Done {
            if self.step(sink).is_ok() || self.input.more() {
                continue;
            }
            let held = self.input.held_bytes();
            if held > TOKEN_BYTES {
                return Err(TooLarge);
            }
            self.patience = if held < PATIENT_BYTES { 0 } else { held + held / 4 };
            return Ok(());
        }
        self.input.consume(self.input.held_bytes());
        if self.open.is_too_deep() { Err(TooLarge) } else { Ok(()) }
    }

    /// Parses one token, or a part of one.
    fn step(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let Some(first) = self.input.rest().first().copied() else {
            if !self.input.is_last() {
                return Err(Starved);
            }
            self.finish_run(Before::End, sink);
            self.open.close_all(sink);
            self.state = State::Done;
            return Ok(());
        };
        if self.open.is_too_deep() {
            self.state = State::Done;
            return Ok(());
        }
        if self.run.is_on() {
            return self.text(sink);
        }
        if first == 0 && !self.in_script {
            self.input.consume(1);
            return Ok(());
        }
        match self.state {
            State::Start | State::Misc | State::Prolog => self.before_content(sink),
            State::Content => self.content(sink),
            State::Epilog { .. } => self.epilog(sink),
            State::Done => Ok(()),
        }
    }

    fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.input.rest(), self.input.is_last())
    }

    /// The document ends in the middle of something, and nothing is closed.
    fn break_off(&mut self) -> Result<(), Starved> {
        if !self.input.is_last() {
            return Err(Starved);
        }
        self.state = State::Done;
        Ok(())
    }

    fn before_content(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let rest = self.input.rest();
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        if blanks > 0 {
            self.input.consume(blanks);
            return Ok(());
        }
        let available = rest.len();
        if self.state == State::Start {
            if self.cursor().begins(b"<!DOCTYPE")? {
                return self.document_type(State::Prolog);
            }
            self.state = State::Misc;
            return Ok(());
        }
        let is_prolog = self.state == State::Prolog;
        if is_prolog && available < 2 {
            return self.break_off();
        }
        if self.cursor().begins(b"<!--")? {
            return self.comment(sink);
        }
        if self.cursor().begins(b"<?")? {
            return self.instruction();
        }
        if !is_prolog && self.cursor().begins(b"<!DOCTYPE")? {
            return self.document_type(State::Prolog);
        }
        let undecided = if is_prolog { 4 } else { 9 };
        if self.cursor().begins(b"<!")? && available < undecided {
            return self.break_off();
        }
        self.state = State::Content;
        Ok(())
    }

    fn content(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let available = self.input.rest().len();
        let cursor = self.cursor();
        let (first, next) = match (cursor.here()?, cursor.ahead(1)) {
            (first, Ok(next)) => (first, next),
            (_, Err(starved)) => return Err(starved),
        };
        if available == 1 && !self.in_script {
            return self.last_byte(first, sink);
        }
        if self.open.is_in_script() {
            return self.script(sink);
        }
        match (first, next) {
            (b'<', b'!') => self.declaration(available, sink),
            (b'<', b'?') => self.instruction(),
            (b'<', b'/') => self.end_tag(sink),
            (b'<', b'a'..=b'z' | b'A'..=b'Z') => self.start_tag(sink),
            (b'<', _) => {
                sink.text(b"<");
                self.input.consume(1);
                Ok(())
            }
            _ => {
                self.run.begin();
                Ok(())
            }
        }
    }

    /// The very last byte, if it is no part of a text before it.
    fn last_byte(&mut self, byte: u8, sink: &mut impl Sink) -> Result<(), Starved> {
        if matches!(byte, b'<' | b'&') {
            return self.break_off();
        }
        if !is_blank(byte) {
            self.open.check_paragraph(sink);
            sink.text(&[byte]);
        }
        self.input.consume(1);
        Ok(())
    }

    fn start_tag(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let mut cursor = self.cursor();
        let tag = tag::start(&mut cursor, self.input.wrong())?;
        let length = cursor.at;
        let name = Name::of(&tag.name);
        let is_discarded = self.open.prepare(&name, sink);
        if name.is("meta") {
            self.note_charset(&tag);
        }
        self.input.consume(length);
        if !is_discarded {
            self.open.push(name.clone());
            sink.start(&name, &tag.attributes);
        }
        // From here on libxml2 looks at the innermost element, even if the tag was discarded.
        self.open.after_start(tag.end, sink);
        self.in_script = false;
        self.state = State::Content;
        Ok(())
    }

    fn end_tag(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let mut cursor = self.cursor();
        let name = tag::end(&mut cursor)?;
        let length = cursor.at;
        self.input.consume(length);
        if let Some(name) = name {
            self.open.end(&Name::of(&name), sink);
        }
        self.in_script = false;
        self.state = match self.open.is_empty() {
            true => State::Epilog { had_text: false },
            false => State::Content,
        };
        Ok(())
    }

    fn epilog(&mut self, sink: &mut impl Sink) -> Result<(), Starved> {
        let cursor = self.cursor();
        let available = self.input.rest().len();
        if is_blank(cursor.here()?) {
            self.run.begin();
            return Ok(());
        }
        if available < 2 {
            return self.break_off();
        }
        if cursor.begins(b"<!--")? {
            return self.comment(sink);
        }
        if cursor.begins(b"<?")? {
            return self.instruction();
        }
        if cursor.begins(b"<!")? && available < 4 {
            return self.break_off();
        }
        self.state = State::Done;
        Ok(())
    }
}

/// Appends characters: without those that no document may have, and with blanks for NULs.
fn put_chars(mut text: &[u8], out: &mut Vec<u8>) {
    while let Some((value, length)) = char_at(text) {
        let (char, rest) = text.split_at(length.min(text.len()));
        match value {
            0 => out.push(b' '),
            value if is_char(value) => out.extend_from_slice(char),
            _ => {}
        }
        text = rest;
    }
}
