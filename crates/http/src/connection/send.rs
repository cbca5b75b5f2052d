//! Sends a response.

use std::io;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rt::Stream;

use super::finish::Sent;
use super::request_body::{self, Shared};
use super::{Active, Connection, dump};
use crate::respond::{Framing, Length};
use crate::service::OUTPUT_BYTES;
use server::body::{Body, Chunk, FileSlice};
use server::request::Request;

/// Most bytes of a file that is read and sent with the head in one call.
const ONE_SEND_BYTES: u64 = 16 * 1024;

/// Where a response goes.
struct Outlet<'c> {
    /// The connection's; present.
    stream: &'c mut Option<Stream>,
    /// The rest of the request's body, if the response's reads it.
    upload: Option<&'c Shared>,
}

impl Outlet<'_> {
    fn stream(&mut self) -> io::Result<&mut Stream> {
        self.stream.as_mut().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    fn poll_chunk(
        &mut self,
        cx: &mut Context<'_>,
        body: &mut Body,
    ) -> Poll<Option<io::Result<Chunk>>> {
        match self.upload {
            Some(upload) => request_body::lend(self.stream, upload, || body.poll_chunk(cx)),
            None => body.poll_chunk(cx),
        }
    }
}

/// Sends head and body; `upload` is the rest of the request's body, if the response's reads it.
pub(super) async fn response(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    framing: Framing,
    upload: Option<&Shared>,
) -> Sent {
    let says_keep = framing.says_keep;
    if let Some(upload) = upload {
        connection.stream = request_body::take_stream(upload);
    }
    let Some(stream) = connection.stream.as_mut() else {
        return Sent { began: 0, says_keep, outcome: Ok(()) };
    };
    let timeout = request.host.core.timeout();
    let began = active.began.take().unwrap_or(stream.sent());
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    let output = &mut active.output;
    output.clear();
    let mut body = std::mem::take(&mut request.response.body);
    let is_dumped = connection.info.base_host.dump.output;
    if let Some(short) = short(&body, request, framing).filter(|_| !is_dumped) {
        let begun = {
            let mut shared = connection.engine.output.borrow_mut();
            at_once(stream, &mut shared, output, request, framing, short)
        };
        let outcome = match begun {
            Ok(()) => stream.write_all(output, timeout).await,
            failed => failed,
        };
        request.response.bytes_sent = short.len() as u64;
        return Sent { began, says_keep, outcome };
    }
    if !request.head.simple && !request.response.is_raw {
        crate::respond::write_head(request, framing, output);
    }
    if is_dumped {
        let has_body = !request.head.header_only && framing.length != Length::None;
        let dumper = dump::Dumper::new(&connection.engine, &connection.info);
        body = dump::response(dumper, output, body, has_body);
    }
    let mut given = 0;
    let interims = super::interim::finish(stream, &connection.info, timeout).await;
    let outcome = if interims.is_err() {
        interims
    } else if request.head.header_only || framing.length == Length::None {
        stream.write_all(output, timeout).await
    } else {
        let outlet = Outlet { stream: &mut connection.stream, upload };
        match framing.length {
            Length::Chunked => chunked(outlet, output, body, timeout, &mut given).await,
            _ => plain(outlet, output, body, timeout, &mut given).await,
        }
    };
    request.response.bytes_sent = given;
    Sent { began, says_keep, outcome }
}

/// The bytes of a body that is in memory and short, or of which none are sent.
fn short<'b>(body: &'b Body, request: &Request, framing: Framing) -> Option<&'b [u8]> {
    match body {
        _ if request.head.header_only || framing.length == Length::None => Some(&[]),
        _ if framing.length == Length::Chunked => None,
        Body::Empty => Some(&[]),
        Body::Bytes(bytes) => Some(&bytes[..]).filter(|all| all.len() as u64 <= ONE_SEND_BYTES),
        _ => None,
    }
}

/// Sends a short response as far as the socket takes it; the rest is left in `output`. It is
/// assembled in `shared`, the loop's own buffer, which stays in the processor's cache.
fn at_once(
    stream: &mut Stream,
    shared: &mut Vec<u8>,
    output: &mut Vec<u8>,
    request: &Request,
    framing: Framing,
    body: &[u8],
) -> io::Result<()> {
    shared.clear();
    let interims = request.connection.interim.take();
    shared.extend_from_slice(&interims);
    if !request.head.simple && !request.response.is_raw {
        crate::respond::write_head(request, framing, shared);
    }
    shared.extend_from_slice(body);
    let count = match stream.try_write(shared) {
        Ok(count) => count,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        Err(error) => return Err(error),
    };
    output.extend_from_slice(shared.get(count..).unwrap_or_default());
    shared.shrink_to(OUTPUT_BYTES);
    Ok(())
}

/// Sends a body unchanged: its length is known, or it ends with the connection. `given` counts its
/// bytes, as in Apache: once they are to be sent, whatever the client takes of them. Those of a
/// stream, which may break off, are there once they have come.
async fn plain(
    mut outlet: Outlet<'_>,
    output: &mut Vec<u8>,
    body: Body,
    timeout: Duration,
    given: &mut u64,
) -> io::Result<()> {
    let known = body.length().filter(|_| !matches!(body, Body::Stream(_)));
    *given = known.unwrap_or(0);
    match body {
        Body::Empty => outlet.stream()?.write_all(output, timeout).await,
        Body::Bytes(bytes) => whole(outlet.stream()?, output, &bytes, timeout).await,
        Body::File(slice) if slice.length <= ONE_SEND_BYTES => {
            let bytes = read(&slice)?;
            whole(outlet.stream()?, output, &bytes, timeout).await
        }
        mut body => {
            while let Some(chunk) = next(&mut outlet, output, &mut body, timeout).await? {
                if known.is_none() {
                    *given += length(&chunk);
                }
                piece(&mut outlet, output, &mut body, chunk, timeout).await?;
            }
            if !output.is_empty() {
                outlet.stream()?.write_all(output, timeout).await?;
            }
            outlet.stream()?.flush(timeout).await
        }
    }
}

