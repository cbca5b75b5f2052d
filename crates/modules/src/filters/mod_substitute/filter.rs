//! The output filter. Source: `substitute_filter`.

use std::time::Instant;

use bytes::Bytes;
use rt::Work;
use server::body::Body;
use server::errorlog::Verbatim;
use server::errors;
use server::filter::{Beginning, OutputFilter};
use server::log::Level;
use server::request::{Announced, BodyEnd, Request};

use super::lines::{Lines, PIECE};
use super::rule::{Limits, Made, Patience, Wrong, replace_line};
use super::{Rules, Substitute};
use crate::filters::rewritten::{Passed, body_of};

/// A longer body is rewritten while it is sent.
const WHOLE_BYTES: usize = 256 * 1024;

/// Apache sends what it has of a body once lines have made more than so many parts
/// (`AP_MAX_BUCKETS`).
const PARTS: usize = 1000;

/// Bytes that are rewritten in one turn of the loop.
const TURN_BYTES: usize = 64 * 1024;

/// `SUBSTITUTE`
#[derive(Default)]
pub(super) struct Filter {
    /// Whether the body has been rewritten.
    is_done: bool,
}

impl OutputFilter for Filter {
    fn parts_refusal(&self, _: &mut Request, _: bool) -> bool {
        true
    }

    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        request.response.unset_length();
        let length = request.response.body.length();
        if length == Some(0) {
            // Of an empty file, only the end is passed on.
            self.is_done = true;
            request.response.announced = Announced::End;
            return None;
        }
        let is_short = length.is_some_and(|length| length <= WHOLE_BYTES as u64);
        is_short.then(|| Box::pin(begin(self, request)) as Beginning<'r>)
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if self.is_done {
            return body;
        }
        let body = body_of(Lines::new(&rules(request)), Bytes::new(), body, Vec::new());
        request.response.chunked &= body.length().is_none();
        body
    }

    fn is_pure(&self) -> bool {
        true
    }
}

fn rules(request: &Request) -> Rules {
    request.dir_of::<Substitute>().map(|dir| dir.rules.clone()).unwrap_or_default()
}

/// Rewrites a short body; returns false if the response has become an error.
async fn begin(filter: &mut Filter, request: &mut Request) -> bool {
    let rules = rules(request);
    let body = std::mem::take(&mut request.response.body);
    let (head, rest) = body.gathered(WHOLE_BYTES + 1).await.split_head();
    if !matches!(rest, Body::Empty) {
        request.response.body = Body::Parts([Body::Bytes(head), rest].into());
        return true;
    }
    // Apache passes lines on as they end, and one without an end with that of the body: only of a
    // single such one is the length known.
    let lines = head.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    match parts(request, &rules, &head, lines).await {
        Ok((text, passed)) => {
            request.response.end = BodyEnd::ByFraming;
            request.response.chunked = lines > 0;
            if lines == 0 {
                request.allow_ranges();
            }
            request.keep(passed);
            request.response.body = if text.is_empty() { Body::Empty } else { Body::from(text) };
            filter.is_done = true;
            true
        }
        Err(_) => {
            let uri = request.resource.uri.clone();
            let uri = Verbatim::new(&uri);
            request.log::<Substitute>(Level::Error, 1328, format_args!("Line too long, URI {uri}"));
            Box::pin(errors::fail_in_filter(request)).await;
            false
        }
    }
}

/// The result for a whole body whose first bytes are `lines`, and how it is passed on.
async fn parts(
    request: &Request,
    rules: &Rules,
    text: &Bytes,
    lines: usize,
) -> Result<(Vec<u8>, Passed), Wrong> {
    let mut made = Made::default();
    let mut out = whole(request, rules, &text.slice(..lines), &mut made).await?;
    let is_flushed = made.parts > PARTS;
    let tail = whole(request, rules, &text.slice(lines..), &mut made).await?;
    out.extend_from_slice(&tail);
    let Made { last, is_held, .. } = made;
    let (length, with_end, last) = (out.len() as u64, tail.len() as u64, last as u64);
    Ok((out, Passed { length, with_end, last, is_flushed, is_held }))
}

/// The result for a part of a body. From the first line that takes long on, it is left to the pool.
async fn whole(
    request: &Request,
    rules: &Rules,
    text: &Bytes,
    made: &mut Made,
) -> Result<Vec<u8>, Wrong> {
    let mut out = Vec::with_capacity(text.len());
    let (line_bytes, mut rest) = (rules.limit(), text.as_ref());
    let (mut turn, mut end) = (0, Instant::now() + PIECE);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if is_too_long(line, line_bytes) {
            return Err(Wrong::TooLong);
        }
        let limits = Limits { line_bytes, patience: Patience::Loop(end) };
        match replace_line(&rules.list, line, limits, &mut out, made) {
            Err(Wrong::Later) => {
                let (more, of_all) = patiently(request, rules, rest, *made).await?;
                out.extend(more);
                *made = of_all;
                return Ok(out);
            }
            done => done?,
        }
        rest = rest.get(line.len()..).unwrap_or_default();
        turn += line.len();
        if turn > TURN_BYTES {
            rt::after_sockets().await;
            (turn, end) = (0, Instant::now() + PIECE);
        }
    }
    Ok(out)
}

/// Apache limits a line without an end before it replaces anything.
fn is_too_long(line: &[u8], line_bytes: usize) -> bool {
    line.last() != Some(&b'\n') && line.len() > line_bytes
}

/// The result of lines, which may take long, and the parts with what was `made` before.
async fn patiently(
    request: &Request,
    rules: &Rules,
    text: &[u8],
    mut made: Made,
) -> Result<(Vec<u8>, Made), Wrong> {
    let (rules, text) = (rules.clone(), text.to_vec());
    let limits = Limits { line_bytes: rules.limit(), patience: Patience::Pool };
    let pool = request.engine.handle.blocking().clone();
    let replace = move || {
        let mut out = Vec::new();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            if is_too_long(line, limits.line_bytes) {
                return Err(Wrong::TooLong);
            }
            replace_line(&rules.list, line, limits, &mut out, &mut made)?;
        }
        Ok((out, made))
    };
    pool.run(Work::Body, replace).await.unwrap_or(Err(Wrong::Later))
}
