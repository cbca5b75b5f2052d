//! The body of a response, as it is sent to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use server::body::{BodyStream, Chunk};
use server::log::Level;
use server::request::Request;

use super::ProxyFcgi;
use super::conversation::{Broken, Conversation, Said};
use crate::proxy::mod_proxy::late_log::LateLog;

/// Bytes that are sent at once, if as many have arrived.
const PIECE_BYTES: usize = 64 * 1024;

/// The rest of a response.
pub(super) struct Rest {
    /// What has been read of it with the head.
    pub first: Bytes,
    /// `None` once it is read.
    pub conversation: Option<Conversation>,
    /// Whether the output has ended, so that a broken connection does no harm.
    pub output_ended: bool,
    /// Whether the rest can't be read: an error, after what could be.
    pub is_broken: bool,
    /// The length that the program has told, if that is trusted, and what of it is still to come.
    pub told: Option<(u64, u64)>,
    /// For the log.
    pub log: Log,
}

impl BodyStream for Rest {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        loop {
            let piece = ready!(self.poll_piece(cx));
            let Some((_, left)) = &mut self.told else { return Poll::Ready(piece) };
            // The client finds the next response by the length: it has to be true.
            match piece {
                Some(Ok(Chunk::Bytes(mut bytes))) => {
                    bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= bytes.len() as u64;
                    if !bytes.is_empty() {
                        return Poll::Ready(Some(Ok(Chunk::Bytes(bytes))));
                    }
                }
                None if std::mem::take(left) > 0 => {
                    return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
                }
                piece => return Poll::Ready(piece),
            }
        }
    }

    fn length(&self) -> Option<u64> {
        self.told.map(|(length, _)| length)
    }
}

impl Rest {
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let mut piece = Vec::new();
        if !self.first.is_empty() {
            let first = std::mem::take(&mut self.first);
            return Poll::Ready(Some(Ok(Chunk::Bytes(first))));
        }
        let Rest { conversation: place, output_ended, is_broken, log, .. } = self;
        while let Some(conversation) = place {
            match conversation.poll_said(cx) {
                Poll::Ready(Ok(Said::Output(range))) => {
                    piece.extend_from_slice(conversation.bytes(range));
                    if piece.len() >= PIECE_BYTES {
                        break;
                    }
                }
                Poll::Ready(Ok(Said::EndOfOutput)) => *output_ended = true,
                Poll::Ready(Ok(Said::Message(range))) => {
                    log.message(conversation.bytes(range));
                }
                Poll::Ready(Ok(Said::Unknown(kind))) => log.unknown(kind),
                Poll::Ready(Ok(Said::End)) => {
                    if let Some(conversation) = place.take() {
                        conversation.end();
                    }
                }
                Poll::Ready(Err(why)) => {
                    *place = None;
                    log.broken(&why);
                    *is_broken = !*output_ended;
                }
                Poll::Pending if piece.is_empty() => return Poll::Pending,
                Poll::Pending => {
                    conversation.restart_wait();
                    break;
                }
            }
        }
        if piece.is_empty() && std::mem::take(is_broken) {
            return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
        }
        Poll::Ready((!piece.is_empty()).then(|| Ok(Chunk::Bytes(piece.into()))))
    }
}

/// Where messages of a server go: the log of the request's host.
pub(super) struct Log {
    log: LateLog,
    /// The server's own port, if it is not the scheme's.
    port: Option<u16>,
}

impl Log {
    /// Of a request.
    pub fn of(request: &Request) -> Log {
        let port = request.server_port();
        Log { log: LateLog::of(request), port: (port != request.default_port()).then_some(port) }
    }

    /// Logs what the program wrote to its error output.
    pub fn message(&self, text: &[u8]) {
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        self.write(Level::Error, 1071, &[b"Got error '", text, b"'"].concat());
    }

    /// Logs a record without meaning.
    pub fn unknown(&self, kind: u8) {
        self.write(Level::Error, 1072, format!("Got bogus record {kind}").as_bytes());
    }

    /// Logs why a response can't be read.
    pub fn broken(&self, why: &Broken) {
        let details = match why {
            Broken::Fault(fault) => {
                if fault.log_number() != 1075 {
                    self.write(Level::Error, fault.log_number(), fault.to_string().as_bytes());
                    String::new()
                } else {
                    "(reading response body)".to_owned()
                }
            }
            Broken::Io(error) if why.is_timeout() => format!("(polling: {error})"),
            Broken::Io(error) => format!("({error})"),
            Broken::Client(_) => "(reading request body)".to_owned(),
        };
        self.dispatching(&details);
    }

    /// Logs that there is no response.
    pub fn dispatching(&self, details: &str) {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let text = format!("Error dispatching request to {port}: {details}");
        self.write(Level::Error, 1075, text.as_bytes());
    }

    fn write(&self, level: Level, number: u32, text: &[u8]) {
        self.log.write::<ProxyFcgi>(level, number, text);
    }
}
