//! Sends a response.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use rt::Stream;

use super::finish::Sent;
use super::{Active, Connection};
use crate::respond::{Framing, Length};
use server::body::{Body, Chunk, FileSlice};
use server::request::Request;

/// Most bytes of a file that is read and sent with the head in one call.
const ONE_SEND_BYTES: u64 = 16 * 1024;

/// Sends head and body.
pub(super) async fn response(
    connection: &mut Connection,
    active: &mut Active,
    request: &mut Request,
    framing: Framing,
) -> Sent {
    let says_keep = framing.says_keep;
    let Some(stream) = connection.stream.as_mut() else {
        return Sent { began: 0, says_keep, outcome: Ok(()) };
    };
    let timeout = request.host.core.timeout();
    let began = stream.sent();
    request.traffic.first_byte_us = request.engine.handle.clock().wall_us();
    let output = &mut active.output;
    output.clear();
    if !request.head.simple {
        crate::respond::write_head(request, framing, output);
    }
    let body = std::mem::take(&mut request.response.body);
    let sent = if request.head.header_only || framing.length == Length::None {
        stream.write_all(output, timeout).await.map(|()| 0)
    } else if framing.length == Length::Chunked {
        chunked(stream, output, body, timeout, request).await
    } else {
        plain(stream, output, body, timeout).await
    };
    request.response.bytes_sent = *sent.as_ref().unwrap_or(&0);
    Sent { began, says_keep, outcome: sent.map(|_| ()) }
}

/// Sends a body unchanged: its length is known, or it ends with the connection.
async fn plain(
    stream: &mut Stream,
    output: &mut Vec<u8>,
    body: Body,
    timeout: Duration,
) -> io::Result<u64> {
    match body {
        Body::Empty => stream.write_all(output, timeout).await.map(|()| 0),
        Body::Bytes(bytes) => {
            whole(stream, output, &bytes, timeout).await?;
            Ok(bytes.len() as u64)
        }
        Body::File(slice) if slice.length <= ONE_SEND_BYTES => {
            let bytes = read(&slice)?;
            whole(stream, output, &bytes, timeout).await?;
            Ok(bytes.len() as u64)
        }
        mut body => {
            let mut sent = 0;
            while let Some(chunk) = std::future::poll_fn(|cx| body.poll_chunk(cx)).await {
                sent += piece(stream, output, chunk?, timeout).await?;
            }
            if !output.is_empty() {
                stream.write_all(output, timeout).await?;
            }
            stream.flush(timeout).await?;
            Ok(sent)
        }
    }
}

/// Sends a piece, after the bytes in `output`.
async fn piece(
    stream: &mut Stream,
    output: &mut Vec<u8>,
    chunk: Chunk,
    timeout: Duration,
) -> io::Result<u64> {
    match chunk {
        Chunk::Bytes(bytes) => {
            whole(stream, output, &bytes, timeout).await?;
            output.clear();
            Ok(bytes.len() as u64)
        }
        Chunk::File(slice) => {
            stream.send_file(output, &slice.file, slice.offset, slice.length, timeout).await?;
            output.clear();
            Ok(slice.length)
        }
        Chunk::Flush => {
            stream.write_all(output, timeout).await?;
            output.clear();
            Ok(0)
        }
    }
}

/// Sends a body of unknown length in chunks (RFC 9112 section 7.1).
async fn chunked(
    stream: &mut Stream,
    output: &mut Vec<u8>,
    mut body: Body,
    timeout: Duration,
    request: &Request,
) -> io::Result<u64> {
    let mut sent = 0;
    while let Some(chunk) = std::future::poll_fn(|cx| body.poll_chunk(cx)).await {
        let chunk = match chunk? {
            Chunk::Bytes(bytes) if bytes.is_empty() => continue,
            other => other,
        };
        let length = match &chunk {
            Chunk::Bytes(bytes) => bytes.len() as u64,
            Chunk::File(slice) => slice.length,
            Chunk::Flush => 0,
        };
        if length > 0 {
            output.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        }
        sent += piece(stream, output, chunk, timeout).await?;
        if length > 0 {
            output.extend_from_slice(b"\r\n");
        }
    }
    output.extend_from_slice(b"0\r\n");
    for (name, value) in request.response.trailers_out.iter() {
        for part in [name, b": ", value, b"\r\n"] {
            output.extend_from_slice(part);
        }
    }
    output.extend_from_slice(b"\r\n");
    stream.write_all(output, timeout).await?;
    Ok(sent)
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
