//! The body of a request on its way to a backend: how it is framed there, what of it is read
//! before connecting, and the rest as the client sends it.
//!
//! Source: `ap_proxy_http_prefetch`, `ap_proxy_prefetch_input`, `ap_proxy_spool_input`.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rt::{Stream, Work};
use server::request::Request;
use wire::Method;
use wire::chunked::{LAST_CHUNK, SizeLine};

use super::spool::unnamed_file;

/// Bytes that are read before connecting, and that are kept in memory (`MAX_MEM_SPOOL`).
pub const MEMORY_BYTES: usize = 16 * 1024;
/// Bytes that are gathered before they are written to a file.
const WRITE_BYTES: usize = 64 * 1024;

/// How the backend learns where the body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The client announced no body, and there is none.
    None,
    /// By its length in bytes.
    Length(u64),
    /// By chunks.
    Chunked,
}

/// What the scheme and the variables of the request ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wishes {
    /// The backend must know the length (`proxy-sendcl`, HTTP/1.0, FastCGI).
    pub length: bool,
    /// Chunks are preferred (`proxy-sendchunked`).
    pub chunks: bool,
}

impl Wishes {
    /// The wishes of the request's variables.
    pub fn of_variables(request: &Request) -> Wishes {
        let env = &request.env;
        if env.is_empty() {
            return Wishes::default();
        }
        let chunks = env.contains(b"proxy-sendchunks") || env.contains(b"proxy-sendchunked");
        let length = env.contains(b"proxy-sendcl");
        // Both together are as neither.
        Wishes { length: length && !chunks, chunks: chunks && !length }
    }
}

/// A request's body.
pub struct Outgoing {
    framing: Framing,
    /// What was read before connecting.
    first: Vec<Bytes>,
    /// Whether that is all of it.
    is_whole: bool,
    /// The rest, if it had to be read to know the length.
    spooled: Option<(Arc<File>, u64)>,
}

