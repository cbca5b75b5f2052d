//! The control connection: commands and replies. Source: `proxy_ftp_command`, `ftp_set_TYPE`.

use std::time::Duration;

use server::errorlog::Verbatim;
use server::log::Level;
use server::request::Request;
use wire::ftp::{Reply, ReplyFault, ReplyParser, ReplyProgress};

use super::ProxyFtp;
use super::asked::Type;
use crate::proxy::mod_proxy::backend::Backend;
use crate::proxy::mod_proxy::fault;

/// Bytes that are read at once.
const READ_BYTES: usize = 4 * 1024;
/// The code of a server that closes the connection.
const UNAVAILABLE: u16 = 421;
const UNREADABLE: &str = "Error reading from remote server";

/// A control connection.
pub(super) struct Control {
    /// The connection.
    pub backend: Backend,
    /// What was received behind the last reply.
    received: Vec<u8>,
    timeout: Duration,
}

impl Control {
    /// Of a connection; each wait is at most `timeout`.
    pub fn new(backend: Backend, timeout: Duration) -> Control {
        Control { backend, received: Vec::new(), timeout }
    }

    /// Sends a command with its argument, and reads the reply to it.
    ///
    /// # Errors
    /// 502 if there is none, or the server closes the connection.
    pub async fn ask(
        &mut self,
        request: &mut Request,
        command: &str,
        argument: &[u8],
    ) -> Result<Reply, u16> {
        match self.try_ask(command, argument).await {
            Ok(reply) if reply.code != UNAVAILABLE => Ok(reply),
            Ok(_) => Err(fault::answer(request, 502, UNREADABLE)),
            Err(why) => Err(no_reply(request, why)),
        }
    }

    /// Reads the reply that comes unasked.
    ///
    /// # Errors
    /// As [`Control::ask`].
    pub async fn greeting(&mut self, request: &mut Request) -> Result<Reply, u16> {
        match self.reply().await {
            Ok(reply) if reply.code != UNAVAILABLE => Ok(reply),
            Ok(_) => Err(fault::answer(request, 502, UNREADABLE)),
            Err(why) => Err(no_reply(request, why)),
        }
    }

    /// Sets the type of transfers. Whatever the reply is, what follows is tried.
    pub async fn set_type(&mut self, request: &mut Request, kind: Type) {
        let letter = kind.letter().to_string();
        let Ok(reply) = self.ask(request, "TYPE", letter.as_bytes()).await else { return };
        if !matches!(reply.code, 200 | 504) {
            let _ = fault::answer(request, 502, "Unable to set transfer type");
        }
    }

    /// Ends the connection after a transfer, whose reply is to come.
    pub async fn quit(mut self) {
        let _ = self.reply().await;
        let _ = self.try_ask("QUIT", b"").await;
    }

    async fn try_ask(&mut self, command: &str, argument: &[u8]) -> Result<Reply, NoReply> {
        let blank: &[u8] = if argument.is_empty() && command != "PASS" { b"" } else { b" " };
        let line = [command.as_bytes(), blank, argument, b"\r\n"].concat();
        let sent = self.backend.stream.write_all(&line, self.timeout).await;
        sent.map_err(|_| NoReply::Ended)?;
        self.reply().await
    }

    async fn reply(&mut self) -> Result<Reply, NoReply> {
        let mut parser = ReplyParser::default();
        loop {
            if let Some(reply) = self.parse(&mut parser)? {
                return Ok(reply);
            }
            self.received.reserve(READ_BYTES);
            let stream = &mut self.backend.stream;
            let deadline = stream.handle().deadline(self.timeout);
            match stream.read(&mut self.received, deadline).await {
                Ok(0) | Err(_) => return Err(NoReply::Ended),
                Ok(_) => {}
            }
        }
    }

    /// Reads what has been received.
    fn parse(&mut self, parser: &mut ReplyParser) -> Result<Option<Reply>, NoReply> {
        match parser.parse(&self.received) {
            Ok(ReplyProgress::Done { consumed, reply }) => {
                self.received.drain(..consumed);
                Ok(Some(reply))
            }
            Ok(ReplyProgress::NeedMore { consumed }) => {
                self.received.drain(..consumed);
                Ok(None)
            }
            Err(fault) => {
                // As in Apache, what follows may be a reply to the next command.
                if let ReplyFault::Malformed { consumed, .. } = fault {
                    self.received.drain(..consumed);
                }
                Err(NoReply::Fault(fault))
            }
        }
    }
}

/// Why there is no reply.
enum NoReply {
    /// The connection has ended, or nothing came in time.
    Ended,
    /// It can't be read.
    Fault(ReplyFault),
}

fn no_reply(request: &mut Request, why: NoReply) -> u16 {
    if let NoReply::Fault(ReplyFault::Malformed { line, .. }) = &why {
        let text = format_args!("Malformed FTP response '{}'", Verbatim::new(line));
        request.log::<ProxyFtp>(Level::Info, 10229, text);
    }
    fault::answer(request, 502, UNREADABLE)
}
