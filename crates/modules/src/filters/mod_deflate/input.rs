//! The filter for request bodies: DEFLATE.
//!
//! Source: `deflate_in_filter`.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::filter::InputFilter;
use server::request::Request;
use server::request_body::{BodyError, BodySource};

use super::gzip::Unpacker;
use super::ratio::Ratio;
use super::{coding, unpacking};

/// Creates the filter if the body's coding is gzip.
pub(super) fn make(request: &mut Request) -> Option<InputFilter> {
    let encoding = request.head.headers_in.get(b"Content-Encoding")?;
    if !request.is_initial() || coding::without_gzip(encoding).is_none() {
        return None;
    }
    let limits = unpacking(request);
    let limit = limits.limit.or_else(|| request.plan.core.limit_request_body());
    Some(Box::new(move |source| {
        Box::new(Unpacked {
            source,
            unpacker: Unpacker::new(),
            ratio: Ratio::new(limits.ratio_limit, limits.ratio_burst),
            limit: limit.filter(|limit| *limit > 0),
            input: Bytes::new(),
            made: 0,
            ended: false,
        })
    }))
}

/// A request body that is decompressed while it is read.
struct Unpacked {
    source: Box<dyn BodySource>,
    unpacker: Unpacker,
    ratio: Ratio,
    /// Most bytes of output.
    limit: Option<u64>,
    input: Bytes,
    made: u64,
    ended: bool,
}

impl BodySource for Unpacked {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        while !self.ended {
            match self.step() {
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(None) => {}
                Err(status) => return Poll::Ready(Some(Err(self.fail(status)))),
            }
            if !self.input.is_empty() {
                continue;
            }
            match ready!(self.source.poll_data(cx)) {
                Some(Ok(bytes)) => self.input = bytes,
                Some(Err(error)) => {
                    self.ended = true;
                    return Poll::Ready(Some(Err(error)));
                }
                None if self.unpacker.is_done() => self.ended = true,
                None => return Poll::Ready(Some(Err(self.fail(400)))),
            }
        }
        Poll::Ready(None)
    }
}

impl Unpacked {
    /// Decompresses a piece; `None` if that produced nothing.
    fn step(&mut self) -> Result<Option<Bytes>, u16> {
        let mut out = Vec::new();
        let taken = self.unpacker.step(&self.input, &mut out).map_err(|_| 400u16)?;
        let _ = self.input.split_to(taken.min(self.input.len()));
        if out.is_empty() {
            return Ok(None);
        }
        self.made += out.len() as u64;
        if self.limit.is_some_and(|limit| self.made > limit) {
            return Err(413);
        }
        if !self.ratio.allows(self.unpacker.ratio()) {
            return Err(400);
        }
        Ok(Some(out.into()))
    }

    fn fail(&mut self, status: u16) -> BodyError {
        self.ended = true;
        BodyError::Status(status)
    }
}
