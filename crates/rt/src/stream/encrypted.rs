//! The TLS layer of a stream: carries the session's bytes over the socket.

use std::fs::File;
use std::io::{self, IoSlice};
use std::num::NonZeroUsize;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::net::SendFlags;

use super::{Layer, Stream};
use crate::file::{self, Probe};
use crate::timers::Deadline;
use crate::tls::{ENCRYPT_BYTES_MAX, Session, TlsError, TlsInfo};

/// Records up to this size wait for the next write and are sent with it (session tickets after a
/// handshake); larger ones are flushed first.
const HELD_BYTES_MAX: usize = 4096;

impl Stream {
    /// The negotiated parameters; `None` on a plain connection.
    pub fn tls(&self) -> Option<TlsInfo<'_>> {
        match &self.layer {
            Layer::Plain => None,
            Layer::Tls(session) => Some(TlsInfo(session)),
        }
    }

    /// Sets how much plaintext a record of TLS gets at most; `None` for what TLS allows.
    pub fn limit_records(&mut self, bytes: Option<NonZeroUsize>) {
        if let Layer::Tls(session) = &mut self.layer {
            session.limit_records(bytes);
        }
    }

    /// Attaches the session to the connection and completes its handshake.
    pub(crate) async fn start_tls(
        &mut self,
        mut session: Session,
        deadline: Deadline,
    ) -> Result<(), TlsError> {
        let first = session.digest_kept();
        self.layer = Layer::Tls(Box::new(session));
        let outcome = match first {
            Ok(()) => self.handshake(deadline).await,
            Err(error) => Err(error.into()),
        };
        if outcome.is_err() {
            // Sends the alert. The connection is lost anyway, so a partial send is good enough.
            let _ = self.push_outgoing();
        }
        outcome
    }

    async fn handshake(&mut self, deadline: Deadline) -> Result<(), TlsError> {
        loop {
            let Layer::Tls(session) = &mut self.layer else { return Ok(()) };
            if !session.is_handshaking() {
                // If a request has already arrived, the tickets are sent with its response.
                if session.is_client() || !session.has_plain() {
                    self.push_outgoing()?;
                }
                return Ok(());
            }
            if session.peer_closed() {
                return Err(TlsError::Closed);
            }
            while !self.push_outgoing()? {
                self.writable_until(deadline).await?;
            }
            let mut none = Vec::new();
            let received =
                std::future::poll_fn(|cx| self.poll_records(cx, &mut none, deadline)).await;
            match received {
                Ok(0) => return Err(TlsError::Closed),
                Ok(_) => {}
                Err(error) => return Err(unwrap_protocol(error)),
            }
        }
    }

    /// Reads plaintext; 0 at the end.
    pub(super) fn poll_decrypt(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        let before = buffer.len();
        loop {
            let Layer::Tls(session) = &mut self.layer else { return Poll::Ready(Ok(0)) };
            if session.has_plain() {
                return Poll::Ready(Ok(session.take_plain(buffer)));
            }
            if session.peer_closed() {
                return Poll::Ready(Ok(0));
            }
            let received = ready!(self.poll_records(cx, buffer, deadline))?;
            if received == 0 || buffer.len() > before {
                return Poll::Ready(Ok(buffer.len() - before));
            }
        }
    }

    /// Receives and processes once; returns the number of raw bytes, 0 at the socket's end.
    fn poll_records(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Vec<u8>,
        deadline: Deadline,
    ) -> Poll<io::Result<usize>> {
        let state = self.state.clone();
        let mut scratch = state.scratch.borrow_mut();
        let records = scratch.receive();
        if let Layer::Tls(session) = &self.layer {
            records.extend_from_slice(session.incoming());
            records.reserve(HELD_BYTES_MAX);
        }
        let received = ready!(self.poll_recv(cx, records, deadline))?;
        let Layer::Tls(session) = &mut self.layer else { return Poll::Ready(Ok(0)) };
        if received == 0 {
            return Poll::Ready(Ok(0));
        }
        if let Err(error) = session.digest(records, buffer) {
            let _ = self.push_outgoing();
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Poll::Ready(Ok(received))
    }

    /// Encrypts and sends; bytes that the socket does not accept stay in the session.
    pub(super) fn try_encrypt(&mut self, bytes: &[u8], flags: SendFlags) -> io::Result<usize> {
        if !self.has_room()? {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let Layer::Tls(session) = &mut self.layer else { return Ok(0) };
        let piece = bytes.get(..ENCRYPT_BYTES_MAX).unwrap_or(bytes);
        let state = self.state.clone();
        let mut scratch = state.scratch.borrow_mut();
        let records = scratch.records();
        let len = session
            .encrypt(piece, records)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let records = records.get(..len).unwrap_or_default();
        let taken = match self.send_raw(records, flags) {
            Ok(taken) => taken,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => return Err(error),
        };
        if let Layer::Tls(session) = &mut self.layer {
            session.keep_outgoing(records.get(taken..).unwrap_or_default());
        }
        Ok(piece.len())
    }

    /// Encrypts several parts as one, so that head and body share a record.
    pub(super) fn try_encrypt_gathered(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut piece = self.state.scratch.borrow_mut().take_piece();
        let mut filled = 0;
        for part in parts {
            let room = piece.get_mut(filled..).unwrap_or_default();
            let count = part.len().min(room.len());
            if let (Some(to), Some(from)) = (room.get_mut(..count), part.get(..count)) {
                to.copy_from_slice(from);
            }
            filled += count;
        }
        let outcome = self.try_encrypt(piece.get(..filled).unwrap_or_default(), SendFlags::empty());
        self.state.scratch.borrow_mut().put_piece(piece);
        outcome
    }

    /// Sends the session's outgoing records; true once none remain.
    pub(super) fn push_outgoing(&mut self) -> io::Result<bool> {
        loop {
            let Layer::Tls(session) = &self.layer else { return Ok(true) };
            if session.outgoing().is_empty() {
                return Ok(true);
            }
            let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
            let sent = self.try_output(|fd| Ok(rustix::net::send(fd, session.outgoing(), flags)?));
            match sent {
                Ok(count) => {
                    if let Layer::Tls(session) = &mut self.layer {
                        session.sent(count);
                    }
                    self.sent += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
    }

    /// Queues a close_notify, and sends as much as the socket accepts.
    pub(super) fn close_tls(&mut self) -> io::Result<()> {
        if let Layer::Tls(session) = &mut self.layer {
            session.close();
            self.push_outgoing()?;
        }
        Ok(())
    }

    /// Sends a file over TLS: in pieces of 64 KiB through a buffer of the loop, with the head in
    /// the first.
    pub(super) async fn send_file_encrypted(
        &mut self,
        mut head: &[u8],
        file: &File,
        mut offset: u64,
        mut len: u64,
        timeout: Duration,
    ) -> io::Result<()> {
        if head.len() > HELD_BYTES_MAX {
            self.write_more(head, timeout).await?;
            head = &[];
        }
        while len > 0 {
            while !self.has_room()? {
                self.writable(timeout).await?;
            }
            match self.encrypt_file_piece(head, file, offset, len)? {
                Probe::Cold => {
                    let wanted = usize::try_from(len).unwrap_or(usize::MAX).min(ENCRYPT_BYTES_MAX);
                    file::warm(&self.state.blocking.clone(), file, offset, wanted).await?;
                }
                Probe::Read(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Probe::Read(count) => {
                    head = &[];
                    offset += count as u64;
                    len -= count as u64;
                    if len > 0 {
                        tokio::task::yield_now().await;
                    }
                }
            }
        }
        self.flush(timeout).await
    }

    /// Sends `head` and the part of the file that is in memory; sends nothing if no part is.
    fn encrypt_file_piece(
        &mut self,
        head: &[u8],
        file: &File,
        offset: u64,
        len: u64,
    ) -> io::Result<Probe> {
        let mut piece = self.state.scratch.borrow_mut().take_piece();
        let wanted = usize::try_from(len).unwrap_or(usize::MAX);
        let end = piece.len().min(head.len().saturating_add(wanted));
        let mut outcome = Ok(Probe::Read(0));
        if let Some((front, back)) =
            piece.get_mut(..end).and_then(|piece| piece.split_at_mut_checked(head.len()))
        {
            front.copy_from_slice(head);
            outcome = file::read_resident(file, back, offset);
        }
        if let Ok(Probe::Read(count @ 1..)) = outcome {
            let filled = piece.get(..head.len() + count).unwrap_or_default();
            if let Err(error) = self.try_encrypt(filled, SendFlags::empty()) {
                outcome = Err(error);
            }
        }
        self.state.scratch.borrow_mut().put_piece(piece);
        outcome
    }

    /// Whether the session buffers little enough to encrypt more.
    fn has_room(&mut self) -> io::Result<bool> {
        match &self.layer {
            Layer::Tls(session) if session.outgoing().len() > HELD_BYTES_MAX => {
                self.push_outgoing()
            }
            _ => Ok(true),
        }
    }
}

/// Unwraps a protocol error that was wrapped for readers.
fn unwrap_protocol(error: io::Error) -> TlsError {
    match error.downcast::<rustls::Error>() {
        Ok(error) => TlsError::Handshake(error),
        Err(error) => TlsError::Io(error),
    }
}
