//! Applies the changes.
//!
//! Source: `do_headers_fixup` (modules/metadata/mod_headers.c).

use conf::expr::EvalError;
use pcre::{Captures, Later, MAX_SUBSTITUTION_BYTES, Regex, TooLong, substitute};
use server::explain::Recorder;
use server::expr;
use server::log::Level;
use server::request::Request;
use wire::Table;

use super::Headers;
use super::entry::{Action, Condition, Entry, Value};

/// Which fields are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// The request's.
    Request,
    /// The response's, if it succeeds (`headers_out`).
    Success,
    /// The response's in any case (`err_headers_out`).
    Always,
}

/// When fields are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Time {
    /// As soon as the request is read.
    Early,
    /// When the response is known.
    Late,
}

/// Applies the changes that are due, except the first `done`, which were applied before.
///
/// # Errors
/// [`Later`] if a match has to be made first; `done` counts the changes applied.
pub(super) fn apply(
    request: &mut Request,
    fields: Fields,
    entries: &[Entry],
    time: Time,
    done: &mut usize,
) -> Result<(), Later> {
    while let Some(entry) = entries.get(*done) {
        if entry.is_early() == (time == Time::Early) && holds(&entry.condition, request)? {
            change(request, fields, entry)?;
            if let Some(recorder) = request.engine.recording() {
                record(recorder, request, fields, entry);
            }
        }
        *done += 1;
    }
    Ok(())
}

#[cold]
fn record(recorder: &Recorder, request: &Request, fields: Fields, entry: &Entry) {
    let (table, values) = match fields {
        Fields::Request => return recorder.directive(&entry.name, entry.span),
        Fields::Success => ("header", &request.response.headers_out),
        Fields::Always => ("header (always)", &request.response.err_headers_out),
    };
    let values: Vec<&[u8]> = values.get_all(&entry.name).collect();
    let replaces = matches!(entry.action, Action::Set(_));
    recorder.field_line((&entry.name, entry.span), table, &values, replaces);
}

/// Whether a condition holds. As in Apache, one that can't be evaluated is ignored, and the change
/// applied. An undecided one does not hold.
fn holds(condition: &Condition, request: &mut Request) -> Result<bool, Later> {
    Ok(match condition {
        Condition::Always | Condition::Early => true,
        Condition::Variable(name, wanted) => request.env.contains(name) == *wanted,
        Condition::Expression(expr) => {
            let mut backrefs = conf::expr::Backrefs::new();
            match expr::condition(expr, request, &mut backrefs)? {
                Ok(holds) => holds,
                Err(EvalError::Undecided) => false,
                Err(why) => {
                    request.log::<Headers>(
                        Level::Error,
                        1501,
                        format_args!("Failed to evaluate expression ({why}) - ignoring"),
                    );
                    true
                }
            }
        }
    })
}

fn table(request: &mut Request, fields: Fields) -> &mut Table {
    match fields {
        Fields::Request => &mut request.head.headers_in,
        Fields::Success => &mut request.response.headers_out,
        Fields::Always => &mut request.response.err_headers_out,
    }
}

/// Whether a field of requests has credentials: those that were sent count for mod_auth_digest.
fn is_credentials(name: &[u8]) -> bool {
    let is = |field: &[u8]| name.eq_ignore_ascii_case(field);
    is(b"Authorization") || is(b"Proxy-Authorization")
}

/// Applies a change, or nothing if the result is [`Later`].
fn change(request: &mut Request, fields: Fields, entry: &Entry) -> Result<(), Later> {
    let name = entry.name.as_slice();
    if fields == Fields::Success && request.response.expiry.is_some() {
        let is_fixed = matches!(entry.action, Action::Set(_) | Action::Unset);
        request.changes_field(name, is_fixed);
    }
    if fields == Fields::Request && !entry.is_early() && is_credentials(name) {
        request.keep_credentials();
    }
    match &entry.action {
        Action::Add(value) => {
            let value = text(value, request);
            table(request, fields).add(name, &value);
        }
        Action::Append(value) => {
            let value = text(value, request);
            table(request, fields).merge(name, &value);
        }
        Action::Merge(value) => {
            let value = text(value, request);
            let fields = table(request, fields);
            if !fields.get(name).is_some_and(|list| has_element(list, &value)) {
                fields.merge(name, &value);
            }
        }
        Action::Set(value) => set(request, fields, name, value),
        Action::SetIfEmpty(value) => {
            if !table(request, fields).contains(name) {
                set(request, fields, name, value);
            }
        }
        Action::Unset => {
            if is_media_type(fields, name) {
                request.response.content_type = None;
            }
            table(request, fields).unset(name);
        }
        Action::Echo(names) => {
            let mut echoed = Vec::new();
            for (index, (name, _)) in request.head.headers_in.iter().enumerate() {
                if request.matches(names, name, None)?.surely() {
                    echoed.push(index);
                }
            }
            for index in echoed {
                if let Some((name, value)) = request.head.headers_in.iter().nth(index) {
                    request.response.headers_out.add(name, value);
                }
            }
        }
        Action::Edit(regex, value) => edit(request, fields, name, regex, value, false)?,
        Action::EditAll(regex, value) => edit(request, fields, name, regex, value, true)?,
        Action::Note(value) => {
            let note = text(value, request);
            match table(request, fields).get(name).map(<[u8]>::to_vec) {
                Some(value) => request.notes.set(&note, &value),
                None => {
                    request.notes.unset(&note);
                }
            }
        }
    }
    if fields == Fields::Request && name.eq_ignore_ascii_case(b"Connection") {
        request.change_connection();
    }
    Ok(())
}

