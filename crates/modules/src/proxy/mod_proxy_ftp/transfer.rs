//! The body of a response: what the data connection carries, as it is or as a page.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use rt::{Deadline, Stream};
use server::body::{Body, BodyStream, Chunk};
use server::connection_info::ConnectionInfo;
use server::engine::Engine;
use server::errorlog::Verbatim;
use server::log::Level;
use server::module::Module;
use wire::ftp::{ListingWriter, Unreadable};

use super::ProxyFtp;
use super::control::Control;
use super::page::Page;
use crate::proxy::mod_proxy::ahead::Ahead;
use crate::proxy::mod_proxy::busy::Busy;
use crate::proxy::mod_proxy::scheme::Exchange;

/// Bytes that are read at once.
const READ_BYTES: usize = 32 * 1024;

/// A transfer in progress.
pub(super) struct Transfer {
    /// Until its end.
    data: Option<Stream>,
    /// Until the data has ended.
    control: Option<Control>,
    content: Content,
    input: Vec<u8>,
    timeout: Duration,
    waits_until: Option<Deadline>,
    /// Something was given since the last flush.
    gave: bool,
    engine: Rc<Engine>,
    client: Rc<ConnectionInfo>,
    _busy: Busy,
}

/// What is transferred.
pub(super) enum Content {
    /// A file.
    File {
        /// Its length in bytes, if the server has told it.
        length: Option<u64>,
        /// How many of them are still to come.
        left: Option<u64>,
    },
    /// A listing, within its page.
    Listing {
        /// The page's beginning, until it has been given.
        page: Box<Page>,
        /// Its lines.
        writer: ListingWriter,
    },
}

impl Content {
    /// A file of that many bytes.
    pub fn file(length: Option<u64>) -> Content {
        Content::File { length, left: length }
    }

    /// A listing.
    pub fn listing(page: Page) -> Content {
        Content::Listing { page: Box::new(page), writer: ListingWriter::default() }
    }
}

impl Transfer {
    /// The body of the response.
    pub fn body(
        exchange: &Exchange<'_>,
        (control, data, busy): (Control, Stream, Busy),
        content: Content,
    ) -> Body {
        let request = &*exchange.request;
        let engine = request.engine.clone();
        let transfer = Transfer {
            data: Some(data),
            control: Some(control),
            content,
            input: Vec::new(),
            timeout: exchange.timeout(),
            waits_until: None,
            gave: false,
            engine: engine.clone(),
            client: request.connection.clone(),
            _busy: busy,
        };
        Ahead::body(transfer, &engine, exchange.spool_limits())
    }

    /// Reads from the data connection; 0 at its end.
    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Some(data) = &mut self.data else { return Poll::Ready(Ok(0)) };
        self.input.reserve(READ_BYTES);
        let (engine, timeout) = (&self.engine, self.timeout);
        // The client's wake-ups do not extend the wait.
        let deadline = *self.waits_until.get_or_insert_with(|| engine.handle.deadline(timeout));
        let read = data.poll_read(cx, &mut self.input, deadline);
        if read.is_ready() {
            self.waits_until = None;
        }
        read
    }

    /// What the received bytes are for the client; empty if more is needed.
    fn take(&mut self) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.input);
        let (page, writer) = match &mut self.content {
            Content::File { left, .. } => {
                if let Some(left) = left {
                    // What is more than announced would be another response.
                    input.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= input.len() as u64;
                }
                return input;
            }
            Content::Listing { page, writer } => (page, writer),
        };
        let mut out = std::mem::take(&mut page.head);
        let mut rest = &input[..];
        while let Some((used, written)) = writer.write(rest, &mut out) {
            rest = rest.get(used..).unwrap_or_default();
            if let Err(Unreadable(line)) = written {
                let line = Verbatim::new(&line);
                let text = format_args!("proxy_ftp: could not parse line {line}");
                let server = &self.engine.server;
                server.log_connection(&self.client, ProxyFtp::FILE, Level::Warn, 1034, text);
            }
        }
        out
    }

    /// Ends both connections: that of the data now, the other once its server has replied.
    fn end(&mut self) {
        self.data = None;
        let line = format_args!("data connection closed");
        let server = &self.engine.server;
        server.log_connection(&self.client, ProxyFtp::FILE, Level::Debug, 1057, line);
        if let Some(control) = self.control.take() {
            self.engine.handle.spawn_local(control.quit());
        }
    }

    /// What is given once the data has ended.
    fn last(&mut self) -> io::Result<Vec<u8>> {
        match &mut self.content {
            Content::File { left: Some(1..), .. } => Err(io::ErrorKind::UnexpectedEof.into()),
            Content::File { .. } => Ok(Vec::new()),
            Content::Listing { page, .. } => {
                let head = std::mem::take(&mut page.head);
                Ok([head, std::mem::take(&mut page.foot)].concat())
            }
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.content, Content::File { left: Some(0), .. })
    }
}

impl BodyStream for Transfer {
    fn poll_chunk(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Chunk>>> {
        let transfer = &mut *self;
        while transfer.data.is_some() {
            let count = match transfer.poll_fill(cx) {
                // The client gets what there is while the server makes more.
                Poll::Pending if std::mem::take(&mut transfer.gave) => {
                    return Poll::Ready(Some(Ok(Chunk::Flush)));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(count)) => count,
                // To Apache, a transfer that breaks off has ended.
                Poll::Ready(Err(error)) => {
                    transfer.end();
                    return Poll::Ready(Some(Err(error)));
                }
            };
            let mut out = match count {
                0 => Vec::new(),
                _ => transfer.take(),
            };
            if count == 0 || transfer.is_complete() {
                transfer.end();
                match transfer.last() {
                    Ok(last) => out.extend_from_slice(&last),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            if !out.is_empty() {
                transfer.gave = true;
                return Poll::Ready(Some(Ok(Chunk::Bytes(Bytes::from(out)))));
            }
        }
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        match self.content {
            Content::File { length, .. } => length,
            Content::Listing { .. } => None,
        }
    }
}