fn length(chunk: &Chunk) -> u64 {
    match chunk {
        Chunk::Bytes(bytes) => bytes.len() as u64,
        Chunk::File(slice) => slice.length,
        Chunk::Flush => 0,
    }
}

/// The next piece of a body. What is in `output` is sent before waiting for it.
async fn next(
    outlet: &mut Outlet<'_>,
    output: &mut Vec<u8>,
    body: &mut Body,
    timeout: Duration,
) -> io::Result<Option<Chunk>> {
    let at_once = std::future::poll_fn(|cx| Poll::Ready(outlet.poll_chunk(cx, body))).await;
    let next = match at_once {
        Poll::Ready(next) => next,
        Poll::Pending => {
            // Polled again only once the task has been woken: a body that has yielded would
            // lose the yield.
            let mut waits = true;
            if !output.is_empty() {
                let (sent, has_waited) =
                    ahead(body, outlet.stream()?.write_all(output, timeout)).await;
                sent?;
                waits = !has_waited;
                output.clear();
            }
            let next = |cx: &mut Context<'_>| match std::mem::take(&mut waits) {
                true => Poll::Pending,
                false => outlet.poll_chunk(cx, body),
            };
            std::future::poll_fn(next).await
        }
    };
    if matches!(next, Some(Err(_))) {
        // The client gets what came before the body broke off.
        outlet.stream()?.write_all(output, timeout).await?;
    }
    next.transpose()
}

/// Sends while the body reads ahead; returns whether it had to wait.
async fn ahead<T>(body: &mut Body, sending: impl Future<Output = T>) -> (T, bool) {
    let mut sending = std::pin::pin!(sending);
    let mut has_waited = false;
    let sent = std::future::poll_fn(|cx| {
        let sent = sending.as_mut().poll(cx);
        if sent.is_pending() {
            has_waited = true;
            body.poll_ahead(cx);
        }
        sent
    })
    .await;
    (sent, has_waited)
}

/// Sends a piece after the bytes in `output`, or puts it there if it is short.
async fn piece(
    outlet: &mut Outlet<'_>,
    output: &mut Vec<u8>,
    body: &mut Body,
    chunk: Chunk,
    timeout: Duration,
) -> io::Result<()> {
    match chunk {
        Chunk::Bytes(bytes) if output.len() as u64 + bytes.len() as u64 <= ONE_SEND_BYTES => {
            output.extend_from_slice(&bytes);
            return Ok(());
        }
        Chunk::Bytes(bytes) => {
            let mut parts = [io::IoSlice::new(output), io::IoSlice::new(&bytes)];
            ahead(body, outlet.stream()?.write_vectored(&mut parts, timeout)).await.0?;
        }
        Chunk::File(slice) => {
            let FileSlice { file, offset, length } = &slice;
            ahead(body, outlet.stream()?.send_file(output, file, *offset, *length, timeout))
                .await
                .0?;
        }
        Chunk::Flush => ahead(body, outlet.stream()?.write_all(output, timeout)).await.0?,
    }
    output.clear();
    Ok(())
}

/// Sends a body of unknown length in chunks (RFC 9112 section 7.1), as in Apache without trailers;
/// `given` counts its bytes.
async fn chunked(
    mut outlet: Outlet<'_>,
    output: &mut Vec<u8>,
    mut body: Body,
    timeout: Duration,
    given: &mut u64,
) -> io::Result<()> {
    while let Some(chunk) = next(&mut outlet, output, &mut body, timeout).await? {
        let chunk = match chunk {
            Chunk::Bytes(bytes) if bytes.is_empty() => continue,
            other => other,
        };
        let length = length(&chunk);
        *given += length;
        if length > 0 {
            output.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        }
        piece(&mut outlet, output, &mut body, chunk, timeout).await?;
        if length > 0 {
            output.extend_from_slice(b"\r\n");
        }
    }
    output.extend_from_slice(b"0\r\n\r\n");
    outlet.stream()?.write_all(output, timeout).await
}

async fn whole(
    stream: &mut Stream,
    output: &mut Vec<u8>,
    bytes: &Bytes,
    timeout: Duration,
) -> io::Result<()> {
    if bytes.len() as u64 <= ONE_SEND_BYTES {
        output.extend_from_slice(bytes);
        return stream.write_all(output, timeout).await;
    }
    let mut parts = [io::IoSlice::new(output), io::IoSlice::new(bytes)];
    stream.write_vectored(&mut parts, timeout).await
}

/// Reads a small piece of a file; a file that has become shorter is an error, because its length
/// has been sent.
pub(super) fn read(slice: &FileSlice) -> io::Result<Bytes> {
    use std::os::unix::fs::FileExt;
    let mut bytes = vec![0; usize::try_from(slice.length).map_err(io::Error::other)?];
    slice.file.read_exact_at(&mut bytes, slice.offset)?;
    Ok(bytes.into())
}
