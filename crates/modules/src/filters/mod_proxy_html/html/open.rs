//! The open elements, and what HTML 4 adds to them.

use super::tag::TagEnd;
use super::{Name, Sink};

/// Most open elements of a document.
const DEPTH: usize = 65_536;

/// The open elements, outermost first.
#[derive(Default)]
pub struct Open {
    names: Vec<Name>,
    /// Whether a `head` was there.
    had_head: bool,
    /// Whether a `body` was there.
    had_body: bool,
    /// Discarded tags whose end tags are to be discarded.
    discarded: usize,
}

impl Open {
    /// Whether nothing is open.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether more elements are open than a document may have.
    pub fn is_too_deep(&self) -> bool {
        self.names.len() > DEPTH
    }

    /// Whether blanks before a tag are left out here.
    pub fn drops_blanks(&self) -> bool {
        self.names.last().is_none_or(|name| name.is_one(&["html", "head"]))
    }

    /// The name of the script or style sheet whose text comes next.
    pub fn script(&self) -> Option<&Name> {
        self.names.last().filter(|name| name.is_one(&["script", "style"]))
    }

    /// Whether the text of a script comes next.
    pub fn is_in_script(&self) -> bool {
        self.script().is_some()
    }

    /// Opens an element.
    pub fn push(&mut self, name: Name) {
        self.had_head |= name.is_one(&["head", "body"]);
        self.had_body |= name.is("body");
        self.names.push(name);
    }

    fn begin(&mut self, name: &str, sink: &mut impl Sink) {
        let name = Name::of(name.as_bytes());
        self.push(name.clone());
        sink.start(&name, &[]);
    }

    fn pop(&mut self, sink: &mut impl Sink) {
        if let Some(name) = self.names.pop() {
            sink.end(&name);
        }
    }

    /// Ends and begins what a start tag implies; returns whether the tag itself is discarded.
    /// Source: `htmlParseStartTag`.
    pub fn prepare(&mut self, name: &Name, sink: &mut impl Sink) -> bool {
        self.end_before(name, sink);
        self.imply(name, sink);
        let repeated = match name.as_bytes() {
            b"html" => usize::from(!self.names.is_empty()),
            b"head" => usize::from(self.names.len() != 1),
            b"body" => self.names.iter().filter(|open| open.is("body")).count(),
            _ => 0,
        };
        self.discarded += repeated;
        repeated > 0
    }

    /// Ends the elements that a start tag ends. Source: `htmlAutoClose`.
    fn end_before(&mut self, new: &Name, sink: &mut impl Sink) {
        while self.names.last().is_some_and(|open| open.ends_before(new)) {
            self.pop(sink);
        }
    }

    /// Begins `html`, `head` or `body`, if the tag belongs there. Source: `htmlCheckImplied`.
    fn imply(&mut self, new: &Name, sink: &mut impl Sink) {
        if new.is("html") {
            return;
        }
        if self.names.is_empty() {
            self.begin("html", sink);
        }
        if new.is_one(&["body", "head"]) {
            return;
        }
        let of_head = ["script", "style", "meta", "link", "title", "base"];
        if self.names.len() <= 1 && new.is_one(&of_head) {
            if !self.had_head {
                self.begin("head", sink);
            }
        } else if !new.is_one(&["noframes", "frame", "frameset"])
            && !self.had_body
            && !self.names.iter().any(|open| open.is_one(&["body", "head"]))
        {
            self.begin("body", sink);
        }
    }

    /// Begins a paragraph, if text can't stand here. Source: `htmlCheckParagraph`.
    pub fn check_paragraph(&mut self, sink: &mut impl Sink) {
        if self.drops_blanks() {
            let paragraph = Name::of(b"p");
            self.end_before(&paragraph, sink);
            self.imply(&paragraph, sink);
            self.begin("p", sink);
        }
    }

    /// What the end of a start tag does to the innermost element.
    pub fn after_start(&mut self, end: TagEnd, sink: &mut impl Sink) {
        let is_empty =
            self.names.last().and_then(Name::element).is_some_and(|known| known.is_empty);
        match end {
            TagEnd::Closed => self.pop(sink),
            TagEnd::Open if is_empty => self.pop(sink),
            TagEnd::Open => {}
            // Nothing ends the element in the output.
            TagEnd::Broken => {
                self.names.pop();
            }
        }
    }

    /// Ends an element by its end tag. Source: `htmlParseEndTag`, `htmlAutoCloseOnClose`.
    pub fn end(&mut self, name: &Name, sink: &mut impl Sink) {
        if self.discarded > 0 && name.is_one(&["html", "body", "head"]) {
            self.discarded -= 1;
            return;
        }
        let priority = name.end_priority();
        for open in self.names.iter().rev() {
            if open == name {
                break;
            }
            if open.end_priority() > priority {
                return;
            }
        }
        if !self.names.contains(name) {
            return;
        }
        while self.names.last().is_some_and(|open| open != name) {
            self.pop(sink);
        }
        self.pop(sink);
    }

    /// Ends all elements.
    pub fn close_all(&mut self, sink: &mut impl Sink) {
        while !self.names.is_empty() {
            self.pop(sink);
        }
    }
}
