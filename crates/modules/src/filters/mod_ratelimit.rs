//! mod_ratelimit: limits the rate at which responses are sent.
//!
//! What is held back is neither read nor copied: a limited response costs a timer.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_ratelimit.html>

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bstr::BString;
use rt::Sleep;
use server::body::{Body, BodyStream, Chunk};
use server::engine::Engine;
use server::filter::{FilterDef, OutputFilter, Stage};
use server::hooks::Hooks;
use server::log::Level;
use server::module::Module;
use server::request::Request;

use crate::atoi::atoi;

/// `mod_ratelimit.c`
pub struct Ratelimit;

impl Module for Ratelimit {
    const NAME: &'static str = "ratelimit_module";
    const FILE: &'static str = "mod_ratelimit.c";
    type Server = ();
    type Dir = ();

    fn hooks(hooks: &mut Hooks<'_, Ratelimit>) {
        hooks.output_filter(FilterDef {
            name: "RATE_LIMIT",
            stage: Stage(Stage::PROTOCOL.0 + 3),
            make: |_| Some(Box::new(Filter)),
        });
    }
}

/// How often a piece is sent (`RATE_INTERVAL_MS`).
const INTERVAL: Duration = Duration::from_millis(200);

/// Pieces in a second.
const PIECES: i32 = 5;

/// `RATE_LIMIT`. Source: `rate_limit_filter`.
struct Filter;

impl OutputFilter for Filter {
    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if request.main.is_some() || matches!(body, Body::Empty) {
            return body;
        }
        let Some(bytes_per_second) = kib(request, b"rate-limit", 3488, "rate-limit") else {
            return body;
        };
        let (number, what) = (3489, "rate-initial-burst");
        let burst = kib(request, what.as_bytes(), number, what).unwrap_or(0);
        let piece = (bytes_per_second / PIECES).max(1);
        let room = u64::from(piece.unsigned_abs()) + u64::from(burst.unsigned_abs());
        let length = body.length();
        Body::Stream(Box::pin(Limited {
            engine: request.engine.clone(),
            body,
            length,
            ahead: None,
            piece: u64::from(piece.unsigned_abs()),
            room,
            pause: None,
        }))
    }
}

/// The bytes of a variable that names KiB; none if there is no such variable, or it makes no sense.
fn kib(request: &Request, name: &[u8], number: u32, what: &str) -> Option<i32> {
    let text = request.env.get(name)?;
    let bytes = atoi(text).checked_mul(1024).filter(|bytes| *bytes > 0);
    if bytes.is_none() {
        let shown = BString::from(text);
        let burst = if number == 3489 { " burst" } else { "" };
        let message = format_args!("rl: disabling{burst}: {what} = {shown} (too high?)");
        request.log::<Ratelimit>(Level::Info, number, message);
    }
    bytes
}

/// A body that is sent in pieces.
struct Limited {
    engine: Rc<Engine>,
    body: Body,
    length: Option<u64>,
    /// What was taken from the body and exceeds the piece.
    ahead: Option<Chunk>,
    /// Bytes of a piece.
    piece: u64,
    /// Bytes that may be sent before the next pause.
    room: u64,
    pause: Option<Pin<Box<Sleep>>>,
}

impl BodyStream for Limited {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        if let Some(pause) = &mut this.pause {
            ready!(pause.as_mut().poll(cx));
            (this.pause, this.room) = (None, this.piece);
        }
        let chunk = match this.ahead.take() {
            Some(chunk) => chunk,
            None => match ready!(this.body.poll_chunk(cx)) {
                Some(Ok(chunk)) => chunk,
                other => return Poll::Ready(other),
            },
        };
        if this.room == 0 && !matches!(chunk, Chunk::Flush) {
            // What precedes is sent, and then there is a pause.
            this.pause = Some(Box::pin(this.engine.handle.sleep(INTERVAL)));
            this.ahead = Some(chunk);
            return Poll::Ready(Some(Ok(Chunk::Flush)));
        }
        let (first, rest) = split(chunk, this.room);
        this.ahead = rest;
        this.room = this.room.saturating_sub(length_of(&first));
        Poll::Ready(Some(Ok(first)))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

fn length_of(chunk: &Chunk) -> u64 {
    match chunk {
        Chunk::Bytes(bytes) => bytes.len() as u64,
        Chunk::File(slice) => slice.length,
        Chunk::Flush => 0,
    }
}

/// The beginning of a chunk, up to as many bytes, and what follows it.
fn split(chunk: Chunk, room: u64) -> (Chunk, Option<Chunk>) {
    if length_of(&chunk) <= room {
        return (chunk, None);
    }
    match chunk {
        Chunk::Bytes(mut bytes) => {
            let first = bytes.split_to(usize::try_from(room).unwrap_or(usize::MAX));
            (Chunk::Bytes(first), Some(Chunk::Bytes(bytes)))
        }
        Chunk::File(mut slice) => {
            let mut first = slice.clone();
            first.length = room;
            slice.offset += room;
            slice.length -= room;
            (Chunk::File(first), Some(Chunk::File(slice)))
        }
        Chunk::Flush => (chunk, None),
    }
}
