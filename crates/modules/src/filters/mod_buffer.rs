//! mod_buffer: gathers bodies into larger pieces.
//!
//! Manual: <https://httpd.apache.org/docs/2.4/mod/mod_buffer.html>

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use conf::Arg;
use server::body::{Body, BodyStream, Chunk};
use server::context::{Override, Places};
use server::directive::{Cx, Fault, Row, Set, Takes};
use server::filter::{Beginning, FilterDef, InputFilter, InputFilterDef, OutputFilter, Stage};
use server::hooks::Hooks;
use server::merge::Setting;
use server::module::Module;
use server::request::{BodyEnd, Request};
use server::request_body::{BodyError, BodySource};

use super::rewritten::{Passed, Piece, Pieces};
use crate::atoi::atol;

/// `mod_buffer.c`
pub struct Buffer;

impl Module for Buffer {
    const NAME: &'static str = "buffer_module";
    const FILE: &'static str = "mod_buffer.c";
    type Server = ();
    type Dir = Dir;
    const DIRECTIVES: &'static [Row<Buffer>] =
        &[Row::new("BufferSize", Takes::One(size), "integer", "Sets how many bytes are gathered.")
            .standing(Places::DIRECTORY, Override::NONE)
            .default("131072")];

    fn hooks(hooks: &mut Hooks<'_, Buffer>) {
        hooks.output_filter(FilterDef {
            name: "BUFFER",
            stage: Stage::CONTENT_SET,
            make: |_| Some(Box::new(Output)),
        });
        hooks.input_filter(InputFilterDef { name: "BUFFER", make: input });
    }
}

/// The default of `BufferSize`.
const SIZE: usize = 128 * 1024;

/// The most that is gathered, whatever `BufferSize` is.
const SIZE_LIMIT: usize = 16 * 1024 * 1024;

server::config! {
    /// Per-directory configuration.
    pub struct Dir {
        /// `BufferSize`, bytes.
        pub size: Setting<usize>,
    }
}

/// Source: `set_buffer_size`.
fn size(cx: &mut Cx<'_, '_, Buffer>, arg: &Arg) -> Set {
    // One that saturates is out of range for Apache.
    let bytes = Some(atol(&arg.text)).filter(|bytes| (1..i64::MAX).contains(bytes));
    let Some(bytes) = bytes.and_then(|bytes| usize::try_from(bytes).ok()) else {
        let why = "BufferSize must be a size in bytes, and greater than zero";
        return Err(Fault::new(why).at(arg));
    };
    cx.dir().size.set(bytes);
    Ok(())
}

fn size_of(request: &Request) -> usize {
    request.dir_of::<Buffer>().map_or(SIZE, |dir| dir.size.or(SIZE)).min(SIZE_LIMIT)
}

/// `BUFFER`. Source: `buffer_out_filter`.
struct Output;

impl OutputFilter for Output {
    fn parts_refusal(&self, request: &mut Request, comes: bool) -> bool {
        comes && request.main.is_some()
    }

    /// Gathers what precedes the head's being sent: of all of it the length is known.
    fn begin<'r>(&'r mut self, request: &'r mut Request) -> Option<Beginning<'r>> {
        let is_whole = !matches!(request.response.body, Body::Stream(_) | Body::Parts(_));
        if request.main.is_some() || is_whole {
            return None;
        }
        Some(Box::pin(async move {
            let length = request.response.body.length();
            let pieces = Pieces::of(std::mem::take(&mut request.response.body));
            let size = size_of(request);
            let mut gathered = Gathered { pieces, size, held: BytesMut::new(), end: End::Open };
            let first = std::future::poll_fn(|cx| gathered.poll_gather(cx)).await;
            request.response.body = match (first, &gathered.end) {
                (Ok(()), End::Ended) if gathered.held.is_empty() => Body::Empty,
                (Ok(()), End::Ended) => Body::Bytes(gathered.held.freeze()),
                (Ok(()), _) => Body::Stream(Box::pin(Sized { gathered, length })),
                (Err(error), _) => {
                    gathered.end = End::Failed(error);
                    Body::Stream(Box::pin(Sized { gathered, length }))
                }
            };
            true
        }))
    }

