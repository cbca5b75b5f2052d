//! A TLS session without a socket: turns ciphertext into plaintext and back.

use std::num::NonZeroUsize;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus,
};
use rustls::{ClientConfig, CommonState, Error, ServerConfig};

/// The largest piece of plaintext that [`Session::encrypt`] takes: four records.
pub(crate) const ENCRYPT_BYTES_MAX: usize = 64 * 1024;
/// The largest plaintext of a record.
const RECORD_BYTES_MAX: usize = 16 * 1024;
/// Room for the overhead of the records around a piece of plaintext, key updates included.
const OVERHEAD_BYTES: usize = 1024;
/// Room for the overhead of one record.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// One connection's session. While the connection idles its buffers are empty and hold no memory.
pub(crate) struct Session {
    side: Side,
    server_name: Option<Box<str>>,
    /// Ciphertext of an incomplete record.
    incoming: Vec<u8>,
    /// Records that the socket has not accepted yet.
    outgoing: Vec<u8>,
    /// Plaintext that did not fit the reader's buffer.
    plain: Vec<u8>,
    /// The plaintext that a record gets at most.
    record_bytes: usize,
    peer_closed: bool,
    has_failed: bool,
}

/// The side of the connection that this is.
enum Side {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

impl Session {
    /// Creates a session that starts with the bytes of a ClientHello that has been parsed already.
    pub fn new(
        config: Arc<ServerConfig>,
        server_name: Option<&str>,
        hello: Vec<u8>,
    ) -> Result<Self, Error> {
        let side = Side::Server(UnbufferedServerConnection::new(config)?);
        Ok(Self::begin(side, server_name.map(|name| name.to_ascii_lowercase().into()), hello))
    }

