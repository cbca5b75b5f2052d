//! Why a request has no response of the container, in Apache's words.

use server::log::Level;
use server::request::Request;
use wire::Method;

use super::ProxyAjp;
use super::conversation::Broken;
use crate::proxy::mod_proxy::backend::Place;
use crate::proxy::mod_proxy::late_log::LateLog;
use crate::proxy::mod_proxy::scheme::Exchange;

/// Where messages about a container go, while the client gets its response.
pub(super) struct Log {
    log: LateLog,
    /// The container's address.
    place: String,
}

impl Log {
    /// Of an exchange.
    pub fn of(exchange: &Exchange<'_>) -> Log {
        Log { log: LateLog::of(exchange.request), place: Place::of(exchange.worker).to_text() }
    }

    /// Logs why a response can't be read.
    pub fn broken(&self, why: &Broken, has_answered: bool) {
        let place = &self.place;
        match why {
            Broken::Fault(fault) => self.write(fault.log_number(), &fault.to_string()),
            Broken::Io(error) => self.write(1030, &format!("ajp_ilink_receive() {error}")),
            Broken::ReadAfterEnd => {
                self.write(884, "ap_proxy_ajp_request error read after end");
            }
            Broken::Client(_) | Broken::Unread(_) => self.write(881, "ap_get_brigade failed"),
        }
        match why {
            Broken::Client(_) | Broken::Unread(_) => self.write(2822, "dialog with client failed"),
            _ if has_answered => self.write(893, &format!("dialog to {place} failed")),
            _ => self.write(878, &format!("read response failed from {place}")),
        }
    }

    fn write(&self, number: u32, text: &str) {
        self.log.write::<ProxyAjp>(Level::Error, number, text.as_bytes());
    }
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

/// Whether another member may be asked the same (`is_idempotent`).
fn is_idempotent(request: &Request) -> bool {
    const METHODS: [Method; 5] =
        [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS, Method::TRACE];
    METHODS.contains(&request.head.method) && request.query().is_none()
}
