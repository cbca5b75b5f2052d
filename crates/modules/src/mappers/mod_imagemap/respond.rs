//! The response to a request for a map (`imap_handler_internal`).

use server::body::Body;
use server::errorlog::Verbatim;
use server::hooks::Verdict;
use server::log::Level;
use server::request::Request;

use super::coordinates::{is_space, point, skip, vertex};
use super::menu::{Menu, Style};
use super::shape::Vertices;
use super::url::url;
use super::{Directory, Imagemap};
use crate::aaa::line::{NumberedLines, PASSWORD_LINE_LIMIT};

/// Reads the lines of a map up to the one that determines the response.
struct Reading<'r> {
    request: &'r mut Request,
    base: Vec<u8>,
    default: Vec<u8>,
    point: Option<[f64; 2]>,
    menu: Option<Menu>,
    vertices: Vertices,
    /// The value of the nearest `point` so far, and the square of its distance.
    nearest: Option<(Vec<u8>, f64)>,
}

/// The reason to stop reading a map.
enum Stop {
    /// An area has the point: its value.
    Found(Vec<u8>),
    /// The map can't be read, which is logged.
    Broken,
}

/// Responds according to a map's text.
pub(super) fn respond(dir: &Directory, request: &mut Request, text: &[u8]) -> Verdict {
    let setting = |word: Option<&Vec<u8>>, default: &[u8]| {
        word.map_or_else(|| default.to_vec(), Clone::clone)
    };
    let Some(base) = url(request, b"", &setting(dir.base.get(), b"map")) else {
        return Verdict::Status(500);
    };
    let Some(default) = url(request, b"", &setting(dir.default.get(), b"nocontent")) else {
        return Verdict::Status(500);
    };
    let point = point(request.query());
    let style = Style::parse(&setting(dir.menu.get(), b"formatted"));
    let menu = style.filter(|_| point.is_none()).map(|style| Menu::new(style, request));
    let vertices = Vertices::new();
    let mut reading = Reading { request, base, default, point, menu, vertices, nearest: None };
    for (number, line) in NumberedLines::new(text, PASSWORD_LINE_LIMIT) {
        // As in Apache, a NUL ends a line.
        let line = line.split(|byte| *byte == 0).next().unwrap_or_default();
        match reading.take(line, number) {
            Ok(()) => {}
            Err(Stop::Found(value)) => return reading.redirect(&value),
            Err(Stop::Broken) => return reading.fail(),
        }
    }
    reading.finish()
}

impl Reading<'_> {
    fn take(&mut self, line: &[u8], number: usize) -> Result<(), Stop> {
        match (line, &mut self.menu) {
            ([], Some(menu)) => menu.blank(),
            ([b'#', comment @ ..], Some(menu)) => menu.comment(comment),
            ([] | [b'#', ..], None) => {}
            _ => self.directive(line, number)?,
        }
        Ok(())
    }

    fn directive(&mut self, line: &[u8], number: usize) -> Result<(), Stop> {
        let (directive, rest) = word(line);
        let (value, mut rest) = word(skip(rest, is_space));
        if value.is_empty() {
            let uri = Verbatim::new(&self.request.resource.uri);
            let text = format_args!(
                "map file {uri}, line {number} syntax error: requires at least two fields"
            );
            self.request.log::<Imagemap>(Level::Error, 679, text);
            return Err(Stop::Broken);
        }
        if directive.get(..4).is_some_and(|four| four.eq_ignore_ascii_case(b"base")) {
            self.base = url(self.request, b"", value).ok_or(Stop::Broken)?;
            return Ok(());
        }
        let mut text = quoted(&mut rest);
        if directive.eq_ignore_ascii_case(b"default") {
            self.default = url(self.request, b"", value).ok_or(Stop::Broken)?;
            if let Some(menu) = &mut self.menu {
                let href = url(self.request, &self.base, &self.default).ok_or(Stop::Broken)?;
                menu.link(&href, text.unwrap_or(&self.default), true);
            }
            return Ok(());
        }
        self.vertices.set(std::iter::from_fn(|| vertex(&mut rest)));
        let Some(menu) = &mut self.menu else { return self.area(directive, value) };
        text = text.or_else(|| quoted(&mut rest));
        let href = url(self.request, &self.base, value).ok_or(Stop::Broken)?;
        menu.link(&href, text.unwrap_or(value), false);
        Ok(())
    }

    /// Checks whether the point is in an area, or near it.
    fn area(&mut self, directive: &[u8], value: &[u8]) -> Result<(), Stop> {
        let Some(point) = self.point.filter(|_| !self.vertices.is_empty()) else { return Ok(()) };
        let is = |word: &[u8]| directive.eq_ignore_ascii_case(word);
        let is_in = is(b"poly") && self.vertices.polygon_has(point)
            || is(b"circle") && self.vertices.circle_has(point)
            || is(b"rect") && self.vertices.rectangle_has(point);
        if is_in {
            return Err(Stop::Found(value.to_vec()));
        }
        if is(b"point") {
            let distance = self.vertices.distance_squared(point);
            if self.nearest.as_ref().is_none_or(|(_, least)| distance < *least) {
                self.nearest = Some((value.to_vec(), distance));
            }
        }
        Ok(())
    }

    /// No area has the point: the nearest `point`, the default, or the menu.
    fn finish(mut self) -> Verdict {
        if let Some(menu) = self.menu.take() {
            return self.show(menu);
        }
        let value = match self.nearest.take() {
            Some((value, _)) => value,
            None => std::mem::take(&mut self.default),
        };
        self.redirect(&value)
    }

    /// What was written of a menu is shown.
    fn fail(mut self) -> Verdict {
        match self.menu.take() {
            Some(mut menu) => {
                menu.fail();
                self.show(menu)
            }
            None => Verdict::Status(500),
        }
    }

    fn show(self, menu: Menu) -> Verdict {
        self.request.response.content_type = Some(b"text/html; charset=ISO-8859-1".to_vec());
        self.request.print(Body::from(menu.finish()));
        Verdict::Ok
    }

    /// Source: `imap_reply`.
    fn redirect(self, value: &[u8]) -> Verdict {
        match url(self.request, &self.base, value) {
            Some(url) if url.eq_ignore_ascii_case(b"nocontent") => Verdict::Status(204),
            Some(url) if !url.is_empty() && !url.eq_ignore_ascii_case(b"error") => {
                self.request.response.headers_out.set(b"Location", &url);
                Verdict::Status(302)
            }
            _ => Verdict::Status(500),
        }
    }
}

/// The text up to the next blank, and what follows it.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| is_space(*byte)).unwrap_or(text.len());
    (text.get(..end).unwrap_or_default(), text.get(end + 1..).unwrap_or_default())
}

/// Takes a quoted text from the beginning, if there is one (`read_quoted`).
fn quoted<'t>(rest: &mut &'t [u8]) -> Option<&'t [u8]> {
    let inner = skip(rest, is_space).strip_prefix(b"\"")?;
    let end = inner.iter().position(|byte| *byte == b'"').unwrap_or(inner.len());
    *rest = inner.get(end + 1..).unwrap_or_default();
    inner.get(..end)
}
