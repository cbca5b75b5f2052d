//! The parser of pages: text, and elements between a start and an end tag.
//!
//! It is a machine that takes a byte at a time, so that its pieces do not depend on how the page is
//! cut. Its rules are those of Apache's parser, including the unusual ones: a tag is over at the
//! first byte of the end tag only where an argument could begin.
//!
//! Source: `send_parsed_content`, `find_directive`, `find_argument`.

use std::ops::Range;

use bstr::ByteSlice;

use super::config::Tags;

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text, as a range of the page.
    Text(Range<usize>),
    /// An element.
    Element(Element),
    /// The page ends within an element.
    Unfinished,
}

/// An element as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// Its name in lower case.
    pub name: Vec<u8>,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// What is wrong with it: it is not executed.
    pub faults: Vec<Fault>,
}

/// An argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Argument {
    /// Its name in lower case.
    pub name: Vec<u8>,
    /// Its value, without quotes; `None` if there is no `=`.
    pub value: Option<Vec<u8>>,
}

/// What is wrong with an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It has no name.
    NoName,
    /// A quoted value has no name.
    OnlyValue,
    /// An argument begins with `=`.
    NoArgumentName,
}

/// A parser of one page.
pub struct Parser<'t> {
    tags: &'t Tags,
    state: State,
    /// The bytes read so far.
    position: usize,
    /// Where the text begins that is not part of a piece yet.
    text_from: usize,
    /// The last bytes, if they may be the beginning of a start tag.
    held: Vec<u8>,
    /// The element that is being read.
    element: Element,
    /// The argument that is being read.
    argument: Argument,
    /// Its value.
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Name,
    /// The number of bytes of the end tag that followed the name.
    NameEnd(usize),
    BeforeArgument,
    /// The number of bytes of the end tag.
    End(usize),
    Argument,
    ArgumentName,
    BeforeEquals,
    BeforeValue,
    /// The quote, if there is one.
    Value(Option<u8>),
    /// A backslash in quotes.
    Escape(u8),
}

