//! Conditional requests (`ap_meets_conditions` and the `ap_condition_if_*` functions).

use crate::method::Method;
use crate::table::Table;
use crate::{date, etag};

/// Age in seconds from which a resource's modification time is a strong validator.
const STRONG_AFTER_SECONDS: i64 = 60;

/// The outcome of a request's conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Respond as if there were no conditions. [`if_range`] evaluates `Range`.
    Proceed,
    /// Respond with 304.
    NotModified,
    /// Respond with 412.
    PreconditionFailed,
}

impl Decision {
    /// The status; `None` for [`Decision::Proceed`].
    pub const fn status(self) -> Option<u16> {
        match self {
            Decision::Proceed => None,
            Decision::NotModified => Some(304),
            Decision::PreconditionFailed => Some(412),
        }
    }
}

/// The outcome of one condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The field was not sent.
    None,
    /// The condition does not hold.
    NoMatch,
    /// The condition holds by a weak validator.
    Weak,
    /// The condition holds by a strong validator.
    Strong,
}

/// The validators of the selected representation.
#[derive(Clone, Copy, Debug)]
pub struct Validators<'a> {
    /// The request's method (`HEAD` counts as `GET`).
    pub method: Method,
    /// The response's `ETag` field.
    pub etag: Option<&'a [u8]>,
    /// The response's `Last-Modified` field, seconds since 1970. Defaults to the request's time.
    pub last_modified: Option<i64>,
    /// The request's time, seconds since 1970.
    pub now: i64,
}

impl Validators<'_> {
    fn mtime(&self) -> i64 {
        self.last_modified.unwrap_or(self.now)
    }

    /// Whether the resource is so young that it could change again within the same second, with the
    /// same modification time.
    fn is_young(&self) -> bool {
        self.now < self.mtime().saturating_add(STRONG_AFTER_SECONDS)
    }
}

/// Evaluates all conditions of a request. Call this only if the status so far is a success.
pub fn meets_conditions(request: &Table, known: &Validators<'_>) -> Decision {
    if if_match(request, known) == Condition::NoMatch {
        return Decision::PreconditionFailed;
    }
    let is_get = known.method == Method::GET;
    // A 304 requires every condition in the request to agree: RFC 9110 section 13.2.2 ignores
    // If-Modified-Since beside If-None-Match, Apache does not. An If-Unmodified-Since that holds,
    // or is no date, rules a 304 out.
    let mut not_modified = None;
    match if_unmodified_since(request, known) {
        Condition::None => {}
        Condition::NoMatch => not_modified = Some(false),
        Condition::Weak | Condition::Strong => return Decision::PreconditionFailed,
    }
    match if_none_match(request, known) {
        Condition::None => {}
        Condition::NoMatch => not_modified = Some(false),
        _ if is_get && not_modified.is_none() => not_modified = Some(true),
        _ if is_get => {}
        _ => return Decision::PreconditionFailed,
    }
    match if_modified_since(request, known) {
        Condition::None => {}
        Condition::NoMatch => not_modified = Some(false),
        _ if is_get && not_modified.is_none() => not_modified = Some(true),
        _ => {}
    }
    if not_modified == Some(true) && if_range(request, known) == Condition::None {
        return Decision::NotModified;
    }
    Decision::Proceed
}

/// `If-Match`: `*` or a tag that is strongly equal.
pub fn if_match(request: &Table, known: &Validators<'_>) -> Condition {
    let Some(list) = request.get(b"If-Match") else { return Condition::None };
    let matches = list.first() == Some(&b'*')
        || known.etag.is_some_and(|etag| etag::list_has_strong(list, etag));
    if matches { Condition::Strong } else { Condition::NoMatch }
}

/// `If-Unmodified-Since`: a match means that the resource **was** modified since.
pub fn if_unmodified_since(request: &Table, known: &Validators<'_>) -> Condition {
    let Some(value) = request.get(b"If-Unmodified-Since") else { return Condition::None };
    match date::parse(value).filter(|date| *date != 0) {
        Some(date) if known.mtime() > date => by_time(request, known),
        _ => Condition::NoMatch,
    }
}

/// `If-None-Match`: weak comparison for `GET` and `HEAD` without `Range`, else strong.
pub fn if_none_match(request: &Table, known: &Validators<'_>) -> Condition {
    let Some(list) = request.get(b"If-None-Match") else { return Condition::None };
    if list.first() == Some(&b'*') {
        return Condition::Strong;
    }
    let Some(etag) = known.etag else { return Condition::NoMatch };
    if known.method == Method::GET && !request.contains(b"Range") {
        return if etag::list_has_weak(list, etag) { Condition::Weak } else { Condition::NoMatch };
    }
    if etag::list_has_strong(list, etag) { Condition::Strong } else { Condition::NoMatch }
}

/// `If-Modified-Since`: a match means that the resource was **not** modified since. A date in the
/// future is ignored.
pub fn if_modified_since(request: &Table, known: &Validators<'_>) -> Condition {
    let Some(value) = request.get(b"If-Modified-Since") else { return Condition::None };
    let date = date::parse(value).unwrap_or(0);
    if date >= known.mtime() && date <= known.now {
        return by_time(request, known);
    }
    Condition::NoMatch
}

/// `If-Range`: whether `Range` applies. An entity tag must be strong and identical; a date must be
/// identical, and the resource older than a minute.
pub fn if_range(request: &Table, known: &Validators<'_>) -> Condition {
    let Some(value) = request.get(b"If-Range") else { return Condition::None };
    if !request.contains(b"Range") {
        return Condition::None;
    }
    let matches = if value.first() == Some(&b'"') {
        known.etag == Some(value)
    } else {
        date::parse(value) == Some(known.mtime()) && !known.is_young()
    };
    if matches { Condition::Strong } else { Condition::NoMatch }
}

/// A match by time. While the resource is young it is weak, and with `Range` no match at all.
fn by_time(request: &Table, known: &Validators<'_>) -> Condition {
    match known.is_young() {
        true if request.contains(b"Range") => Condition::NoMatch,
        true => Condition::Weak,
        false => Condition::Strong,
    }
}

#[cfg(test)]
mod tests;
