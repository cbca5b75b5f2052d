//! Why a request has no response of the backend.

use server::log::Level;

use super::ProxyHttp2;
use super::conversation::Broken;
use crate::proxy::mod_proxy::late_log::LateLog;
use crate::proxy::mod_proxy::scheme::Exchange;

/// Where messages about a backend go, while the client gets its response.
pub(super) struct Log {
    log: LateLog,
    /// The backend's address.
    place: String,
}

impl Log {
    /// Of an exchange.
    pub fn of(exchange: &Exchange<'_>) -> Log {
        Log { log: LateLog::of(exchange.request), place: exchange.shown_place().to_text() }
    }

    /// Logs why there is no response, or no more of it.
    pub fn broken(&self, why: &Broken) {
        let place = &self.place;
        match why {
            Broken::Io(error) => {
                self.write(Level::Error, 3380, &format!("{place}: read error: {error}"))
            }
            Broken::Closed => {
                self.write(Level::Error, 3380, &format!("{place}: the connection was closed"));
            }
            Broken::Protocol(failure) => {
                let text = format!("{place}: connection error {}: {}", failure.0.0, failure.1);
                self.write(Level::Error, 3380, &text);
            }
            Broken::Reset(code) => {
                let text = format!("{place}: the stream was reset with error {}", code.0);
                self.write(Level::Info, 3364, &text);
            }
            Broken::Refused => {
                let text = format!("{place}: giving up after 2 reconnects, request-done=0");
                self.write(Level::Info, 10023, &text);
            }
            Broken::Client(_) => {
                let text = format!("pass request body failed to {place}");
                self.write(Level::Error, 3351, &text);
            }
        }
    }

    fn write(&self, level: Level, number: u32, text: &str) {
        self.log.write::<ProxyHttp2>(level, number, text.as_bytes());
    }
}

/// The status of a response that has none yet.
pub(super) fn status(exchange: &Exchange<'_>, why: &Broken) -> u16 {
    match why {
        Broken::Client(error) => error.status(exchange.request),
        Broken::Reset(_) | Broken::Refused => 502,
        Broken::Io(_) | Broken::Protocol(_) | Broken::Closed => 503,
    }
}