impl<'t> Parser<'t> {
    /// A parser at the beginning of a page.
    pub fn new(tags: &'t Tags) -> Parser<'t> {
        Parser {
            tags,
            state: State::Text,
            position: 0,
            text_from: 0,
            held: Vec::new(),
            element: Element::default(),
            argument: Argument::default(),
            value: Vec::new(),
        }
    }

    /// Takes the next part of the page.
    pub fn push(&mut self, part: &[u8], pieces: &mut Vec<Piece>) {
        let mut rest = part;
        while !rest.is_empty() {
            let taken = match self.state {
                State::Text => self.text(rest, pieces),
                _ => {
                    let Some(byte) = rest.first() else { return };
                    self.position += 1;
                    self.byte(*byte, pieces);
                    1
                }
            };
            rest = rest.get(taken..).unwrap_or_default();
        }
    }

    /// Takes the end of the page.
    pub fn finish(self, pieces: &mut Vec<Piece>) {
        if self.state == State::Text {
            self.end_text(self.position, pieces);
        } else {
            pieces.push(Piece::Unfinished);
        }
    }

    /// Looks for the next start tag; returns the number of bytes taken.
    fn text(&mut self, part: &[u8], pieces: &mut Vec<Piece>) -> usize {
        let start = self.tags.start.as_slice();
        let held = self.held.len();
        if held > 0 {
            // A tag that begins in what is held ends before this many bytes of the part.
            let joint = part.get(..part.len().min(start.len() - 1)).unwrap_or_default();
            let joined = [self.held.as_slice(), joint].concat();
            if let Some(at) = joined.find(start).filter(|at| *at < held) {
                let taken = at + start.len() - held;
                self.begin_element(self.position - held + at, taken, pieces);
                return taken;
            }
            if part.len() < start.len() - 1 {
                self.hold(&joined);
                self.position += part.len();
                return part.len();
            }
        }
        match part.find(start) {
            Some(at) => {
                self.begin_element(self.position + at, at + start.len(), pieces);
                at + start.len()
            }
            None => {
                self.hold(part);
                self.position += part.len();
                part.len()
            }
        }
    }

    /// Holds the last bytes of `bytes` that may begin a start tag.
    fn hold(&mut self, bytes: &[u8]) {
        let start = self.tags.start.as_slice();
        let most = bytes.len().min(start.len() - 1);
        let tail = (1..=most).rev().find(|length| bytes.ends_with(&start[..*length]));
        let tail = tail.and_then(|length| bytes.get(bytes.len() - length..)).unwrap_or_default();
        self.held = tail.to_vec();
    }

    fn begin_element(&mut self, text_end: usize, taken: usize, pieces: &mut Vec<Piece>) {
        self.end_text(text_end, pieces);
        self.position += taken;
        self.held.clear();
        self.element = Element::default();
        self.state = State::Name;
    }

    fn end_text(&self, end: usize, pieces: &mut Vec<Piece>) {
        if end > self.text_from {
            pieces.push(Piece::Text(self.text_from..end));
        }
    }

    /// Takes a byte of an element.
    fn byte(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        match self.state {
            State::Text => {}
            State::Name | State::NameEnd(_) => self.name_byte(byte, pieces),
            State::BeforeArgument => {
                if !is_space(byte) {
                    self.state = match self.is_end(0, byte) {
                        true => State::End(0),
                        false => State::Argument,
                    };
                    self.byte(byte, pieces);
                }
            }
            State::End(matched) => self.end_byte(matched, byte, pieces),
            State::Argument => self.begin_argument(byte, pieces),
            State::ArgumentName => self.argument_name(byte, pieces),
            State::BeforeEquals => self.equals(byte, pieces),
            State::BeforeValue => self.begin_value(byte, pieces),
            State::Value(quote) => self.value_byte(quote, byte),
            State::Escape(quote) => {
                self.state = State::Value(Some(quote));
                if byte == quote {
                    self.value.push(byte);
                } else {
                    self.value.push(b'\\');
                    self.value_byte(Some(quote), byte);
                }
            }
        }
    }

    fn is_end(&self, at: usize, byte: u8) -> bool {
        self.tags.end.get(at) == Some(&byte)
    }

    fn name_byte(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        let matched = match self.state {
            State::NameEnd(matched) => matched,
            _ => 0,
        };
        if self.is_end(matched, byte) {
            if matched + 1 == self.tags.end.len() {
                self.end_name();
                self.execute(pieces);
            } else {
                self.state = State::NameEnd(matched + 1);
            }
        } else if matched > 0 {
            // It was not the end: its first byte belongs to the name, and the next may begin one.
            self.state = State::Name;
            self.element.name.extend(self.tags.end.first());
            for byte in self.tags.end.get(1..matched).unwrap_or_default() {
                self.name_byte(*byte, pieces);
            }
            self.name_byte(byte, pieces);
        } else if is_space(byte) {
            self.end_name();
            self.state = State::BeforeArgument;
        } else {
            self.element.name.push(byte);
        }
    }

    fn end_name(&mut self) {
        self.element.name.make_ascii_lowercase();
        if self.element.name.is_empty() {
            self.element.faults.push(Fault::NoName);
        }
    }

    fn end_byte(&mut self, matched: usize, byte: u8, pieces: &mut Vec<Piece>) {
        if self.is_end(matched, byte) {
            if matched + 1 == self.tags.end.len() {
                return self.execute(pieces);
            }
            self.state = State::End(matched + 1);
            return;
        }
        // It is an argument that begins like an end tag.
        self.state = State::Argument;
        for byte in self.tags.end.get(..matched).unwrap_or_default() {
            self.byte(*byte, pieces);
        }
        self.byte(byte, pieces);
    }

    fn execute(&mut self, pieces: &mut Vec<Piece>) {
        self.text_from = self.position;
        pieces.push(Piece::Element(std::mem::take(&mut self.element)));
        self.state = State::Text;
    }

    fn begin_argument(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        if is_quote(byte) {
            self.element.faults.push(Fault::OnlyValue);
            self.state = State::Value(Some(byte));
        } else {
            self.state = State::ArgumentName;
            self.byte(byte, pieces);
        }
    }

    fn argument_name(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        if !is_space(byte) && byte != b'=' {
            self.argument.name.push(byte);
            return;
        }
        if self.argument.name.is_empty() {
            self.element.faults.push(Fault::NoArgumentName);
        }
        self.argument.name.make_ascii_lowercase();
        self.state = State::BeforeEquals;
        self.byte(byte, pieces);
    }

    fn equals(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        if is_space(byte) {
            return;
        }
        if byte == b'=' {
            self.state = State::BeforeValue;
            return;
        }
        self.element.arguments.push(std::mem::take(&mut self.argument));
        self.state = State::BeforeArgument;
        self.byte(byte, pieces);
    }

    fn begin_value(&mut self, byte: u8, pieces: &mut Vec<Piece>) {
        if is_quote(byte) {
            self.state = State::Value(Some(byte));
        } else if !is_space(byte) {
            self.state = State::Value(None);
            self.byte(byte, pieces);
        }
    }

    fn value_byte(&mut self, quote: Option<u8>, byte: u8) {
        let is_over = match quote {
            Some(quote) if byte == b'\\' => {
                self.state = State::Escape(quote);
                return;
            }
            Some(quote) => byte == quote,
            None => is_space(byte),
        };
        if !is_over {
            self.value.push(byte);
            return;
        }
        let mut argument = std::mem::take(&mut self.argument);
        let mut value = std::mem::take(&mut self.value);
        // Apache's texts end at a NUL.
        value.truncate(value.find_byte(0).unwrap_or(value.len()));
        argument.name.truncate(argument.name.find_byte(0).unwrap_or(argument.name.len()));
        argument.value = Some(value);
        self.element.arguments.push(argument);
        self.state = State::BeforeArgument;
    }
}

/// C's `isspace`.
pub fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// Parses a whole page.
pub fn parse(tags: &Tags, page: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut parser = Parser::new(tags);
    parser.push(page, &mut pieces);
    parser.finish(&mut pieces);
    pieces
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The pieces of a page that is cut at `cuts`.
    fn cut(tags: &Tags, page: &[u8], cuts: &[usize]) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut parser = Parser::new(tags);
        let mut from = 0;
        for cut in cuts.iter().copied().chain([page.len()]) {
            parser.push(page.get(from..cut).unwrap_or_default(), &mut pieces);
            from = cut;
        }
        parser.finish(&mut pieces);
        pieces
    }

