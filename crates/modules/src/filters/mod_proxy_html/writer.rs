//! Writes the document that the parser reports. Source: `pstartElement` and its like.

use std::sync::Arc;

use super::config::Html;
use super::html::{Attribute, Element, Name, Sink, Standing};
use super::rules::{Rule, rewrite_event, rewrite_link, rewrite_text};

/// Most bytes of scripts and comments that rules are applied to at once.
const CONTENT_BYTES: usize = 1 << 20;

/// Writes a document.
pub struct Writer {
    html: Html,
    rules: Arc<Vec<Rule>>,
    /// Text of scripts and comments that rules are applied to (`ProxyHTMLExtended`).
    content: Vec<u8>,
    /// What is written.
    pub out: Vec<u8>,
    /// What is to be logged, if anything is.
    pub dropped: Option<Vec<Dropped>>,
}

/// Something that is not part of the document type.
#[derive(Debug, PartialEq, Eq)]
pub enum Dropped {
    /// An element that is unknown or deprecated.
    Element(Vec<u8>),
    /// An element that is unknown to the transitional type.
    OldElement(Vec<u8>),
    /// An attribute, its element, and whether it is deprecated.
    Attribute(Vec<u8>, Vec<u8>, bool),
    /// Nothing, but an element lacks so many attributes.
    Missing(Vec<u8>, usize),
}

impl Writer {
    /// Returns a writer with these rules.
    pub fn new(html: Html, rules: Arc<Vec<Rule>>, out: Vec<u8>) -> Writer {
        Writer { html, rules, content: Vec::new(), out, dropped: None }
    }

    fn note(&mut self, dropped: impl FnOnce() -> Dropped) {
        if let Some(all) = &mut self.dropped {
            all.push(dropped());
        }
    }

    /// Whether an element is left out.
    fn drops(&self, name: &Name) -> bool {
        match (self.html.doctype.enforced(), name.element()) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(is_strict), Some(element)) => is_strict && element.is_deprecated,
        }
    }

    /// Whether an attribute is left out.
    fn drops_attribute(&mut self, name: &Name, attribute: &[u8], missing: &mut usize) -> bool {
        let (Some(is_strict), Some(element)) = (self.html.doctype.enforced(), name.element())
        else {
            return false;
        };
        let is_old = match element.standing(attribute, !is_strict) {
            Standing::Valid => return false,
            Standing::Required => {
                *missing = missing.saturating_sub(1);
                return false;
            }
            Standing::Invalid => false,
            Standing::Deprecated => true,
        };
        self.note(|| Dropped::Attribute(attribute.to_vec(), name.as_bytes().to_vec(), is_old));
        true
    }

    fn attribute(&mut self, element: &Name, (name, value): &Attribute) {
        self.out.push(b' ');
        self.out.extend_from_slice(name);
        let Some(value) = value else { return };
        let mut value = value.clone();
        if self.is_link(element, name) {
            rewrite_link(&self.rules, &mut value);
        } else if self.is_event(name) {
            rewrite_event(&self.rules, &mut value);
        }
        if self.html.lowers {
            value.make_ascii_lowercase();
        }
        if self.html.slashes {
            value.iter_mut().filter(|byte| **byte == b'\\').for_each(|byte| *byte = b'/');
        }
        self.out.extend_from_slice(b"=\"");
        escape(&value, &mut self.out);
        self.out.push(b'"');
    }

    fn is_link(&self, element: &Name, attribute: &[u8]) -> bool {
        let links = self.html.links.as_ref().and_then(|links| links.get(element.as_bytes()));
        links.is_some_and(|names| names.iter().any(|name| name == attribute))
    }

    fn is_event(&self, attribute: &[u8]) -> bool {
        let events = self.html.events.as_ref().filter(|_| self.html.is_extended);
        events.is_some_and(|names| names.iter().any(|name| name == attribute))
    }

    fn add_content(&mut self, parts: &[&[u8]]) {
        self.content.extend(parts.iter().copied().flatten());
        if self.content.len() > CONTENT_BYTES {
            self.flush_content();
        }
    }

    fn flush_content(&mut self) {
        if !self.content.is_empty() {
            rewrite_text(&self.rules, &mut self.content);
            self.out.append(&mut self.content);
        }
    }
}

impl Sink for Writer {
    fn start(&mut self, name: &Name, attributes: &[Attribute]) {
        if self.drops(name) {
            let is_strict = self.html.doctype.enforced() == Some(true);
            let dropped = if is_strict { Dropped::Element } else { Dropped::OldElement };
            return self.note(|| dropped(name.as_bytes().to_vec()));
        }
        self.out.push(b'<');
        self.out.extend_from_slice(name.as_bytes());
        let mut missing = match self.html.doctype.enforced() {
            Some(_) => name.element().map_or(0, Element::required_count),
            None => 0,
        };
        for attribute in attributes {
            if !self.drops_attribute(name, &attribute.0, &mut missing) {
                self.attribute(name, attribute);
            }
        }
        // As in Apache, comments before a start tag are lost with `ProxyHTMLExtended`.
        self.content.clear();
        let is_empty = name.element().is_some_and(|element| element.is_empty);
        let end: &[u8] = if is_empty && self.html.is_xml { b" />" } else { b">" };
        self.out.extend_from_slice(end);
        if missing > 0 {
            self.note(|| Dropped::Missing(name.as_bytes().to_vec(), missing));
        }
    }

    fn end(&mut self, name: &Name) {
        if self.drops(name) {
            return;
        }
        self.flush_content();
        if !name.element().is_some_and(|element| element.is_empty) {
            self.out.extend_from_slice(b"</");
            self.out.extend_from_slice(name.as_bytes());
            self.out.push(b'>');
        }
    }

    fn text(&mut self, text: &[u8]) {
        escape(text, &mut self.out);
    }

    fn cdata(&mut self, text: &[u8]) {
        match self.html.is_extended {
            true => self.add_content(&[text]),
            false => self.out.extend_from_slice(text),
        }
    }

    fn comment(&mut self, text: &[u8]) {
        let parts: [&[u8]; 3] = [b"<!--", text, b"-->"];
        match (self.html.strips_comments, self.html.is_extended) {
            (true, _) => {}
            (false, true) => self.add_content(&parts),
            (false, false) => self.out.extend(parts.concat()),
        }
    }
}

/// Appends text with references for the characters that HTML reserves.
fn escape(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match byte {
            b'&' => out.extend_from_slice(b"&amp;"),
            b'<' => out.extend_from_slice(b"&lt;"),
            b'>' => out.extend_from_slice(b"&gt;"),
            b'"' => out.extend_from_slice(b"&quot;"),
            byte => out.push(*byte),
        }
    }
}
