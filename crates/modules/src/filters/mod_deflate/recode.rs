//! A body that is recoded: at once if it is small, otherwise while it is sent.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use server::body::{Body, BodyStream, Chunk, FileSlice};
use server::request::FileCoding;

use super::gzip::{Unpacker, Wrong};
use super::ratio::Ratio;
use super::totals::Totals;
use crate::filters::away::Away;

/// Most bytes recoded in one turn.
const TURN_BYTES: usize = 64 * 1024;

/// A body of this length is compressed on the loop, however slow that is.
pub(in crate::filters) const SHORT_BYTES: u64 = 4 * 1024;

/// Compresses.
pub(in crate::filters) trait Pack: Send {
    /// Compresses all of `input`.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Flushes everything that was compressed so far.
    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Ends the data.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Bytes of input and output.
    fn totals(&self) -> (u64, u64);

    /// Whether it belongs to the blocking pool. Default: no.
    fn is_slow(&self) -> bool {
        false
    }
}

/// What a compressor is to do.
enum Act {
    Push(Bytes),
    Flush,
    Finish,
}

impl Act {
    fn apply(&self, packer: &mut dyn Pack, out: &mut Vec<u8>) -> io::Result<()> {
        match self {
            Act::Push(piece) => packer.push(piece, out),
            Act::Flush => packer.flush(out),
            Act::Finish => packer.finish(out),
        }
    }
}

/// A compressor on the pool.
struct Packed {
    packer: Box<dyn Pack>,
    act: Act,
    out: Vec<u8>,
    done: io::Result<()>,
}

/// The coding to apply.
pub(in crate::filters) enum Coding {
    /// Compress.
    Pack(Box<dyn Pack>),
    /// Decompress within a ratio.
    Unpack(Box<Unpacker>, Ratio),
    /// The compressor is on the pool, or lost.
    Away,
}

/// A body that is being recoded.
pub(in crate::filters) struct Recoded {
    source: Body,
    coding: Coding,
    away: Option<Away<Packed>>,
    /// Whether the body is so long that a slow compressor goes to the pool.
    is_long: bool,
    input: Input,
    output: Vec<u8>,
    /// Whether a flush follows `output`.
    flush: bool,
    ended: bool,
    /// Bytes recoded in this turn.
    since_turn: usize,
    totals: Totals,
    /// The output so far, if it is to be cached for the file.
    record: Option<(FileCoding, Vec<u8>)>,
}

enum Input {
    None,
    Bytes(Bytes),
    File(FileSlice),
}

impl Recoded {
    /// Returns a body of which nothing is recoded yet. `output` holds the coding's header, if any.
    pub(in crate::filters) fn new(
        source: Body,
        coding: Coding,
        output: Vec<u8>,
        totals: Totals,
    ) -> Recoded {
        let is_long = source.length().is_none_or(|length| length > SHORT_BYTES);
        Recoded {
            source,
            coding,
            away: None,
            is_long,
            input: Input::None,
            output,
            flush: false,
            ended: false,
            since_turn: 0,
            totals,
            record: None,
        }
    }

    /// Caches the output for the source file.
    pub(in crate::filters) fn recorded(mut self, file: Option<FileCoding>) -> Recoded {
        self.record = file.map(|file| (file, Vec::new()));
        self
    }

    /// Recodes a small body at once. As in Apache, its length is known if at most `buffer_bytes`
    /// precede its end; otherwise it is recoded while it is sent.
    pub(in crate::filters) fn into_body(mut self, buffer_bytes: usize) -> Body {
        let mut cx = Context::from_waker(Waker::noop());
        match self.poll_whole(buffer_bytes, &mut cx) {
            Poll::Ready(Some(bytes)) => Body::Bytes(bytes),
            _ => Body::Stream(Box::pin(self)),
        }
    }

