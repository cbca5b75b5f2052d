//! A body that is recoded: at once if it is small, otherwise while it is sent.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use server::body::{Body, BodyStream, Chunk, FileSlice};
use server::hooks::Step;
use server::request::{FileCoding, Request};

use super::gzip::{Unpacker, Wrong};

/// Most bytes recoded in one turn.
const TURN_BYTES: usize = 64 * 1024;

/// Total input and output of compression, for the log; available once it is complete.
#[derive(Clone, Default)]
pub(in crate::filters) struct Totals(Rc<Cell<Option<(u64, u64)>>>);

impl Totals {
    /// Bytes of input and output, if the body is complete.
    pub(in crate::filters) fn get(&self) -> Option<(u64, u64)> {
        self.0.get()
    }
}

/// The names of notes with totals, for the log.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    input: Option<Vec<u8>>,
    output: Option<Vec<u8>>,
    ratio: Option<Vec<u8>>,
}

impl Notes {
    /// Whether there are any.
    pub(in crate::filters) fn is_any(&self) -> bool {
        self.input.is_some() || self.output.is_some() || self.ratio.is_some()
    }

    /// Names the note of a kind, which by default is the ratio; returns whether there is such a
    /// kind.
    pub(in crate::filters) fn add(&mut self, kind: Option<&[u8]>, name: &[u8]) -> bool {
        let note = match kind.map(<[u8]>::to_ascii_lowercase).as_deref() {
            Some(b"ratio") | None => &mut self.ratio,
            Some(b"input") => &mut self.input,
            Some(b"output") => &mut self.output,
            Some(_) => return false,
        };
        *note = Some(name.to_vec());
        true
    }

    /// Sets the notes of a response that was compressed.
    pub(in crate::filters) fn set(&self, request: &mut Request) -> Step<'static> {
        let Some((input, output)) = request.kept::<Totals>().and_then(Totals::get) else {
            return Step::DECLINED;
        };
        let shown = |value: u64| match input {
            0 => "-".to_owned(),
            _ => value.to_string(),
        };
        let ratio = output.saturating_mul(100).checked_div(input).unwrap_or(0);
        let notes = [(&self.input, input), (&self.output, output), (&self.ratio, ratio)];
        for (name, value) in notes {
            if let Some(name) = name {
                request.notes.set(name, shown(value).as_bytes());
            }
        }
        Step::OK
    }
}

/// Compresses.
pub(in crate::filters) trait Pack {
    /// Compresses all of `input`.
    fn push(&mut self, input: &[u8], out: &mut Vec<u8>) -> io::Result<()>;

    /// Flushes everything that was compressed so far.
    fn flush(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Ends the data.
    fn finish(&mut self, out: &mut Vec<u8>) -> io::Result<()>;

    /// Bytes of input and output.
    fn totals(&self) -> (u64, u64);
}

/// The coding to apply.
pub(in crate::filters) enum Coding {
    /// Compress.
    Pack(Box<dyn Pack>),
    /// Decompress within a ratio.
    Unpack(Box<Unpacker>, Ratio),
}

/// A limit on the ratio of content to compressed data.
pub(in crate::filters) struct Ratio {
    limit: u64,
    burst: u32,
    hits: u32,
}

impl Ratio {
    /// Returns a limit of `limit`, which may be exceeded `burst` times in a row.
    pub(in crate::filters) fn new(limit: u64, burst: u32) -> Ratio {
        Ratio { limit, burst, hits: 0 }
    }

    /// Whether this ratio is tolerated.
    pub(in crate::filters) fn allows(&mut self, ratio: u64) -> bool {
        if ratio < self.limit {
            self.hits = 0;
            return true;
        }
        self.hits += 1;
        self.hits <= self.burst
    }
}

/// A body that is being recoded.
pub(in crate::filters) struct Recoded {
    source: Body,
    coding: Coding,
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
        Recoded {
            source,
            coding,
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
        let is_small = |length: u64| length <= TURN_BYTES as u64;
        if !matches!(self.source, Body::Stream(_)) && self.source.length().is_some_and(is_small) {
            let mut cx = Context::from_waker(Waker::noop());
            loop {
                if self.output.len() >= buffer_bytes {
                    break;
                }
                match self.poll_step(&mut cx) {
                    Poll::Ready(Ok(())) if self.ended => {
                        let bytes = Bytes::from(std::mem::take(&mut self.output));
                        if let Some((file, _)) = self.record.take() {
                            file.put(bytes.clone(), true);
                        }
                        return Body::Bytes(bytes);
                    }
                    Poll::Ready(Ok(())) => {}
                    _ => break,
                }
            }
        }
        Body::Stream(Box::pin(self))
    }

    /// Recodes one piece.
    fn poll_step(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
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
            Coding::Pack(packer) => {
                let turn = piece.len().min(TURN_BYTES);
                packer.push(piece.get(..turn).unwrap_or_default(), &mut self.output)?;
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
        let made = self.output.len() - before;
        self.since_turn += taken + made;
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
            Coding::Pack(packer) => packer.flush(&mut self.output),
            Coding::Unpack(..) => Ok(()),
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
        match &mut self.coding {
            Coding::Pack(packer) => {
                packer.finish(&mut self.output)?;
                self.totals.0.set(Some(packer.totals()));
            }
            Coding::Unpack(unpacker, _) => {
                while !unpacker.is_done() {
                    let before = self.output.len();
                    unpacker.step(&[], &mut self.output).map_err(io::Error::other)?;
                    if self.output.len() == before && !unpacker.is_done() {
                        return Err(io::Error::other(Wrong::End));
                    }
                }
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
                cx.waker().wake_by_ref();
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
