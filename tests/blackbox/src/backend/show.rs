//! What a backend received, as lines of a test file.

use crate::escape::escape;
use crate::place::Place;
use crate::render::Renderer;

use super::player::Heard;
use super::script::{Declared, Protocol};
use super::{Progress, ajp, fastcgi, http, pairs, progress};

/// The lines of a client's request: what backends received for it, and which scripts were not used.
pub fn lines(
    place: &Place,
    renderer: &Renderer<'_>,
    heard: &[Heard],
    unasked: &[usize],
    seen: &mut Connections,
) -> Vec<String> {
    let mut lines = Vec::new();
    let declared = |at: usize| place.backends.get(at).map(|backend| &backend.declared);
    for heard in heard {
        if let Some(declared) = declared(heard.backend) {
            let connection = if declared.pooled {
                (heard.connection, heard.is_again)
            } else {
                seen.number(heard)
            };
            Page { declared, renderer, lines: &mut lines }.heard(heard, connection);
        }
    }
    for declared in unasked.iter().filter_map(|at| declared(*at)) {
        lines.push(format!("{}= not asked", declared.name));
    }
    lines
}

/// The connections to backends that one connection of the client has led to. Which of them a server
/// takes from its pool for another client depends on threads.
#[derive(Debug, Default)]
pub struct Connections(Vec<(usize, usize)>);

impl Connections {
    /// The number of a connection, and whether it has one already.
    fn number(&mut self, heard: &Heard) -> (usize, bool) {
        let of = |known: &[(usize, usize)]| {
            let own = known.iter().filter(|(backend, _)| *backend == heard.backend);
            own.map(|(_, connection)| *connection).collect::<Vec<_>>()
        };
        let known = of(&self.0);
        match known.iter().position(|connection| *connection == heard.connection) {
            Some(at) => (at + 1, true),
            None => {
                self.0.push((heard.backend, heard.connection));
                (known.len() + 1, false)
            }
        }
    }
}

struct Page<'a> {
    declared: &'a Declared,
    renderer: &'a Renderer<'a>,
    lines: &'a mut Vec<String>,
}

impl Page<'_> {
    fn heard(&mut self, heard: &Heard, (number, is_again): (usize, bool)) {
        let again = if is_again { " again" } else { "" };
        self.note(&format!("connection {number}{again}"));
        let is_whole = matches!(
            progress(self.declared.protocol, &heard.bytes),
            Progress::Whole(_) | Progress::Head
        );
        if is_whole {
            self.request(&heard.bytes, heard.is_cut);
        } else if !heard.bytes.is_empty() {
            self.raw(&heard.bytes);
        }
        if heard.is_cut {
            self.note("incomplete");
        }
        match heard.closed {
            Some(true) => self.note("closed"),
            Some(false) => self.note("not closed"),
            None => {}
        }
    }

    /// A request whose head is there. How much of a cut body has arrived is chance.
    fn request(&mut self, bytes: &[u8], is_cut: bool) {
        match self.declared.protocol {
            Protocol::Http => {
                let request = http::read(bytes);
                for line in &request.head {
                    self.head(&escape(line));
                }
                self.head("");
                if !is_cut {
                    self.body(&request.body);
                }
                for line in &request.trailers {
                    self.note(&format!("trailer {}", escape(line)));
                }
                self.broken(request.broken);
                self.rest(bytes, request.len);
            }
            Protocol::Fcgi => {
                let request = fastcgi::read(bytes);
                for line in request.records.iter().chain(&request.parameters) {
                    self.head(line);
                }
                self.head("");
                if !is_cut {
                    self.body(&request.body);
                }
                self.broken(request.broken.filter(|_| !is_cut));
            }
            Protocol::Scgi => self.pairs(bytes, &pairs::scgi(bytes), is_cut),
            Protocol::Uwsgi => self.pairs(bytes, &pairs::uwsgi(bytes), is_cut),
            Protocol::Ajp => {
                let request = ajp::read(bytes);
                for line in &request.lines {
                    self.head(line);
                }
                self.head("");
                if !is_cut {
                    self.body(&request.body);
                }
                if request.has_ended {
                    self.note("end of body");
                }
                self.broken(request.broken.filter(|_| !is_cut));
            }
            Protocol::H2c => self.frames(bytes, is_cut),
            // In their order, unlike the lines of a head.
            Protocol::Ftp => self.body(bytes),
            Protocol::Raw | Protocol::Fdpass => self.raw(bytes),
        }
    }

    /// Lines, an empty one, and the body.
    fn frames(&mut self, bytes: &[u8], is_cut: bool) {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = bytes.split_at(end.map_or(bytes.len(), |end| end + 4));
        let text = String::from_utf8_lossy(head);
        let (trailers, lines): (Vec<&str>, Vec<&str>) = text
            .lines()
            .filter(|line| !line.is_empty())
            .partition(|line| line.starts_with("trailer "));
        for line in lines {
            self.head(line);
        }
        self.head("");
        if !is_cut {
            self.body(body);
        }
        for line in trailers {
            self.note(line);
        }
    }

    fn pairs(&mut self, bytes: &[u8], request: &pairs::Request, is_cut: bool) {
        for line in &request.parameters {
            self.head(line);
        }
        self.head("");
        if !is_cut {
            self.body(&request.body);
        }
        self.rest(bytes, request.len);
    }

    /// Bytes beyond the request, for which a script has waited.
    fn rest(&mut self, bytes: &[u8], len: Option<usize>) {
        let rest = len.and_then(|len| bytes.get(len..)).unwrap_or_default();
        if !rest.is_empty() {
            self.note("more");
            self.body(rest);
        }
    }

    fn raw(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.head(&escape(line));
        }
    }

    fn head(&mut self, text: &str) {
        let space = if text.is_empty() { "" } else { " " };
        let line = format!("{}>{space}{text}", self.declared.name);
        self.lines.push(self.renderer.mask(&line));
    }

    fn note(&mut self, text: &str) {
        let line = format!("{}= {text}", self.declared.name);
        self.lines.push(self.renderer.mask(&line));
    }

    fn broken(&mut self, what: Option<&str>) {
        if let Some(what) = what {
            self.note(&format!("broken: {what}"));
        }
    }

    fn body(&mut self, body: &[u8]) {
        let mut shown = Vec::new();
        self.renderer.body(body, &mut shown);
        let name = &self.declared.name;
        self.lines.extend(shown.into_iter().map(|line| match line.starts_with('|') {
            true => format!("{name}{line}"),
            false => format!("{name}= {line}"),
        }));
    }
}