/// Whether the field is the response's media type, which is stored separately.
fn is_media_type(fields: Fields, name: &[u8]) -> bool {
    fields != Fields::Request && name.eq_ignore_ascii_case(b"Content-Type")
}

/// Sets a field. The value for a `Content-Type` is made twice, as in Apache: the second may contain
/// the first (`CONTENT_TYPE`), and is what a 304 shows.
fn set(request: &mut Request, fields: Fields, name: &[u8], value: &Value) {
    if is_media_type(fields, name) {
        request.response.content_type = Some(text(value, request));
    }
    let value = text(value, request);
    table(request, fields).set(name, &value);
}

fn text(value: &Value, request: &mut Request) -> Vec<u8> {
    match value {
        Value::Format(format) => format.fill(request),
        Value::Expression(expr) => match expr::string(expr, request) {
            Ok(text) => text,
            Err(why) => {
                request.log::<Headers>(
                    Level::Error,
                    2557,
                    format_args!("Can't evaluate value expression: {why}"),
                );
                Vec::new()
            }
        },
    }
}

/// Whether a comma-separated list contains exactly this element. Commas in quotes do not separate.
fn has_element(list: &[u8], element: &[u8]) -> bool {
    let mut quoted = false;
    let mut elements = list.split(|byte| {
        quoted ^= *byte == b'"';
        *byte == b',' && !quoted
    });
    elements.any(|found| found.trim_ascii_start() == element)
}

fn edit(
    request: &mut Request,
    fields: Fields,
    name: &[u8],
    regex: &Regex,
    value: &Value,
    all: bool,
) -> Result<(), Later> {
    let media_type =
        match request.response.content_type.clone().filter(|_| is_media_type(fields, name)) {
            Some(old) => Some(replaced(request, regex, value, &old, all)?),
            None => None,
        };
    let mut new: Vec<Vec<u8>> = table(request, fields).get_all(name).map(<[u8]>::to_vec).collect();
    for value_of in &mut new {
        *value_of = replaced(request, regex, value, value_of, all)?;
    }
    if media_type.is_some() {
        request.response.content_type = media_type;
    }
    if !new.is_empty() {
        let fields = table(request, fields);
        fields.unset(name);
        for value in &new {
            fields.add(name, value);
        }
    }
    Ok(())
}

/// `text` with the first match, or all of them, replaced. Tags are filled in before `$1` and so on,
/// so that a client's data can't become a reference.
fn replaced(
    request: &mut Request,
    regex: &Regex,
    value: &Value,
    text_of: &[u8],
    all: bool,
) -> Result<Vec<u8>, Later> {
    let template = text(value, request);
    let find = |text: &[u8], captures: &mut Captures| {
        Ok(request.matches(regex, text, Some(captures))?.surely())
    };
    Ok(replace(find, &template, text_of, all)?.unwrap_or_else(|_: TooLong| {
        request.log::<Headers>(
            Level::Error,
            20_110,
            format_args!("the value was not edited: it would become too long"),
        );
        text_of.to_vec()
    }))
}

fn replace(
    find: impl Fn(&[u8], &mut Captures) -> Result<bool, Later>,
    template: &[u8],
    text: &[u8],
    all: bool,
) -> Result<Result<Vec<u8>, TooLong>, Later> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    let mut captures = Captures::new();
    while find(rest, &mut captures)? {
        let Some(found) = captures.range(0) else { break };
        out.extend_from_slice(rest.get(..found.start).unwrap_or_default());
        let limit = MAX_SUBSTITUTION_BYTES.saturating_sub(out.len());
        if let Err(too_long) = substitute(template, rest, &captures, limit, &mut out) {
            return Ok(Err(too_long));
        }
        let after = rest.get(found.end..).unwrap_or_default();
        rest = after;
        if !all {
            break;
        }
        if found.is_empty() {
            // An empty match would recur forever, which Apache's recursion does.
            let Some((next, after)) = rest.split_first() else { break };
            out.push(*next);
            rest = after;
        }
    }
    out.extend_from_slice(rest);
    Ok(Ok(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edited(pattern: &str, template: &str, text: &str, all: bool) -> String {
        let regex = Regex::new(pattern.as_bytes(), pcre::Flags::default());
        let regex = regex.unwrap_or_else(|why| panic!("{why}"));
        let find = |text: &[u8], captures: &mut Captures| regex.glance(text, Some(captures));
        let out = replace(find, template.as_bytes(), text.as_bytes(), all);
        String::from_utf8_lossy(&out.unwrap().unwrap()).into_owned()
    }

    #[test]
    fn one_match_or_all() {
        assert_eq!(edited("a", "b", "aaa", false), "baa");
        assert_eq!(edited("a", "b", "xaaa", true), "xbbb");
        assert_eq!(edited("^(.)(.*)$", "$2$1", "abc", false), "bca");
        assert_eq!(edited("z", "b", "aaa", true), "aaa");
    }

    #[test]
    fn empty_matches_end() {
        assert_eq!(edited("x*", "-", "ab", true), "-a-b-");
        assert_eq!(edited("^", "-", "ab", false), "-ab");
    }

    #[test]
    fn elements_of_lists() {
        assert!(has_element(b"a, b,c", b"b"));
        assert!(!has_element(b"a, bc", b"b"));
        assert!(!has_element(b"\"a, b\"", b"b\""));
    }
}