    /// The same for a compressor that may be slow.
    pub(in crate::filters) async fn into_body_later(mut self, buffer_bytes: usize) -> Body {
        match poll_fn(|cx| self.poll_whole(buffer_bytes, cx)).await {
            Some(bytes) => Body::Bytes(bytes),
            None => Body::Stream(Box::pin(self)),
        }
    }

    /// The same, unless an error precedes so many bytes. What `is_stream` is recoded as it comes.
    pub(in crate::filters) async fn begun(
        mut self,
        is_stream: bool,
        buffer_bytes: usize,
    ) -> io::Result<Body> {
        let ended = !is_stream && poll_fn(|cx| self.poll_begin(buffer_bytes, cx)).await?;
        Ok(match ended {
            true => Body::Bytes(std::mem::take(&mut self.output).into()),
            false => Body::Stream(Box::pin(self)),
        })
    }

    /// Recodes as many bytes; whether that was all.
    fn poll_begin(&mut self, buffer_bytes: usize, cx: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.output.len() < buffer_bytes {
            ready!(self.poll_step(cx))?;
            if self.ended {
                return Poll::Ready(Ok(true));
            }
        }
        Poll::Ready(Ok(false))
    }

    /// The whole output, if it is small.
    fn poll_whole(&mut self, buffer_bytes: usize, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let is_begun = self.away.is_some() || !matches!(self.input, Input::None);
        if !is_begun && self.source.at_hand().is_none_or(|length| length > TURN_BYTES as u64) {
            return Poll::Ready(None);
        }
        while self.output.len() < buffer_bytes {
            match ready!(self.poll_step(cx)) {
                Ok(()) if self.ended => {
                    let bytes = Bytes::from(std::mem::take(&mut self.output));
                    if let Some((file, _)) = self.record.take() {
                        file.put(bytes.clone(), true);
                    }
                    return Poll::Ready(Some(bytes));
                }
                Ok(()) => {}
                Err(_) => break,
            }
        }
        Poll::Ready(None)
    }

    /// Has the compressor do something, here or on the pool.
    fn act(&mut self, act: Act) -> io::Result<()> {
        match std::mem::replace(&mut self.coding, Coding::Away) {
            Coding::Pack(packer) if self.is_long && packer.is_slow() => {
                self.since_turn = 0;
                let (out, done) = (std::mem::take(&mut self.output), Ok(()));
                let packed = Packed { packer, act, out, done };
                self.away = Some(Away::send(packed, true, |all: &mut Packed| {
                    all.done = all.act.apply(&mut *all.packer, &mut all.out);
                }));
                Ok(())
            }
            Coding::Pack(mut packer) => {
                let done = act.apply(&mut *packer, &mut self.output);
                self.note(&act, &*packer);
                self.coding = Coding::Pack(packer);
                done
            }
            _ => Err(io::Error::other("the compressor is lost")),
        }
    }

    /// Notes what the compressor has done.
    fn note(&mut self, act: &Act, packer: &dyn Pack) {
        if matches!(act, Act::Finish) {
            self.totals.set(packer.totals());
            self.ended = true;
        }
    }

    /// Waits for the compressor.
    fn poll_away(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(away) = &mut self.away else { return Poll::Ready(Ok(())) };
        let packed = ready!(away.poll(cx));
        self.away = None;
        let packed = packed?;
        self.output = packed.out;
        self.note(&packed.act, &*packed.packer);
        self.coding = Coding::Pack(packed.packer);
        Poll::Ready(packed.done)
    }