    fn apply(self: Box<Self>, request: &mut Request, body: Body) -> Body {
        if request.main.is_none() {
            let is_stream = matches!(body, Body::Stream(_));
            let size = size_of(request) as u64;
            if let (false, Some(length)) = (is_stream, body.length()) {
                let is_passed_on = is_passed_on(request, length, size);
                let in_pieces = Passed::of(request, length).is_some();
                // A length that a filter has told is known whatever is passed on.
                let is_told = request.response.headers_out.contains(b"Content-Length");
                request.response.chunked |= in_pieces && !is_told;
                request.response.chunked &= is_passed_on;
                match is_passed_on {
                    true if in_pieces => request.refuse_ranges(),
                    true => {}
                    false => {
                        request.response.end = BodyEnd::Gathered;
                        request.allow_ranges();
                    }
                }
            }
        }
        body
    }

    fn is_pure(&self) -> bool {
        true
    }
}

/// Whether a body that is there leaves the buffer of this size before its end: Apache passes on
/// what it has gathered when more comes.
fn is_passed_on(request: &Request, length: u64, size: u64) -> bool {
    match Passed::of(request, length) {
        Some(passed) => passed.is_flushed || length - passed.last > size,
        None => {
            let is_in_pieces = request.response.chunked || !request.allows_ranges();
            is_in_pieces && length - Passed::whole(length).last > size
        }
    }
}

/// A body in larger pieces.
struct Gathered {
    pieces: Pieces,
    /// Bytes that are gathered.
    size: usize,
    held: BytesMut,
    end: End,
}

/// How far a body has been read.
enum End {
    /// There may be more.
    Open,
    /// What is held is to be sent.
    Flush,
    /// There is no more.
    Ended,
    /// It can't be read.
    Failed(io::Error),
}

impl Gathered {
    /// Reads until enough is held, a flush comes, or the end.
    fn poll_gather(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while matches!(self.end, End::Open) && self.held.len() <= self.size {
            match std::task::ready!(self.pieces.poll_piece(cx)) {
                Some(Ok(Piece::Bytes(bytes))) => self.held.extend_from_slice(&bytes),
                Some(Ok(Piece::Flush)) => self.end = End::Flush,
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => self.end = End::Ended,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// A gathered body whose length may be known.
struct Sized {
    gathered: Gathered,
    length: Option<u64>,
}

impl BodyStream for Sized {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let gathered = &mut self.get_mut().gathered;
        if let Err(error) = std::task::ready!(gathered.poll_gather(cx)) {
            gathered.end = End::Failed(error);
        }
        if !gathered.held.is_empty() {
            let held = std::mem::take(&mut gathered.held).freeze();
            return Poll::Ready(Some(Ok(Chunk::Bytes(held))));
        }
        Poll::Ready(match std::mem::replace(&mut gathered.end, End::Open) {
            End::Flush => Some(Ok(Chunk::Flush)),
            End::Failed(error) => {
                gathered.end = End::Ended;
                Some(Err(error))
            }
            End::Ended | End::Open => {
                gathered.end = End::Ended;
                None
            }
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

/// Creates the filter for the body of a request. Source: `buffer_in_filter`.
fn input(request: &mut Request) -> Option<InputFilter> {
    if !request.is_initial() {
        return None;
    }
    let size = size_of(request);
    Some(Box::new(move |source| {
        Box::new(Input { source, size, held: BytesMut::new(), failed: None, ended: false })
    }))
}

/// The body of a request in larger pieces.
struct Input {
    source: Box<dyn BodySource>,
    size: usize,
    held: BytesMut,
    failed: Option<BodyError>,
    ended: bool,
}

impl BodySource for Input {
    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyError>>> {
        while !self.ended && self.held.len() < self.size {
            match std::task::ready!(self.source.poll_data(cx)) {
                Some(Ok(bytes)) => self.held.extend_from_slice(&bytes),
                Some(Err(error)) => (self.failed, self.ended) = (Some(error), true),
                None => self.ended = true,
            }
        }
        if let Some(error) = self.failed.take() {
            self.held.clear();
            return Poll::Ready(Some(Err(error)));
        }
        let held = std::mem::take(&mut self.held).freeze();
        Poll::Ready((!held.is_empty()).then_some(Ok(held)))
    }
}