    #[test]
    fn pieces_do_not_depend_on_one_cut() {
        let page =
            b"a<!<!--#echo - var=\"x\\\"y\" --><!--#endif---><!--#x='1' =2 z --b\t--> <!--#--><!--";
        let tags = Tags::default();
        let whole = parse(&tags, page);
        assert!(whole.len() > 5);
        for at in 0..=page.len() {
            assert_eq!(cut(&tags, page, &[at]), whole, "cut at {at}");
        }
        let every: Vec<usize> = (0..page.len()).collect();
        assert_eq!(cut(&tags, page, &every), whole);
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_cuts(
            page in "([-ab<!#>= \"'`\\\\]|<!--#|-->|--->|--){0,40}",
            every in 1usize..7,
            tags in prop_oneof![
                Just(Tags::default()),
                Just(Tags { start: b"--->".to_vec(), end: b"--".to_vec() }),
                Just(Tags { start: b"aab".to_vec(), end: b"=\"=".to_vec() }),
            ],
        ) {
            let page = page.as_bytes();
            let cuts: Vec<usize> = (0..page.len()).step_by(every).collect();
            prop_assert_eq!(cut(&tags, page, &cuts), parse(&tags, page));
        }
    }

    #[test]
    fn text_is_the_rest_of_the_page() {
        let pieces = parse(&Tags::default(), b"a<!--#x-->b");
        assert!(matches!(
            pieces.as_slice(),
            [Piece::Text(a), Piece::Element(_), Piece::Text(b)] if *a == (0..1) && *b == (10..11)
        ));
        assert_eq!(parse(&Tags::default(), b""), []);
    }
}