    /// Recodes one piece.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.away.is_some() {
            return self.poll_away(cx);
        }
        let piece = match std::mem::replace(&mut self.input, Input::None) {
            Input::Bytes(bytes) if !bytes.is_empty() => bytes,
            Input::File(slice) if slice.length > 0 => match self.read(slice) {
                Ok(bytes) => bytes,
                Err(error) => return Poll::Ready(Err(error)),
            },
            _ => match ready!(self.source.poll_chunk(cx)) {
                Some(Ok(Chunk::Bytes(bytes))) => bytes,
                Some(Ok(Chunk::File(slice))) => {
                    self.input = Input::File(slice);
                    return Poll::Ready(Ok(()));
                }
                Some(Ok(Chunk::Flush)) => return Poll::Ready(self.flush()),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(self.finish()),
            },
        };
        Poll::Ready(self.push(piece))
    }

    /// Reads the next piece of a file; the rest is left for later.
    fn read(&mut self, mut slice: FileSlice) -> io::Result<Bytes> {
        use std::os::unix::fs::FileExt;
        let count = usize::try_from(slice.length).unwrap_or(TURN_BYTES).min(TURN_BYTES);
        let mut bytes = vec![0; count];
        slice.file.read_exact_at(&mut bytes, slice.offset)?;
        slice.offset += count as u64;
        slice.length -= count as u64;
        self.input = Input::File(slice);
        Ok(bytes.into())
    }

    fn push(&mut self, mut piece: Bytes) -> io::Result<()> {
        let before = self.output.len();
        let taken = match &mut self.coding {
            Coding::Pack(_) | Coding::Away => {
                let turn = piece.len().min(TURN_BYTES);
                self.act(Act::Push(piece.slice(..turn)))?;
                turn
            }
            Coding::Unpack(unpacker, ratio) => {
                let taken = unpacker.step(&piece, &mut self.output).map_err(io::Error::other)?;
                if !ratio.allows(unpacker.ratio()) {
                    return Err(io::Error::other("decompressed data exceeds the limit"));
                }
                taken
            }
        };
        if self.away.is_none() {
            self.since_turn += taken + self.output.len().saturating_sub(before);
        }
        let rest = piece.split_off(taken.min(piece.len()));
        if !rest.is_empty() {
            debug_assert!(matches!(self.input, Input::None | Input::File(_)));
            // The rest of the piece comes before the rest of the file.
            self.source_back(rest);
        }
        Ok(())
    }

    /// Puts bytes in front of the remaining source.
    fn source_back(&mut self, bytes: Bytes) {
        let file = match std::mem::replace(&mut self.input, Input::Bytes(bytes)) {
            Input::File(slice) if slice.length > 0 => Body::File(slice),
            _ => return,
        };
        let rest = std::mem::take(&mut self.source);
        self.source = Body::Parts([file, rest].into());
    }

    fn flush(&mut self) -> io::Result<()> {
        self.flush = true;
        match &mut self.coding {
            Coding::Unpack(..) => Ok(()),
            _ => self.act(Act::Flush),
        }
    }

    /// Adds to the recorded output; at its end the file's content is complete.
    fn record(&mut self, output: &[u8]) {
        let Some((file, all)) = &mut self.record else { return };
        if !file.has_room(all.len() + output.len()) {
            self.record = None;
            return;
        }
        all.extend_from_slice(output);
        if self.ended
            && let Some((file, all)) = self.record.take()
        {
            file.put(all.into(), false);
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let Coding::Unpack(unpacker, _) = &mut self.coding else { return self.act(Act::Finish) };
        while !unpacker.is_done() {
            let before = self.output.len();
            unpacker.step(&[], &mut self.output).map_err(io::Error::other)?;
            if self.output.len() == before && !unpacker.is_done() {
                return Err(io::Error::other(Wrong::End));
            }
        }
        self.ended = true;
        Ok(())
    }
}

impl BodyStream for Recoded {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let this = self.get_mut();
        loop {
            let enough = this.ended || this.flush || this.output.len() >= TURN_BYTES / 8;
            if enough && !this.output.is_empty() {
                let output = std::mem::take(&mut this.output);
                this.record(&output);
                return Poll::Ready(Some(Ok(Chunk::Bytes(output.into()))));
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
            if let Err(error) = ready!(this.poll_step(cx)) {
                this.ended = true;
                this.record = None;
                this.output.clear();
                return Poll::Ready(Some(Err(error)));
            }
        }
    }
}
