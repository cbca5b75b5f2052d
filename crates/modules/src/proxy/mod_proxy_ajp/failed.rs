//! Why a request has no response of the container, in Apache's words.

use std::io;
use std::path::PathBuf;

use rt::Stream;
use rustix::io::Errno;
use server::errorlog::Cause;
use server::log::Level;
use server::request::Request;
use wire::Method;
use wire::ajp::{AjpFault, AjpOverflow, LogLine};

use super::ProxyAjp;
use super::conversation::{Broken, Conversation};
use crate::proxy::mod_proxy::backend::socket_path;
use crate::proxy::mod_proxy::late_log::LateLog;
use crate::proxy::mod_proxy::scheme::Exchange;

/// Where messages about a container go, while the client gets its response.
pub(super) struct Log {
    log: LateLog,
    /// The container's name and port.
    name: String,
    /// Its UNIX socket.
    socket: Option<PathBuf>,
}

impl Log {
    /// Of an exchange.
    pub fn of(exchange: &Exchange<'_>) -> Log {
        let socket = exchange.socket.map(|path| socket_path(exchange.request, path));
        let name = exchange.shown_place().to_text();
        Log { log: LateLog::of(exchange.request), name, socket }
    }

    /// The container's address, and its name.
    fn place(&self, stream: &Stream) -> String {
        let name = &self.name;
        match (&self.socket, stream.peer_addr()) {
            (Some(path), _) => format!("{}:0 ({name})", path.display()),
            (None, Ok(address)) => format!("{address} ({name})"),
            (None, Err(_)) => format!("{name} ({name})"),
        }
    }

    /// Logs why a response can't be read.
    pub fn broken(&self, why: &Broken, conversation: &Conversation) {
        let place = self.place(&conversation.backend.stream);
        let cause = match why {
            Broken::Client(_) | Broken::Unread(_) => {
                let text = format!("dialog with client {} failed", self.log.client());
                return self.of_request(2822, None, &text);
            }
            Broken::Fault(fault) => {
                self.lines(fault.lines(), None);
                None
            }
            Broken::Io(error, missing) => {
                self.missing(error, missing.map(AjpFault::lines));
                timeout(error)
            }
        };
        match conversation.has_packet {
            true => self.of_request(893, cause, &format!("dialog to {place} failed")),
            false => self.of_request(878, cause, &format!("read response failed from {place}")),
        }
    }

    /// Logs why a container gave no sign of life.
    pub fn unanswered_ping(&self, why: &Broken, stream: &Stream) {
        let cause = match why {
            Broken::Fault(AjpFault::Unexpected(kind)) => {
                let text = format!("ajp_handle_cping_cpong: awaited CPONG, received {kind} ");
                self.of_request(1014, None, &text);
                None
            }
            Broken::Fault(AjpFault::Empty) => {
                self.of_request(1013, None, "ajp_handle_cping_cpong: invalid CPONG message");
                None
            }
            Broken::Fault(fault) => {
                self.lines(fault.received_lines(), None);
                self.unread_pong();
                None
            }
            Broken::Io(error, missing) => {
                self.missing(error, missing.map(AjpFault::received_lines));
                self.unread_pong();
                timeout(error)
            }
            Broken::Client(_) | Broken::Unread(_) => None,
        };
        self.of_request(897, cause, &format!("cping/cpong failed to {}", self.place(stream)));
    }

    /// Logs what of a request does not fit into its packet.
    pub fn overflow(&self, why: &AjpOverflow, stream: &Stream) {
        self.log.write_of_server::<ProxyAjp>(Level::Error, 3229, None, &why.room());
        self.of_request(why.log_number(), None, &why.to_string());
        self.of_request(988, None, "ajp_send_header: ajp_marshal_into_msgb failed");
        self.of_request(868, None, &format!("request failed to {}", self.place(stream)));
    }

    fn unread_pong(&self) {
        self.of_request(1012, None, "ajp_handle_cping_cpong: ajp_ilink_receive failed");
    }

    fn missing(&self, error: &io::Error, lines: Option<Vec<LogLine>>) {
        let cause = match error.kind() {
            io::ErrorKind::UnexpectedEof => Some(Cause::End),
            _ => timeout(error).or_else(|| Errno::from_io_error(error).map(Cause::from)),
        };
        match lines {
            Some(lines) => self.lines(lines, cause),
            None => {
                let text = "ajp_ilink_send(): send failed";
                self.log.write_of_server::<ProxyAjp>(Level::Error, 1029, cause, text);
            }
        }
    }

    /// Writes lines, of which the first has a cause.
    fn lines(&self, lines: Vec<LogLine>, mut cause: Option<Cause>) {
        for LogLine { number, is_of_request, text } in lines {
            let cause = cause.take();
            match is_of_request {
                true => self.of_request(number, cause, &text),
                false => self.log.write_of_server::<ProxyAjp>(Level::Error, number, cause, &text),
            }
        }
    }

    fn of_request(&self, number: u32, cause: Option<Cause>, text: &str) {
        self.log.write_cause::<ProxyAjp>(Level::Error, number, cause, text.as_bytes());
    }
}

/// The cause, if the time was up.
fn timeout(error: &io::Error) -> Option<Cause> {
    (error.kind() == io::ErrorKind::TimedOut).then_some(Cause::TimedOut)
}

/// The status of a response that has none yet. `sent_first` is whether a part of the body was sent
/// unasked.
pub(super) fn status(
    exchange: &Exchange<'_>,
    why: &Broken,
    (sent_first, has_answered): (bool, bool),
) -> u16 {
    let request = &*exchange.request;
    match why {
        Broken::Client(error) => return error.status(request),
        Broken::Unread(status) => return *status,
        _ => {}
    }
    let after_ping = why.is_timeout() && exchange.worker.parameters.ping.is_some();
    let is_harmless = !sent_first && is_idempotent(request);
    match (after_ping, is_harmless) {
        (true, false) => 504,
        (true, true) if !has_answered => 504,
        (_, true) => 503,
        (false, false) => 500,
    }
}

/// The status, if a part of the request does not fit into its packet.
pub(super) fn overflow_status(request: &Request, why: &AjpOverflow) -> u16 {
    match why.is_of_client() {
        true => 400,
        false if is_idempotent(request) => 503,
        false => 500,
    }
}

/// Whether another member may be asked the same (`is_idempotent`).
fn is_idempotent(request: &Request) -> bool {
    const METHODS: [Method; 5] =
        [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE];
    METHODS.contains(&request.head.method) && request.query().is_none()
}
