//! A body that a filter rewrites piece by piece: at once if all of it is there and the result is
//! short, otherwise while it is sent.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::body::{Body, BodyStream, Chunk, FileSlice};
use server::request::Request;

use super::away::Away;

/// Most bytes rewritten in one turn.
const TURN_BYTES: usize = 64 * 1024;

/// Most bytes rewritten in one step.
const STEP_BYTES: usize = 16 * 1024;

/// Apache's filters pass on what they have written once it fills such a buffer; the length of a
/// longer response is not known when its head is sent (`APR_BUCKET_BUFF_SIZE`).
const BUFFER_BYTES: usize = 8000;

/// What rewrites a body. Its output must not depend on how the body is cut.
pub(super) trait Rewrite: Send + Unpin + 'static {
    /// Appends what becomes of a piece.
    fn push(&mut self, piece: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Appends what is left: the body is complete.
    fn end(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Whether more comes out without input, once others have had their turn: an empty piece is
    /// pushed then. Default: never.
    fn is_behind(&self) -> bool {
        false
    }

    /// Whether a step may take long, and belongs to the blocking pool. Default: never.
    fn is_slow(&self) -> bool {
        false
    }
}

/// How Apache's filter passes on what it makes of a body: other filters show that by lengths.
pub(crate) struct Passed {
    /// Bytes of all.
    pub length: u64,
    /// Bytes that come with the end, if what precedes them comes earlier.
    pub with_end: u64,
    /// Bytes of the last bucket.
    pub last: u64,
    /// Whether a flush comes before the end.
    pub is_flushed: bool,
    /// Whether base64 holds a bucket back as a whole.
    pub is_held: bool,
}

/// Whether nothing can be encoded in base64 when so many bytes come behind those before: mod_data
/// passes on nothing, which ends what others hold as a flush does.
pub(super) fn is_held(before: u64, bytes: u64) -> bool {
    before > 0 && before % 3 + bytes < 3
}

impl Passed {
    /// A body that comes as a whole, in Apache's buffers.
    pub fn whole(length: u64) -> Passed {
        let last = length.saturating_sub(1) % BUFFER_BYTES as u64 + 1;
        let last = last.min(length);
        let is_held = is_held(length - last, last);
        Passed { length, with_end: 0, last, is_flushed: false, is_held }
    }

    /// What a filter has kept of the present body.
    pub fn of(request: &Request, length: u64) -> Option<&Passed> {
        request.kept().filter(|passed: &&Passed| passed.length == length)
    }
}

/// A step.
enum Step {
    Piece(Bytes),
    End,
}

impl Step {
    fn take(&self, rewrite: &mut impl Rewrite, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Step::Piece(piece) => rewrite.push(piece, out),
            Step::End => rewrite.end(out),
        }
    }
}

/// The body that `rewrite` makes of `head` and `rest`; it begins with `out`. A rewrite that can
/// fall behind has an empty head.
pub(super) fn body_of<R: Rewrite>(
    mut rewrite: R,
    head: Bytes,
    rest: Body,
    mut out: Vec<u8>,
) -> Body {
    if matches!(rest, Body::Empty) && head.len() <= TURN_BYTES {
        let done = rewrite.push(&head, &mut out).and_then(|()| rewrite.end(&mut out));
        let failed = done.err();
        if failed.is_none() && out.len() < BUFFER_BYTES {
            return Body::from(out);
        }
        return Body::Stream(Box::pin(Whole { out, failed }));
    }
    streamed(rewrite, Pieces::of(Body::Parts([Body::Bytes(head), rest].into())), out)
}

/// The body that `rewrite` makes of `source` while it is sent; it begins with `out`.
pub(super) fn streamed<R: Rewrite>(rewrite: R, source: Pieces, out: Vec<u8>) -> Body {
    let (is_complete, flush, ended) = (false, false, false);
    Body::Stream(Box::pin(Rewritten {
        rewrite: Some(rewrite),
        away: None,
        source,
        out,
        flush,
        is_complete,
        ended,
        since_turn: 0,
    }))
}

/// A rewritten body whose length is not told.
struct Whole {
    out: Vec<u8>,
    failed: Option<io::Error>,
}

impl BodyStream for Whole {
    fn poll_chunk(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        if !this.out.is_empty() {
            return Poll::Ready(Some(Ok(Chunk::Bytes(std::mem::take(&mut this.out).into()))));
        }
        Poll::Ready(this.failed.take().map(Err))
    }

    fn in_memory(&self) -> Option<u64> {
        self.failed.is_none().then_some(self.out.len() as u64)
    }
}

/// A body that is being rewritten.
struct Rewritten<R> {
    /// `None` while it is away, or if it is lost.
    rewrite: Option<R>,
    away: Option<Away<Stepped<R>>>,
    source: Pieces,
    out: Vec<u8>,
    /// Whether a flush follows `out`.
    flush: bool,
    /// Whether the source has ended.
    is_complete: bool,
    ended: bool,
    /// Bytes rewritten in this turn.
    since_turn: usize,
}

/// What a step on the pool has and makes.
struct Stepped<R> {
    rewrite: R,
    step: Step,
    out: Vec<u8>,
    done: io::Result<()>,
}

