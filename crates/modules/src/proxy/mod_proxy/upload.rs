//! The request's body behind what was read before there was a connection.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use server::request_body::{BodyError, BodyIn};

use super::outgoing::Outgoing;

/// Bytes of a spooled body that are sent at once.
const PIECE_BYTES: usize = 32 * 1024;

/// Where the rest of a body comes from.
pub enum Upload {
    /// There is none.
    Complete,
    /// The client, as it sends it.
    Client,
    /// A file: its length was to be known before.
    Spooled {
        /// The file.
        file: Arc<File>,
        /// The offset of what is not sent yet.
        at: u64,
        /// The length in bytes.
        length: u64,
    },
}

impl Upload {
    /// The rest of a body.
    pub fn of(outgoing: &Outgoing) -> Upload {
        match outgoing.spooled() {
            Some((file, length)) => Upload::Spooled { file: file.clone(), at: 0, length },
            None if outgoing.is_repeatable() => Upload::Complete,
            None => Upload::Client,
        }
    }

    /// The next piece; `None` at the end. Without `body` the client can't be asked.
    pub fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        body: Option<&mut BodyIn>,
    ) -> Poll<Option<Result<Bytes, BodyError>>> {
        match self {
            Upload::Complete => Poll::Ready(None),
            // Nothing is lost if the future is dropped: the body itself has the state.
            Upload::Client => match body {
                Some(body) => pin!(body.next()).poll(cx),
                None => {
                    let error = std::io::ErrorKind::NotConnected;
                    Poll::Ready(Some(Err(BodyError::Io(error.into()))))
                }
            },
            Upload::Spooled { at, length, .. } if *at >= *length => Poll::Ready(None),
            Upload::Spooled { file, at, .. } => {
                let mut piece = vec![0; PIECE_BYTES];
                Poll::Ready(Some(match file.read_at(&mut piece, *at) {
                    Ok(0) => Err(BodyError::Io(std::io::ErrorKind::UnexpectedEof.into())),
                    Ok(count) => {
                        piece.truncate(count);
                        *at += count as u64;
                        Ok(piece.into())
                    }
                    Err(error) => Err(BodyError::Io(error)),
                }))
            }
        }
    }
}
