//! `if`, `elif`, `else` and `endif`.
//!
//! Source: `handle_if`, `handle_elif`, `handle_else`, `handle_endif`

use bstr::ByteSlice;
use conf::expr::{Error, Expr};
use server::errorlog::Verbatim;
use server::log::Level;
use server::{expr, matching};

use super::compiled::Condition;
use super::legacy;
use super::page::Page;
use super::parse::Element;

/// Which parts of a page are shown.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    is_shown: bool,
    /// Whether a branch of the current `if` was true.
    was_true: bool,
    /// How many `if` began in a part that is not shown.
    depth: usize,
    /// Whether a condition had an error since the last `endif`: then `else` does nothing.
    has_error: bool,
}

impl Default for Flow {
    fn default() -> Flow {
        Flow { is_shown: true, was_true: true, depth: 0, has_error: false }
    }
}

impl Flow {
    /// Whether what comes now is shown.
    pub fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Shows a branch or not; one whose condition has an error is not shown.
    fn decide(&mut self, holds: Option<bool>) {
        self.is_shown = holds == Some(true);
        self.was_true = self.is_shown;
        self.has_error |= holds.is_none();
    }
}

/// `<!--#if expr="…" -->`
pub(super) async fn begin(page: &mut Page<'_>, element: &Element) {
    let is_shown = page.flow.is_shown;
    check(page, element, is_shown, (1353, 1352));
    if !is_shown {
        page.flow.depth += 1;
        return;
    }
    let holds = match condition(page, element, Texts::IF) {
        Some(condition) => evaluate(page, condition).await,
        None => None,
    };
    page.flow.decide(holds);
    page.flow.depth = 0;
}

/// `<!--#elif expr="…" -->`
pub(super) async fn alternative(page: &mut Page<'_>, element: &Element) {
    check(page, element, page.flow.depth == 0, (1357, 1356));
    if page.flow.depth > 0 {
        return;
    }
    let Some(condition) = condition(page, element, Texts::ELIF) else {
        return page.flow.decide(None);
    };
    if page.flow.was_true {
        page.flow.is_shown = false;
        return;
    }
    let holds = evaluate(page, condition).await;
    page.flow.decide(holds);
}

/// `<!--#else -->`
pub(super) fn otherwise(page: &mut Page<'_>, element: &Element) {
    let is_right = element.arguments.is_empty();
    page.check(is_right, page.flow.depth == 0, (1360, "else directive does not take tags in"));
    if page.flow.depth > 0 {
        return;
    }
    if !is_right {
        if page.flow.is_shown {
            page.fail();
        }
        return;
    }
    if !page.flow.has_error {
        page.flow.decide(Some(!page.flow.was_true));
        page.flow.was_true = true;
    }
}

/// `<!--#endif -->`
pub(super) fn end(page: &mut Page<'_>, element: &Element) {
    let is_right = element.arguments.is_empty();
    page.check(is_right, page.flow.depth == 0, (1361, "endif directive does not take tags in"));
    if page.flow.depth > 0 {
        page.flow.depth -= 1;
        return;
    }
    if !is_right {
        return page.fail();
    }
    page.flow = Flow::default();
}

/// The messages for a wrong argument.
struct Texts {
    unknown: u32,
    missing: (u32, &'static str),
}

impl Texts {
    const IF: Texts =
        Texts { unknown: 1354, missing: (1355, "missing expr value for if element in") };
    const ELIF: Texts = Texts { unknown: 1358, missing: (1359, "missing expr in elif statement:") };
}

/// Logs a wrong number of arguments.
fn check(page: &Page<'_>, element: &Element, heeded: bool, (missing, too_many): (u32, u32)) {
    match element.arguments.len() {
        0 => page.check(false, heeded, (missing, "missing expr argument for if element in")),
        1 => {}
        _ => page.check(false, heeded, (too_many, "too many arguments for if element in")),
    }
}

/// The condition of an element that is executed; otherwise the message for errors is shown.
fn condition<'e>(page: &mut Page<'_>, element: &'e Element, texts: Texts) -> Option<&'e [u8]> {
    let [argument] = element.arguments.as_slice() else {
        page.fail();
        return None;
    };
    if argument.name != b"expr" {
        let (name, file) = (Verbatim::new(&argument.name), page.file());
        let text = format!("unknown parameter \"{name}\" to tag if in {file}");
        page.refuse(texts.unknown, &text);
        return None;
    }
    if argument.value.is_none() {
        let text = format!("{} {}", texts.missing.1, page.file());
        page.refuse(texts.missing.0, &text);
    }
    argument.value.as_deref()
}

/// Whether a condition holds; an error is logged and shown.
async fn evaluate(page: &mut Page<'_>, condition: &[u8]) -> Option<bool> {
    let compiled = page.compiled.clone();
    let holds = match compiled.condition(page.at) {
        Some(Condition::Expr(parsed)) => holds(page, condition, parsed.as_ref()).await,
        Some(Condition::Legacy(parsed)) => legacy::holds(page, condition, parsed.as_ref()).await,
        None => None,
    };
    if holds.is_none() {
        page.fail();
    }
    holds
}

/// Source: `parse_ap_expr`
async fn holds(
    page: &mut Page<'_>,
    condition: &[u8],
    parsed: Result<&Expr, &Error>,
) -> Option<bool> {
    let shown = Verbatim::new(condition);
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(why) => {
            let file = page.file();
            let text = format_args!("Could not parse expr \"{shown}\" in {file}: {why}");
            page.log(Level::Error, 1337, text);
            return None;
        }
    };
    if names_lazy(condition) {
        page.set_lazy();
    }
    let whole = page.lend_group();
    (page.captured.pattern, page.captured.count) = (None, 0);
    let mut read = Vec::new();
    let outcome = loop {
        let groups = &mut page.captured.groups;
        match expr::condition_of_page(parsed, &mut page.request, groups, &mut read) {
            Ok(outcome) => break outcome,
            Err(pcre::Later) => matching::decide(&mut page.request).await,
        }
    };
    page.take_group(whole);
    read.iter().for_each(|name| page.depends_on_variable(name));
    match outcome {
        Ok(holds) => Some(holds),
        Err(why) => {
            let file = page.file();
            let text = format_args!("Could not evaluate expr \"{shown}\" in {file}: {why}");
            page.log(Level::Error, 1338, text);
            None
        }
    }
}

/// Whether a condition may read a variable that has no value before it is read.
fn names_lazy(condition: &[u8]) -> bool {
    let upper = condition.to_ascii_uppercase();
    [b"DATE_".as_slice(), b"LAST_MODIFIED", b"USER_NAME"]
        .iter()
        .any(|name| upper.contains_str(name))
}