    /// Creates the client's side of a session with the server `name`.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let server_name = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase().into()),
            _ => None,
        };
        let side = Side::Client(UnbufferedClientConnection::new(config, name)?);
        Ok(Self::begin(side, server_name, Vec::new()))
    }

    fn begin(side: Side, server_name: Option<Box<str>>, incoming: Vec<u8>) -> Self {
        let (outgoing, plain) = (Vec::new(), Vec::new());
        Self {
            side,
            server_name,
            incoming,
            outgoing,
            plain,
            record_bytes: RECORD_BYTES_MAX,
            peer_closed: false,
            has_failed: false,
        }
    }

    /// Sets how much plaintext a record gets at most; `None` for what TLS allows.
    pub fn limit_records(&mut self, bytes: Option<NonZeroUsize>) {
        let bytes = bytes.map_or(RECORD_BYTES_MAX, NonZeroUsize::get);
        self.record_bytes = bytes.min(RECORD_BYTES_MAX);
    }

    pub fn connection(&self) -> &CommonState {
        match &self.side {
            Side::Server(server) => server,
            Side::Client(client) => client,
        }
    }

    pub fn is_client(&self) -> bool {
        matches!(self.side, Side::Client(_))
    }

    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    pub fn is_handshaking(&self) -> bool {
        self.connection().is_handshaking()
    }

    /// Whether the peer has sent close_notify.
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// Whether records have been wrong, or the peer has sent a fatal alert.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// Ciphertext of an incomplete record; new bytes follow it.
    pub fn incoming(&self) -> &[u8] {
        &self.incoming
    }

    /// Records to send.
    pub fn outgoing(&self) -> &[u8] {
        &self.outgoing
    }

    /// Marks `count` bytes of [`outgoing`](Self::outgoing) as sent.
    pub fn sent(&mut self, count: usize) {
        self.outgoing.drain(..count.min(self.outgoing.len()));
    }

    /// Queues records that the socket did not accept.
    pub fn keep_outgoing(&mut self, records: &[u8]) {
        self.outgoing.extend_from_slice(records);
    }

    pub fn has_plain(&self) -> bool {
        !self.plain.is_empty()
    }

    /// Moves as much plaintext to the reader's buffer as its spare capacity takes.
    pub fn take_plain(&mut self, buffer: &mut Vec<u8>) -> usize {
        let count = self.plain.len().min(buffer.capacity() - buffer.len());
        buffer.extend(self.plain.drain(..count));
        count
    }

    /// Whether no bytes of either direction are buffered, not even part of a record.
    pub fn is_settled(&self) -> bool {
        self.incoming.is_empty() && self.outgoing.is_empty() && self.plain.is_empty()
    }

    /// Frees the memory of empty buffers.
    pub fn shrink(&mut self) {
        for buffer in [&mut self.incoming, &mut self.outgoing, &mut self.plain] {
            if buffer.is_empty() && buffer.capacity() > 0 {
                *buffer = Vec::new();
            }
        }
    }

    /// Processes the buffered ciphertext alone. At the start that is the ClientHello, which a
    /// client creates.
    pub fn digest_kept(&mut self) -> Result<(), Error> {
        let mut records = std::mem::take(&mut self.incoming);
        self.digest(&mut records, &mut Vec::new())
    }

    /// Processes `records`, which begin with [`incoming`](Self::incoming). Plaintext is appended to
    /// `buffer` as far as its spare capacity goes, and buffered beyond that. What rustls sends is
    /// appended to [`outgoing`](Self::outgoing), also after an error: the alert.
    pub fn digest(&mut self, records: &mut [u8], buffer: &mut Vec<u8>) -> Result<(), Error> {
        self.incoming.clear();
        let (mut done, outcome) = self.pump(records, buffer);
        if outcome.is_err() {
            self.has_failed = true;
            // The alert, and no more: rustls would report the error again. It is given the rest of
            // the records, since it would otherwise lose what it has noted about them.
            while self.connection().wants_write() {
                let mut consumed = 0;
                let rest = records.get_mut(done..).unwrap_or_default();
                let step = self.step(rest, buffer, &mut consumed);
                done += consumed;
                if step.is_err() {
                    break;
                }
            }
        }
        self.incoming.extend_from_slice(records.get(done..).unwrap_or_default());
        outcome
    }

    /// Encrypts at most [`ENCRYPT_BYTES_MAX`] of `plain` into `out`, which is overwritten, after
    /// the records that are still queued. Returns how many bytes of `out` to send.
    pub fn encrypt(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<usize, Error> {
        self.settle()?;
        let waiting = self.outgoing.len();
        let records = plain.len() / self.record_bytes;
        let room = waiting + plain.len() + records * RECORD_OVERHEAD_BYTES + OVERHEAD_BYTES;
        if out.len() < room {
            out.resize(room, 0);
        }
        let Some(front) = out.get_mut(..waiting) else { return Ok(0) };
        front.copy_from_slice(&self.outgoing);
        let (incoming, pieces) = (&mut self.incoming, plain.chunks(self.record_bytes));
        let end = match &mut self.side {
            Side::Server(server) => {
                encrypt(server.process_tls_records(incoming), pieces, out, waiting)
            }
            Side::Client(client) => {
                encrypt(client.process_tls_records(incoming), pieces, out, waiting)
            }
        }?;
        self.outgoing.clear();
        Ok(end)
    }

    /// Queues a close_notify in [`outgoing`](Self::outgoing).
    pub fn close(&mut self) {
        if self.settle().is_err() {
            return;
        }
        let (incoming, outgoing) = (&mut self.incoming, &mut self.outgoing);
        match &mut self.side {
            Side::Server(server) => close(server.process_tls_records(incoming), outgoing),
            Side::Client(client) => close(client.process_tls_records(incoming), outgoing),
        }
    }

    /// Lets rustls finish what it can do without new records. It is given the buffered ones: for an
    /// incomplete message it remembers the positions of its fragments among them.
    fn settle(&mut self) -> Result<(), Error> {
        let mut kept = std::mem::take(&mut self.incoming);
        let (done, outcome) = self.pump(&mut kept, &mut Vec::new());
        kept.drain(..done.min(kept.len()));
        self.incoming = kept;
        outcome
    }

    /// Runs rustls over `records` until it needs more; returns how many bytes it has consumed.
    fn pump(&mut self, records: &mut [u8], buffer: &mut Vec<u8>) -> (usize, Result<(), Error>) {
        let mut done = 0;
        loop {
            let mut consumed = 0;
            let rest = records.get_mut(done..).unwrap_or_default();
            let outcome = self.step(rest, buffer, &mut consumed);
            done += consumed;
            match outcome {
                Ok(true) => {}
                Ok(false) => return (done, Ok(())),
                Err(error) => return (done, Err(error)),
            }
        }
    }

    /// Performs one step of rustls; returns whether there is more to do. Adds the bytes that it has
    /// consumed, which there can be on an error too, to `discard`.
    fn step(
        &mut self,
        records: &mut [u8],
        buffer: &mut Vec<u8>,
        discard: &mut usize,
    ) -> Result<bool, Error> {
        let Self { side, outgoing, plain, peer_closed, .. } = self;
        let sinks = Sinks { buffer, plain, outgoing, peer_closed, discard };
        match side {
            Side::Server(server) => progress(server.process_tls_records(records), sinks),
            Side::Client(client) => progress(client.process_tls_records(records), sinks),
        }
    }
}

