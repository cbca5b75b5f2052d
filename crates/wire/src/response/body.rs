//! The body of a response (RFC 9112 section 6.3).

use super::fault::Fault;
use crate::chunked::{Decoder, Step};
use crate::request::HeadLimits;
use crate::table::Table;

/// How the end of a body is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body: HEAD, 1xx, 204, 304.
    None,
    /// Bytes.
    Length(u64),
    /// Chunks and trailers.
    Chunked,
    /// It ends with the connection.
    UntilClose,
}

/// Reads bodies, one after the other: [`ResponseBody::start`] begins each.
#[derive(Clone, Debug)]
pub struct ResponseBody {
    framing: Framing,
    /// Bytes to come of [`Framing::Length`].
    remaining: u64,
    chunks: Decoder,
}

impl ResponseBody {
    /// A reader. The limits are those of the server for fields (`LimitRequestFieldSize`,
    /// `LimitRequestFields`): Apache applies them to the chunks' size lines and trailers of
    /// backends, too. So it does `strict`, that of `HttpProtocolOptions`.
    pub fn new(limits: HeadLimits, strict: bool) -> Self {
        let chunks = Decoder::new(limits, strict);
        ResponseBody { framing: Framing::None, remaining: 0, chunks }
    }

    /// Begins a body, and keeps the memory of the one before.
    pub fn start(&mut self, framing: Framing) {
        self.framing = framing;
        self.remaining = if let Framing::Length(length) = framing { length } else { 0 };
        self.chunks.reset();
    }

    /// Performs the next step. `buf` begins with what was not consumed yet.
    pub fn read(&mut self, buf: &[u8]) -> Result<Step, Fault> {
        match self.framing {
            Framing::None => Ok(Step::Done { consumed: 0 }),
            Framing::Chunked => Ok(self.chunks.decode(buf)?),
            Framing::Length(_) if self.remaining == 0 => Ok(Step::Done { consumed: 0 }),
            _ if buf.is_empty() => Ok(Step::NeedMore { consumed: 0 }),
            Framing::UntilClose => Ok(Step::Data { consumed: buf.len(), len: buf.len() }),
            Framing::Length(_) => {
                let len = usize::try_from(self.remaining).unwrap_or(usize::MAX).min(buf.len());
                self.remaining -= len as u64;
                Ok(Step::Data { consumed: len, len })
            }
        }
    }

    /// The connection has ended: whether the body has, too.
    pub fn end_of_input(&self) -> Result<(), Fault> {
        let is_whole = match self.framing {
            Framing::None | Framing::UntilClose => true,
            Framing::Length(_) => self.remaining == 0,
            Framing::Chunked => self.chunks.is_done(),
        };
        if is_whole { Ok(()) } else { Err(Fault::Incomplete) }
    }

    /// The trailer fields, complete when the body is done.
    pub fn trailers(&self) -> &Table {
        self.chunks.trailers()
    }
}