impl<R: Rewrite> Rewritten<R> {
    /// Makes a step here, or has it made on the pool.
    fn step(&mut self, step: Step) -> io::Result<()> {
        let Some(mut rewrite) = self.rewrite.take() else { return Err(lost()) };
        if rewrite.is_slow() {
            self.since_turn = 0;
            let (out, done) = (std::mem::take(&mut self.out), Ok(()));
            let stepped = Stepped { rewrite, step, out, done };
            self.away = Some(Away::send(stepped, false, |all: &mut Stepped<R>| {
                all.done = all.step.take(&mut all.rewrite, &mut all.out);
            }));
            return Ok(());
        }
        let done = step.take(&mut rewrite, &mut self.out);
        self.rewrite = Some(rewrite);
        self.ended = self.is_complete && !self.is_behind();
        done
    }

    fn is_behind(&self) -> bool {
        self.rewrite.as_ref().is_some_and(Rewrite::is_behind)
    }

    /// Waits for a step on the pool.
    fn poll_away(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(away) = &mut self.away else { return Poll::Ready(Ok(())) };
        let stepped = ready!(away.poll(cx));
        self.away = None;
        let stepped = stepped?;
        (self.rewrite, self.out) = (Some(stepped.rewrite), stepped.out);
        self.since_turn = 0;
        self.ended = self.is_complete && !self.is_behind();
        Poll::Ready(stepped.done)
    }

    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.away.is_some() {
            return self.poll_away(cx);
        }
        if self.is_behind() || self.is_complete {
            self.since_turn = TURN_BYTES;
            return Poll::Ready(self.step(Step::Piece(Bytes::new())));
        }
        match ready!(self.source.poll_piece(cx)).transpose()? {
            Some(Piece::Bytes(piece)) => {
                self.since_turn += piece.len();
                return Poll::Ready(self.step(Step::Piece(piece)));
            }
            Some(Piece::Flush) => self.flush = true,
            None => {
                self.is_complete = true;
                return Poll::Ready(self.step(Step::End));
            }
        }
        Poll::Ready(Ok(()))
    }
}

fn lost() -> io::Error {
    io::Error::other("the state of a filter is lost")
}

/// A body in pieces of at most [`STEP_BYTES`], with files read.
pub(super) struct Pieces {
    source: Body,
    input: Input,
}

/// A piece of a body.
pub(super) enum Piece {
    /// Bytes, of which there are some.
    Bytes(Bytes),
    /// What precedes should be sent.
    Flush,
}

enum Input {
    None,
    Bytes(Bytes),
    File(FileSlice),
}

impl Pieces {
    /// The pieces of a body.
    pub fn of(source: Body) -> Pieces {
        Pieces { source, input: Input::None }
    }

    /// The next piece; `None` at the end.
    pub fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Piece>>> {
        loop {
            match std::mem::replace(&mut self.input, Input::None) {
                Input::Bytes(mut bytes) if !bytes.is_empty() => {
                    let piece = bytes.split_to(bytes.len().min(STEP_BYTES));
                    self.input = Input::Bytes(bytes);
                    return Poll::Ready(Some(Ok(Piece::Bytes(piece))));
                }
                Input::File(slice) if slice.length > 0 => {
                    return Poll::Ready(Some(self.read(slice).map(Piece::Bytes)));
                }
                _ => {}
            }
            match ready!(self.source.poll_chunk(cx)).transpose() {
                Ok(Some(Chunk::Bytes(bytes))) => self.input = Input::Bytes(bytes),
                Ok(Some(Chunk::File(slice))) => self.input = Input::File(slice),
                Ok(Some(Chunk::Flush)) => return Poll::Ready(Some(Ok(Piece::Flush))),
                Ok(None) => return Poll::Ready(None),
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
    }

    /// Reads the next piece of a file; the rest is left for later.
    fn read(&mut self, mut slice: FileSlice) -> io::Result<Bytes> {
        use std::os::unix::fs::FileExt;
        let count = usize::try_from(slice.length).unwrap_or(STEP_BYTES).min(STEP_BYTES);
        let mut bytes = vec![0; count];
        slice.file.read_exact_at(&mut bytes, slice.offset)?;
        slice.offset += count as u64;
        slice.length -= count as u64;
        self.input = Input::File(slice);
        Ok(bytes.into())
    }
}

impl<R: Rewrite> BodyStream for Rewritten<R> {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        loop {
            let enough = this.ended || this.flush || this.out.len() >= BUFFER_BYTES;
            if enough && !this.out.is_empty() {
                let out = std::mem::take(&mut this.out);
                return Poll::Ready(Some(Ok(Chunk::Bytes(out.into()))));
            }
            if std::mem::take(&mut this.flush) {
                return Poll::Ready(Some(Ok(Chunk::Flush)));
            }
            if this.ended {
                return Poll::Ready(None);
            }
            if this.since_turn >= TURN_BYTES {
                this.since_turn = 0;
                rt::end_turn(cx.waker());
                return Poll::Pending;
            }
            match this.poll_step(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => {
                    this.ended = true;
                    this.out.clear();
                    return Poll::Ready(Some(Err(error)));
                }
                // What is rewritten does not wait for a slow source.
                Poll::Pending if !this.out.is_empty() => {
                    let out = std::mem::take(&mut this.out);
                    return Poll::Ready(Some(Ok(Chunk::Bytes(out.into()))));
                }
                Poll::Pending => return Poll::Pending,
            }
        }
    }
}
