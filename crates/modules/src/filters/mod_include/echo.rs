//! `echo`, `set` and `printenv`.

use server::errorlog::Verbatim;

use super::page::Page;
use super::parse::Element;
use super::{coding, entity};

/// `<!--#echo [decoding="…"] [encoding="…"] var="…" … -->`
///
/// Source: `handle_echo`
pub(super) fn echo(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 1, (1343, "missing argument for echo element in")) {
        return;
    }
    let mut codings = Codings { tag: "echo", numbers: (1344, 1345), ..Codings::new(b"entity") };
    for (name, value) in element.values() {
        let value = entity::decoded(value);
        match name {
            b"var" => {
                let variable = page.substituted(&value);
                let Some(text) = page.variable(&variable) else {
                    let text = page.undefined_echo.clone();
                    page.out.put(&text);
                    continue;
                };
                let Some(text) = codings.apply(page, text) else { return };
                page.out.put(&text);
            }
            b"decoding" => codings.decoding = value,
            b"encoding" => codings.encoding = value,
            _ => {
                let (name, file) = (Verbatim::new(name), page.file());
                let text = format!("unknown parameter \"{name}\" in tag echo of {file}");
                return page.refuse(1346, &text);
            }
        }
    }
}

/// `<!--#set [decoding="…"] [encoding="…"] var="…" value="…" … -->`
///
/// Source: `handle_set`
pub(super) fn set(page: &mut Page<'_>, element: &Element) {
    if !page.begins(element, 2, (1362, "missing argument for set element in")) {
        return;
    }
    let mut codings = Codings { tag: "set", numbers: (1364, 1365), ..Codings::new(b"none") };
    let mut variable = None;
    for (name, value) in element.values() {
        match name {
            b"var" => variable = Some(page.substituted(&entity::decoded(value))),
            b"decoding" => codings.decoding = value.to_vec(),
            b"encoding" => codings.encoding = value.to_vec(),
            b"value" => {
                let Some(variable) = &variable else {
                    let file = page.file();
                    let text = format!("variable must precede value in set directive in {file}");
                    return page.refuse(1363, &text);
                };
                let text = page.substituted(value);
                let Some(text) = codings.apply(page, text) else { return };
                page.set_variable(variable, &text);
            }
            _ => {
                let text = format!("Invalid tag for set directive in {}", page.file());
                return page.refuse(1366, &text);
            }
        }
    }
}

/// `<!--#printenv -->`
///
/// Source: `handle_printenv`
pub(super) fn print_all(page: &mut Page<'_>, element: &Element) {
    let is_right = element.arguments.is_empty();
    let is_shown = page.flow.is_shown();
    page.check(is_right, is_shown, (1367, "printenv directive does not take tags in"));
    if !is_shown {
        return;
    }
    if !is_right {
        return page.fail();
    }
    page.depends_on_request();
    page.set_lazy();
    let mut out = Vec::new();
    for (name, value) in page.request.env.iter() {
        wire::escape::html(&mut out, name);
        out.push(b'=');
        wire::escape::html(&mut out, value);
        out.push(b'\n');
    }
    page.out.put(&out);
}

/// The codings that hold until the next `decoding` or `encoding`.
struct Codings {
    tag: &'static str,
    /// The messages for an unknown decoding and encoding.
    numbers: (u32, u32),
    decoding: Vec<u8>,
    encoding: Vec<u8>,
}

impl Codings {
    fn new(encoding: &[u8]) -> Codings {
        let decoding = b"none".to_vec();
        Codings { tag: "", numbers: (0, 0), decoding, encoding: encoding.to_vec() }
    }

    /// Decodes and encodes a text. If a name is unknown, the rest of the element is dropped; as in
    /// Apache there are two messages if one of each is unknown.
    fn apply(&self, page: &mut Page<'_>, mut text: Vec<u8>) -> Option<Vec<u8>> {
        let mut is_right = true;
        for name in coding::names(&self.decoding) {
            match coding::decode(name, text) {
                Some(decoded) => text = decoded,
                None => {
                    is_right = false;
                    self.refuse(page, self.numbers.0, "decoding", name);
                    text = Vec::new();
                    break;
                }
            }
        }
        for name in coding::names(&self.encoding) {
            match coding::encode(name, text) {
                Some(encoded) => text = encoded,
                None => {
                    self.refuse(page, self.numbers.1, "encoding", name);
                    return None;
                }
            }
        }
        is_right.then_some(text)
    }

    fn refuse(&self, page: &mut Page<'_>, number: u32, parameter: &str, name: &[u8]) {
        let (name, tag, file) = (Verbatim::new(name), self.tag, page.file());
        let text =
            format!("unknown value \"{name}\" to parameter \"{parameter}\" of tag {tag} in {file}");
        page.refuse(number, &text);
    }
}