/// Where the results of a step go.
struct Sinks<'s> {
    /// The reader's buffer.
    buffer: &'s mut Vec<u8>,
    /// Plaintext that does not fit it.
    plain: &'s mut Vec<u8>,
    outgoing: &'s mut Vec<u8>,
    peer_closed: &'s mut bool,
    /// The number of bytes consumed.
    discard: &'s mut usize,
}

/// Handles the outcome of a step; returns whether there is more to do.
#[inline]
fn progress<Data>(status: UnbufferedStatus<'_, '_, Data>, sinks: Sinks<'_>) -> Result<bool, Error> {
    let UnbufferedStatus { discard: consumed, state, .. } = status;
    *sinks.discard += consumed;
    match state? {
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                let record = record?;
                *sinks.discard += record.discard;
                deliver(record.payload, sinks.buffer, sinks.plain);
            }
            Ok(true)
        }
        ConnectionState::EncodeTlsData(mut data) => {
            encode(&mut data, sinks.outgoing)?;
            Ok(true)
        }
        // rustls regards the data as sent: it waits in `outgoing`.
        ConnectionState::TransmitTlsData(data) => {
            data.done();
            Ok(true)
        }
        ConnectionState::PeerClosed => {
            *sinks.peer_closed = true;
            Ok(true)
        }
        ConnectionState::Closed => {
            *sinks.peer_closed = true;
            Ok(false)
        }
        // Unreachable: early data is not configured.
        _ => Ok(false),
    }
}

/// Encrypts `pieces`, a record each, into `out` from `start` on; returns where they end.
#[inline]
fn encrypt<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    pieces: std::slice::Chunks<'_, u8>,
    out: &mut Vec<u8>,
    start: usize,
) -> Result<usize, Error> {
    debug_assert_eq!(status.discard, 0, "nothing is left to do after settling");
    let ConnectionState::WriteTraffic(mut traffic) = status.state? else {
        return Err(Error::HandshakeNotComplete);
    };
    let mut end = start;
    for piece in pieces {
        end += match traffic.encrypt(piece, out.get_mut(end..).unwrap_or_default()) {
            Ok(count) => count,
            Err(EncryptError::InsufficientSize(needed)) => {
                out.resize(end + needed.required_size, 0);
                let back = out.get_mut(end..).unwrap_or_default();
                traffic.encrypt(piece, back).map_err(|_| Error::EncryptError)?
            }
            Err(EncryptError::EncryptExhausted) => return Err(Error::EncryptError),
        };
    }
    Ok(end)
}

fn close<Data>(status: UnbufferedStatus<'_, '_, Data>, outgoing: &mut Vec<u8>) {
    if let Ok(ConnectionState::WriteTraffic(mut traffic)) = status.state {
        let mut alert = [0; 256];
        if let Ok(count) = traffic.queue_close_notify(&mut alert) {
            outgoing.extend_from_slice(alert.get(..count).unwrap_or_default());
        }
    }
}

fn deliver(payload: &[u8], buffer: &mut Vec<u8>, rest: &mut Vec<u8>) {
    let room = if rest.is_empty() { buffer.capacity() - buffer.len() } else { 0 };
    let (now, later) = payload.split_at(room.min(payload.len()));
    buffer.extend_from_slice(now);
    rest.extend_from_slice(later);
}

fn encode<Data>(data: &mut EncodeTlsData<'_, Data>, outgoing: &mut Vec<u8>) -> Result<(), Error> {
    let start = outgoing.len();
    let needed = match data.encode(&mut []) {
        Ok(_) => return Ok(()),
        Err(EncodeError::InsufficientSize(needed)) => needed.required_size,
        Err(error) => return Err(Error::General(error.to_string())),
    };
    outgoing.resize(start + needed, 0);
    let written = data.encode(outgoing.get_mut(start..).unwrap_or_default());
    outgoing.truncate(start + written.as_ref().copied().unwrap_or(0));
    written.map(|_| ()).map_err(|error| Error::General(error.to_string()))
}