impl Outgoing {
    /// Reads what is read before connecting: up to [`MEMORY_BYTES`], or all of the body if its
    /// length has to be known.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn prefetch(request: &mut Request, wishes: Wishes) -> Result<Outgoing, u16> {
        if let Some(body) = Outgoing::take_kept(request) {
            return Ok(body);
        }
        let fields = &request.head.headers_in;
        let is_chunked = fields.contains(b"Transfer-Encoding");
        let is_announced = is_chunked || fields.contains(b"Content-Length");
        let body = Outgoing {
            framing: if is_announced { Framing::Length(0) } else { Framing::None },
            first: Vec::new(),
            is_whole: true,
            spooled: None,
        };
        if request.body_in.is_empty() {
            return Ok(body);
        }
        // A large future, which few requests need.
        Box::pin(body.read(request, wishes, is_chunked)).await
    }

    /// Reads it from the client.
    async fn read(
        mut self,
        request: &mut Request,
        wishes: Wishes,
        is_chunked: bool,
    ) -> Result<Outgoing, u16> {
        let length = request.body_in.length();
        let mut read = 0;
        self.is_whole = false;
        while read < MEMORY_BYTES {
            let Some(piece) = next(request).await? else {
                self.is_whole = true;
                break;
            };
            read += piece.len();
            self.first.push(piece);
            // The end of a body of known length needs no further read.
            if length == Some(read as u64) {
                self.is_whole = true;
                break;
            }
        }
        self.framing = match (self.is_whole, length, wishes) {
            (true, ..) => Framing::Length(read as u64),
            (false, Some(length), _) => Framing::Length(length),
            (false, None, wishes) if wishes.length || !(is_chunked || wishes.chunks) => {
                let (file, more) = spool(request).await?;
                self.spooled = Some((Arc::new(file), more));
                Framing::Length(read as u64 + more)
            }
            (false, None, _) => Framing::Chunked,
        };
        Ok(self)
    }

    /// A body that is sent once the backend has said `100 Continue`: nothing is read before. `None`
    /// if it has to be read to know its length, or there is none.
    pub fn postponed(request: &Request, wishes: Wishes) -> Option<Outgoing> {
        if request.body_in.is_empty() {
            return None;
        }
        let framing = match request.body_in.length() {
            Some(length) => Framing::Length(length),
            None if wishes.length => return None,
            None => Framing::Chunked,
        };
        Some(Outgoing { framing, first: Vec::new(), is_whole: false, spooled: None })
    }

    /// A body of which nothing is read yet, unless an attempt before has.
    pub fn unread(request: &mut Request) -> Outgoing {
        if let Some(body) = Outgoing::take_kept(request) {
            return body;
        }
        let framing = match request.body_in.length() {
            _ if request.body_in.is_empty() => Framing::None,
            Some(length) => Framing::Length(length),
            None => Framing::Chunked,
        };
        let is_whole = request.body_in.is_empty();
        Outgoing { framing, first: Vec::new(), is_whole, spooled: None }
    }

    fn take_kept(request: &mut Request) -> Option<Outgoing> {
        request.kept_mut::<Unsent>().and_then(|unsent| unsent.0.take())
    }

    /// Keeps it for another member of the balancer: nothing of it has been sent.
    pub fn keep(self, request: &mut Request) {
        request.keep(Unsent(Some(self)));
    }

    /// Whether the body of a request can go to another member.
    pub fn is_kept(request: &Request) -> bool {
        request.body_in.is_empty() || request.kept::<Unsent>().is_some_and(|kept| kept.0.is_some())
    }

    /// How the body is framed.
    pub fn framing(&self) -> Framing {
        self.framing
    }

    /// What follows it and belongs to nothing (`proxy-sendextracrlf`). Apache adds that to a
    /// spooled body, too, before it adds it to the request.
    fn trailing_crlf(&self, request: &Request) -> &'static [u8] {
        match request.env.contains(b"proxy-sendextracrlf") {
            true if self.spooled.is_some() => b"\r\n\r\n",
            true => b"\r\n",
            false => b"",
        }
    }

    /// Whether it can be sent a second time.
    pub fn is_repeatable(&self) -> bool {
        self.is_whole || self.spooled.is_some()
    }

    /// Whether a second attempt can't do what the first may have done (RFC 9110 section 9.2.2).
    pub fn may_repeat(&self, request: &Request) -> bool {
        const IDEMPOTENT: [Method; 6] = [
            Method::GET,
            Method::OPTIONS,
            Method::TRACE,
            Method::PUT,
            Method::DELETE,
            Method::PROPFIND,
        ];
        self.is_repeatable() && IDEMPOTENT.contains(&request.head.method)
    }

    /// The pieces that were read before connecting.
    pub fn first(&self) -> &[Bytes] {
        &self.first
    }

    /// The next piece after [`Outgoing::first`]; `None` at the end. For schemes with a framing of
    /// their own.
    ///
    /// # Errors
    /// The status of the response.
    pub async fn next(&mut self, request: &mut Request) -> Result<Option<Bytes>, u16> {
        if self.is_whole {
            return Ok(None);
        }
        next(request).await
    }

    /// What was spooled behind [`Outgoing::first`], with its length in bytes.
    pub fn spooled(&self) -> Option<(&Arc<File>, u64)> {
        self.spooled.as_ref().map(|(file, length)| (file, *length))
    }

    /// Appends what of the body goes out with the head, framed as HTTP/1.
    pub fn write_first(&self, request: &Request, out: &mut Vec<u8>) {
        let length: usize = self.first.iter().map(Bytes::len).sum();
        let is_chunked = self.framing == Framing::Chunked && length > 0;
        if is_chunked {
            out.extend_from_slice(SizeLine::new(length).as_bytes());
        }
        for piece in &self.first {
            out.extend_from_slice(piece);
        }
        if is_chunked {
            out.extend_from_slice(b"\r\n");
        }
        let is_all = self.is_whole && self.spooled.is_none();
        if is_all && !request.env.is_empty() {
            out.extend_from_slice(self.trailing_crlf(request));
        }
    }

    /// Sends the rest, framed as HTTP/1, and returns its length in bytes; each wait for the backend
    /// is at most `timeout`.
    ///
    /// # Errors
    /// Whose fault it is.
    pub async fn send_rest(
        &mut self,
        request: &mut Request,
        stream: &mut Stream,
        timeout: Duration,
    ) -> Result<u64, SendError> {
        if self.is_whole && self.spooled.is_none() {
            return Ok(0);
        }
        Box::pin(self.stream_rest(request, stream, timeout)).await
    }

    async fn stream_rest(
        &mut self,
        request: &mut Request,
        stream: &mut Stream,
        timeout: Duration,
    ) -> Result<u64, SendError> {
        let mut bytes = 0;
        if let Some((file, length)) = &self.spooled {
            let sent = stream.send_file(&[], file, 0, *length, timeout).await;
            sent.map_err(SendError::Backend)?;
            bytes = *length;
        }
        while self.spooled.is_none()
            && let Some(piece) = next(request).await.map_err(SendError::Client)?
        {
            let sent = match self.framing {
                Framing::Chunked if !piece.is_empty() => {
                    let size = SizeLine::new(piece.len());
                    bytes += (size.as_bytes().len() + b"\r\n".len()) as u64;
                    let mut parts = [size.as_bytes(), &piece, b"\r\n"].map(IoSlice::new);
                    stream.write_vectored(&mut parts, timeout).await
                }
                _ => stream.write_all(&piece, timeout).await,
            };
            sent.map_err(SendError::Backend)?;
            bytes += piece.len() as u64;
        }
        if self.framing == Framing::Chunked {
            stream.write_all(LAST_CHUNK, timeout).await.map_err(SendError::Backend)?;
            bytes += LAST_CHUNK.len() as u64;
        }
        let more = self.trailing_crlf(request);
        if !more.is_empty() {
            stream.write_all(more, timeout).await.map_err(SendError::Backend)?;
        }
        Ok(bytes)
    }
}

/// The body of a request whose first attempt found no connection.
struct Unsent(Option<Outgoing>);

/// Why a body was not sent.
#[derive(Debug)]
pub enum SendError {
    /// It could not be read: the status of the response.
    Client(u16),
    /// The backend does not take it.
    Backend(io::Error),
}

async fn next(request: &mut Request) -> Result<Option<Bytes>, u16> {
    match request.body_in.next().await {
        None => Ok(None),
        Some(Ok(piece)) => Ok(Some(piece)),
        Some(Err(error)) => Err(error.status(request)),
    }
}

/// Reads the rest of the body into an unnamed file; returns it with its length in bytes.
///
/// # Errors
/// The status of the response.
pub async fn spool(request: &mut Request) -> Result<(File, u64), u16> {
    let mut file = unnamed_file().map_err(|_| 500u16)?;
    let pool = request.engine.handle.blocking().clone();
    let (mut gathered, mut length) = (Vec::with_capacity(WRITE_BYTES), 0);
    loop {
        let piece = next(request).await?;
        length += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        gathered.extend_from_slice(piece.as_deref().unwrap_or_default());
        if gathered.len() < WRITE_BYTES && piece.is_some() {
            continue;
        }
        let written = pool.run(Work::File, move || {
            let written = file.write_all(&gathered);
            gathered.clear();
            written.map(|()| (file, gathered))
        });
        (file, gathered) = written.await.map_err(|_| 503u16)?.map_err(|_| 500u16)?;
        if piece.is_none() {
            return Ok((file, length));
        }
    }
}
