//! Byte ranges: the last filter that changes a response's content.
//!
//! Source: `ap_byterange_filter` (modules/http/byterange_filter.c).

use std::collections::VecDeque;

use server::body::{Body, FileSlice};
use server::core::{CoreDir, RangeLimit};
use server::errors;
use server::filter::{OutputFilter, Stage};
use server::request::{BodyEnd, Proxied, Request};
use wire::Version;
use wire::conditional::{Condition, Validators, if_range};
use wire::range::{self, ByteRange, RangeLimits, Selection};

/// Attaches the filter if the client requests ranges, for any handler.
#[inline]
pub fn attach(request: &mut Request) {
    if request.response.status == 200 && request.head.headers_in.contains(b"Range") {
        request.add_filter("BYTERANGE", Stage::PROTOCOL, Box::new(RangeFilter));
    }
}

/// Makes the response a 416 if no range lies within the body. Apache finds this after its handlers,
/// when the fields of the response are already merged: the 416 has none of them. Over HTTP/2 it
/// merges them later: the 416 has those for errors, and what is set `always` once more.
#[inline]
pub async fn refuse_unsatisfiable(request: &mut Request) -> bool {
    if request.kept::<Unsatisfiable>().is_none() {
        return false;
    }
    if u32::from(request.head.protocol) < Version::HTTP_20.0 {
        request.response.err_headers_out.clear();
    }
    request.keep(errors::FailedInFilter);
    errors::die(request, 416).await;
    true
}

/// Extracts the requested ranges from a body of known length.
struct RangeFilter;

/// Marks a response of which no range lies within the body.
struct Unsatisfiable;

impl OutputFilter for RangeFilter {
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        // A body changed by a filter has no known length, or does not match the validators. Of one
        // that is still to come, or is only announced to HEAD, there is nothing to select from.
        let Some(length) = body.length().filter(|_| !matches!(body, Body::Stream(_))) else {
            return body;
        };
        // The end of a program's output does not come with the rest, nor that of another server's
        // response without a length, unless a filter has waited for it.
        let has_length = || request.response.headers_out.contains(b"Content-Length");
        let is_of_program = request.response.end == BodyEnd::WithBody;
        let is_open = (is_of_program || request.resource.proxied != Proxied::No && !has_length())
            && !request.is_gathered();
        if request.response.status != 200
            || request.response.chunked
            || !request.allows_ranges()
            || is_open
            || request.head.headers_in.is_empty()
        {
            return body;
        }
        if request.response.headers_out.contains(b"Content-Range") {
            return body;
        }
        let (sent, mut ranges) = (request.sent_validators(), Vec::new());
        let sent = sent.for_request(request);
        match select(request, &sent, &request.plan.core, length, &mut ranges) {
            Selection::Whole => body,
            Selection::Unsatisfiable => {
                request.keep(Unsatisfiable);
                Body::Empty
            }
            Selection::Parts => parts(request, &body, &ranges, length).unwrap_or(body),
        }
    }
}

/// The ranges that a request selects of a body of `length` bytes (`ap_set_byterange`). `sent` is
/// compared with `If-Range`.
pub fn select(
    request: &Request,
    sent: &Validators<'_>,
    core: &CoreDir,
    length: u64,
    ranges: &mut Vec<ByteRange>,
) -> Selection {
    ranges.clear();
    let fields = &request.head.headers_in;
    let Some(value) = fields.get(b"Range") else { return Selection::Whole };
    let judged = if_range(fields, sent);
    if matches!(judged, Condition::NoMatch | Condition::Weak) {
        return Selection::Whole;
    }
    range::select(value, length, &limits(core), ranges)
}

fn limits(core: &CoreDir) -> RangeLimits {
    let default = RangeLimits::default();
    let limit = |setting: Option<&RangeLimit>, default: Option<usize>| match setting {
        None => default,
        Some(RangeLimit::Unlimited) => None,
        Some(RangeLimit::Most(most)) => Some(usize::try_from(*most).unwrap_or(usize::MAX)),
    };
    RangeLimits {
        ranges: limit(core.max_ranges.get(), default.ranges),
        overlaps: limit(core.max_range_overlaps.get(), default.overlaps),
        reversals: limit(core.max_range_reversals.get(), default.reversals),
    }
}

fn parts(request: &mut Request, body: &Body, ranges: &[ByteRange], length: u64) -> Option<Body> {
    let (first, rest) = ranges.split_first()?;
    if rest.is_empty() {
        let part = slice(body, *first)?;
        let mut value = Vec::new();
        range::write_content_range(&mut value, *first, length);
        request.response.headers_out.set(b"Content-Range", &value);
        finish(request, first.len());
        return Some(part);
    }
    let boundary = range::boundary(random());
    let media_type = request.media_type();
    let mut all = VecDeque::with_capacity(ranges.len() * 2 + 1);
    for range in ranges {
        let mut head = Vec::new();
        range::write_part_head(&mut head, &boundary, media_type.as_deref(), *range, length);
        all.push_back(Body::from(head));
        all.push_back(slice(body, *range)?);
    }
    let mut end = Vec::new();
    range::write_last_boundary(&mut end, &boundary);
    all.push_back(Body::from(end));
    let all = Body::Parts(all);
    let kind = b"multipart/byteranges; boundary=";
    request.response.content_type = Some([&kind[..], &boundary].concat());
    finish(request, all.length().unwrap_or(0));
    Some(all)
}

fn finish(request: &mut Request, length: u64) {
    request.response.status = 206;
    request.response.status_line = None;
    let mut digits = itoa::Buffer::new();
    request.response.headers_out.set(b"Content-Length", digits.format(length).as_bytes());
}

/// A part of a body in memory or in a file; `None` for others.
fn slice(body: &Body, range: ByteRange) -> Option<Body> {
    match body {
        Body::Bytes(bytes) => {
            let first = usize::try_from(range.first).ok()?;
            let end = first.checked_add(usize::try_from(range.len()).ok()?)?;
            (end <= bytes.len()).then(|| Body::Bytes(bytes.slice(first..end)))
        }
        Body::File(file) => Some(Body::File(FileSlice {
            file: file.file.clone(),
            offset: file.offset + range.first,
            length: range.len(),
        })),
        _ => None,
    }
}

/// A number that no body contains by accident.
fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slice_never_reaches_over_its_body() {
        let body = Body::from("hello");
        let cut = slice(&body, ByteRange { first: 1, last: 2 });
        assert!(matches!(cut, Some(Body::Bytes(bytes)) if &bytes[..] == b"el"));
        assert!(slice(&body, ByteRange { first: 4, last: 5 }).is_none());
        assert!(slice(&Body::Empty, ByteRange { first: 0, last: 0 }).is_none());
    }
}
