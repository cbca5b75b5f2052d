//! The menu of a map, for requests without coordinates.

use server::request::Request;

/// The layout of a menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Formatted,
    Semiformatted,
    Unformatted,
    /// Any other word: head and foot alone.
    Unknown,
}

impl Style {
    /// The style of a word; `None` for one that begins with `no`, as in `none`.
    pub fn parse(word: &[u8]) -> Option<Style> {
        let is = |style: &[u8]| word.eq_ignore_ascii_case(style);
        if word.get(..2).is_some_and(|two| two.eq_ignore_ascii_case(b"no")) {
            return None;
        }
        Some(match () {
            () if is(b"formatted") => Style::Formatted,
            () if is(b"semiformatted") => Style::Semiformatted,
            () if is(b"unformatted") => Style::Unformatted,
            () => Style::Unknown,
        })
    }
}

/// A menu that is being written.
pub(super) struct Menu {
    style: Style,
    page: Vec<u8>,
}

impl Menu {
    /// Begins the menu of the request's map.
    pub fn new(style: Style, request: &Request) -> Menu {
        let mut page = b"<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\" \
            \"http://www.w3.org/TR/html4/strict.dtd\">\n<html><head>\n<title>Menu for "
            .to_vec();
        let uri = &request.resource.uri;
        wire::escape::html(&mut page, uri);
        page.extend_from_slice(b"</title>\n</head><body>\n");
        if style == Style::Formatted {
            page.extend_from_slice(b"<h1>Menu for ");
            wire::escape::html(&mut page, uri);
            page.extend_from_slice(b"</h1>\n<hr />\n\n");
        }
        Menu { style, page }
    }

    /// An empty line of the map.
    pub fn blank(&mut self) {
        self.page.extend_from_slice(match self.style {
            Style::Formatted | Style::Unformatted => b"\n",
            Style::Semiformatted => b"<br />\n",
            Style::Unknown => b"",
        });
    }

    /// A comment, which may be HTML.
    pub fn comment(&mut self, text: &[u8]) {
        match self.style {
            Style::Formatted => self.page.push(b'\n'),
            Style::Semiformatted | Style::Unformatted if !text.is_empty() => {
                self.page.extend_from_slice(text);
                self.page.push(b'\n');
            }
            _ => {}
        }
    }

    /// A link, unless it is none.
    pub fn link(&mut self, href: &[u8], text: &[u8], is_default: bool) {
        let is_none =
            [&b"error"[..], b"nocontent"].iter().any(|word| href.eq_ignore_ascii_case(word));
        if is_none || self.style == Style::Unknown {
            return;
        }
        let is_laid_out = self.style != Style::Unformatted;
        if is_laid_out {
            self.page.extend_from_slice(b"<pre>");
            self.page.extend_from_slice(if is_default { b"(Default) " } else { b"          " });
        }
        self.page.extend_from_slice(b"<a href=\"");
        wire::escape::path(&mut self.page, href);
        self.page.extend_from_slice(b"\">");
        wire::escape::html(&mut self.page, text);
        self.page.extend_from_slice(b"</a>");
        if is_laid_out {
            self.page.extend_from_slice(b"</pre>\n");
        }
    }

    /// Writes that the rest of the map can't be read.
    pub fn fail(&mut self) {
        // As Apache spells it.
        self.page.extend_from_slice(b"\n\n[an internal server error occured]\n");
    }

    /// Ends the menu.
    pub fn finish(mut self) -> Vec<u8> {
        self.page.extend_from_slice(b"\n\n</body>\n</html>\n");
        self.page
    }
}
